package functiontool

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// maxNodes bounds an inferred schema: types that use each other many times over would grow without end.
const maxNodes = 4000

func schemaFor(given *jsonschema.Schema, t reflect.Type) (json.RawMessage, error) {
	s := given
	if s == nil {
		var err error
		if s, err = infer(t); err != nil {
			return nil, err
		}
	}
	return json.Marshal(s)
}

// infer makes the schema of what encoding/json reads into and writes from a value of type t. It is jsonschema-go's, with
// recursive types, bytes, types that write themselves and fields with two names seen to.
func infer(t reflect.Type) (*jsonschema.Schema, error) {
	inf := inference{open: map[reflect.Type]string{}, names: map[string]bool{}, defs: map[string]*jsonschema.Schema{}}
	s, err := inf.typ(t, "")
	if err != nil {
		return nil, err
	}
	if len(inf.defs) > 0 {
		if name, ok := strings.CutPrefix(s.Ref, refPrefix); ok { // the root is an object in its own right
			root := *inf.defs[name]
			s = &root
		}
		s.Defs = inf.defs
	}
	if (s.Type == "object" || len(s.Types) > 0) && s.Properties == nil && holdsStruct(t) {
		s.Properties = map[string]*jsonschema.Schema{} // servers refuse an object that lacks them
	}
	return s, nil
}

func holdsStruct(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct
}

const refPrefix = "#/$defs/"

type inference struct {
	open  map[reflect.Type]string // types whose schema is being made; the name is set once they were met again
	names map[string]bool
	defs  map[string]*jsonschema.Schema
	nodes int
}

var (
	rawMessage      = reflect.TypeFor[json.RawMessage]()
	jsonNumber      = reflect.TypeFor[json.Number]()
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

	known = map[reflect.Type]string{
		reflect.TypeFor[time.Time](): "string", reflect.TypeFor[slog.Level](): "string",
		reflect.TypeFor[big.Int](): "integer", reflect.TypeFor[big.Rat](): "string", reflect.TypeFor[big.Float](): "string",
		jsonNumber: "number",
	}
)

// typ makes the schema of t, which stands at path.
func (inf *inference) typ(t reflect.Type, path string) (*jsonschema.Schema, error) {
	if inf.nodes++; inf.nodes > maxNodes {
		return nil, fmt.Errorf("the schema of the type has more than %d parts%s", maxNodes, at(path))
	}
	nullable := false
	for t.Kind() == reflect.Pointer {
		nullable = true
		t = t.Elem()
	}
	s, err := inf.plain(t, path)
	if err != nil || !nullable {
		return s, err
	}
	switch {
	case s.Ref != "":
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "null"}, s}}, nil
	case s.Type != "":
		s.Types, s.Type = []string{"null", s.Type}, ""
	}
	return s, nil
}

func (inf *inference) plain(t reflect.Type, path string) (*jsonschema.Schema, error) {
	if word, ok := known[t]; ok {
		return &jsonschema.Schema{Type: word}, nil
	}
	if t == rawMessage {
		return &jsonschema.Schema{}, nil
	}
	switch pt := reflect.PointerTo(t); {
	case pt.Implements(jsonMarshaler), pt.Implements(jsonUnmarshaler):
		return &jsonschema.Schema{}, nil // only it knows its form
	case pt.Implements(textMarshaler), pt.Implements(textUnmarshaler):
		return &jsonschema.Schema{Type: "string"}, nil
	}
	if name, ok := inf.open[t]; ok {
		if name == "" {
			name = inf.name(t)
			inf.open[t] = name
		}
		return &jsonschema.Schema{Ref: refPrefix + name}, nil
	}
	if t.Name() == "" {
		return inf.composite(t, path)
	}
	inf.open[t] = ""
	s, err := inf.composite(t, path)
	name := inf.open[t]
	delete(inf.open, t)
	if err == nil && name != "" {
		inf.defs[name] = s
		return &jsonschema.Schema{Ref: refPrefix + name}, nil
	}
	return s, err
}

var notWord = regexp.MustCompile(`[^A-Za-z0-9_]+`)

func (inf *inference) name(t reflect.Type) string {
	base := strings.Trim(notWord.ReplaceAllString(t.Name(), "_"), "_")
	name := base
	for i := 2; inf.names[name]; i++ {
		name = fmt.Sprintf("%s%d", base, i)
	}
	inf.names[name] = true
	return name
}

func (inf *inference) composite(t reflect.Type, path string) (*jsonschema.Schema, error) {
	switch t.Kind() {
	case reflect.Interface:
		return &jsonschema.Schema{}, nil
	case reflect.Struct:
		return inf.object(t, path)
	case reflect.Map:
		if k := t.Key().Kind(); k != reflect.String && !t.Key().Implements(textMarshaler) {
			return nil, fmt.Errorf("a %s has no JSON form%s: its keys are no text", t, at(path))
		}
		values, err := inf.typ(t.Elem(), path+"/*")
		if err != nil {
			return nil, err
		}
		return &jsonschema.Schema{Type: "object", AdditionalProperties: values}, nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && !reflect.PointerTo(t.Elem()).Implements(jsonMarshaler) && !reflect.PointerTo(t.Elem()).Implements(textMarshaler) {
			return &jsonschema.Schema{Types: []string{"null", "string"}, ContentEncoding: "base64"}, nil
		}
		items, err := inf.typ(t.Elem(), path+"/*")
		if err != nil {
			return nil, err
		}
		return &jsonschema.Schema{Types: []string{"null", "array"}, Items: items}, nil
	case reflect.Array:
		items, err := inf.typ(t.Elem(), path+"/*")
		if err != nil {
			return nil, err
		}
		return &jsonschema.Schema{Type: "array", Items: items, MinItems: new(t.Len()), MaxItems: new(t.Len())}, nil
	}
	s, err := jsonschema.ForType(t, nil)
	if err != nil {
		return nil, fmt.Errorf("a %s has no JSON form%s", t, at(path))
	}
	return s, nil
}

func (inf *inference) object(t reflect.Type, path string) (*jsonschema.Schema, error) {
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}, Properties: map[string]*jsonschema.Schema{}}
	fields, err := fieldsOf(t)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, at(path))
	}
	for _, f := range fields {
		here := path + "/" + f.name
		p, err := inf.typ(f.typ, here)
		if err != nil {
			return nil, err
		}
		if f.quoted {
			p = &jsonschema.Schema{Type: "string"}
		}
		if text, ok := f.tag.Lookup("jsonschema"); ok {
			if p.Description, err = description(text); err != nil {
				return nil, fmt.Errorf("field %s of %s%s: %w", f.goName, t, at(here), err)
			}
		}
		s.Properties[f.name] = p
		s.PropertyOrder = append(s.PropertyOrder, f.name)
		if !f.optional {
			s.Required = append(s.Required, f.name)
		}
	}
	return s, nil
}

var word = regexp.MustCompile(`^[^ \t\n]*=`)

// description reads a jsonschema tag: a description, with or without "description=". Other words before a "=" are kept for
// what they may mean one day, as jsonschema-go does.
func description(tag string) (string, error) {
	text, named := strings.CutPrefix(tag, "description=")
	if text == "" {
		return "", errors.New("the jsonschema tag is empty")
	}
	if w := word.FindString(text); w != "" && !named {
		return "", fmt.Errorf("the jsonschema tag begins with %q: a tag is the field's description; what else it needs goes into Config.InputSchema", w)
	}
	return text, nil
}

func at(path string) string {
	if path == "" {
		return ""
	}
	return " at " + path
}
