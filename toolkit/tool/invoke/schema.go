package invoke

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/toolfabric/toolfabric/protocol"
)

// schemaURL is where a compiled schema stands. Nothing is ever fetched from it.
const schemaURL = "tool:///schema"

// Schema checks the arguments of one tool. It is compiled once and may be used by many goroutines.
type Schema struct {
	root *jsonschema.Schema
	form *form // nil when the schema says more than types
}

// CompileSchema compiles a JSON Schema of draft 2020-12, or of the draft that its $schema names. The root is of type
// object, or leaves the type out. Only references inside the schema are followed, nothing is loaded; patterns are
// regular expressions of Go (RE2, linear time). It returns an *Error of code bad_declaration whose text names the place
// as a JSON pointer.
func CompileSchema(raw json.RawMessage) (*Schema, error) {
	doc, err := parseSchema(raw)
	if err != nil {
		return nil, err
	}
	if err := checkRoot(doc); err != nil {
		return nil, err
	}
	root, err := compile(doc)
	if err != nil {
		return nil, err
	}
	return &Schema{root: root, form: formOf(doc)}, nil
}

// CompileOutput compiles the schema of an answer, which may be of any type. Otherwise it is CompileSchema.
func CompileOutput(raw json.RawMessage) (*Schema, error) {
	doc, err := parseSchema(raw)
	if err != nil {
		return nil, err
	}
	root, err := compile(doc)
	if err != nil {
		return nil, err
	}
	return &Schema{root: root}, nil
}

func parseSchema(raw json.RawMessage) (any, error) {
	if err := protocol.Check(raw, protocol.Limits{Size: protocol.MaxSchema, Depth: 64, Number: 40}); err != nil {
		e, _ := errors.AsType[*protocol.Error](err)
		return nil, protocol.Errorf(protocol.CodeBadDeclaration, "the schema is refused: %s", e.Public)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, protocol.Wrap(err, protocol.CodeBadDeclaration, "the schema is no JSON")
	}
	return doc, checkVisible(doc, nil)
}

// checkVisible refuses texts and names that their reader would not see as the model does.
func checkVisible(v any, path []string) error {
	text := ""
	switch v := v.(type) {
	case string:
		text = v
	case []any:
		for i, e := range v {
			if err := checkVisible(e, append(path, strconv.Itoa(i))); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if err := checkVisible(k, path); err != nil {
				return err
			}
			if err := checkVisible(v[k], append(path, k)); err != nil {
				return err
			}
		}
	}
	if r, ok := protocol.HiddenRune(text); ok {
		return protocol.Errorf(protocol.CodeBadDeclaration, "the schema is refused: U+%04X at %s hides or turns text", r, pointer(path))
	}
	return nil
}

func compile(doc any) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(nothingLoaded{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, protocol.Wrap(err, protocol.CodeBadDeclaration, "the schema is refused")
	}
	root, err := c.Compile(schemaURL)
	if err != nil {
		if e, ok := errors.AsType[*jsonschema.LoadURLError](err); ok && isDraft(doc, e.URL) {
			return nil, protocol.Errorf(protocol.CodeBadDeclaration, "the schema is refused: unknown draft %s at /$schema; leave it out for 2020-12", quote(e.URL))
		}
		return nil, protocol.Errorf(protocol.CodeBadDeclaration, "the schema is refused: %s", compileFault(err))
	}
	return root, nil
}

// isDraft reports whether a schema names url as what it is written in.
func isDraft(doc any, url string) bool {
	root, _ := doc.(map[string]any)
	draft, _ := root["$schema"].(string)
	return draft != "" && strings.TrimSuffix(draft, "#") == strings.TrimSuffix(url, "#")
}

func checkRoot(doc any) error {
	root, ok := doc.(map[string]any)
	if !ok {
		return protocol.Errorf(protocol.CodeBadDeclaration, "the schema is not a JSON object: without arguments it is {\"type\":\"object\",\"properties\":{}}")
	}
	switch t := root["type"].(type) {
	case nil:
		return nil
	case string:
		if t == "object" {
			return nil
		}
	case []any:
		if slices.Contains(t, any("object")) {
			return nil
		}
	}
	return protocol.Errorf(protocol.CodeBadDeclaration, "the schema's type at /type is not object: arguments are always a JSON object")
}

type nothingLoaded struct{}

func (nothingLoaded) Load(string) (any, error) {
	return nil, errors.New("references outside the schema are not loaded; move it into $defs")
}

func compileFault(err error) string {
	switch e := err.(type) {
	case *jsonschema.SchemaValidationError:
		if v, ok := errors.AsType[*jsonschema.ValidationError](e.Err); ok {
			return faultText(v, nil)
		}
		return fragment(e.URL) + ": not a legal schema"
	case *jsonschema.InvalidRegexError:
		return fragment(e.URL) + ": the pattern " + quote(e.Regex) + " is not a regular expression of Go: " + e.Err.Error()
	case *jsonschema.LoadURLError:
		return "$ref " + quote(e.URL) + ": " + e.Err.Error()
	case *jsonschema.JSONPointerNotFoundError:
		return "$ref " + quote(fragment(e.URL)) + " points at nothing"
	case *jsonschema.AnchorNotFoundError:
		return "$ref " + quote(e.Reference) + " points at nothing"
	}
	return err.Error()
}

func fragment(u string) string {
	_, f, _ := strings.Cut(u, "#")
	if p, err := url.PathUnescape(f); err == nil {
		f = p
	}
	if f == "" {
		return "/"
	}
	return f
}

// Validate reports whether args fit: a JSON object within protocol.ArgsLimits, keys compared exactly, every digit of a
// number counted. It returns an *Error of code schema_violation whose text lists up to 8 faults, each with a JSON
// pointer, what was wanted and what was got. Normalize takes what Validate takes and a little more.
func (s *Schema) Validate(args json.RawMessage) error {
	_, err := s.check(args)
	if err == nil {
		return nil
	}
	return violation(err, s.root)
}

// Normalize returns the arguments to run. They are args itself, byte for byte, when args fit the schema. Models like to
// send an explicit null for a property that they mean to leave out: where only that stands against args, the nulls of
// optional properties are dropped. Absent args, and null, are {}. It returns the error of Validate.
func (s *Schema) Normalize(args json.RawMessage) (json.RawMessage, error) {
	if t := bytes.TrimSpace(args); len(t) == 0 || bytes.Equal(t, []byte("null")) {
		args = json.RawMessage("{}")
	}
	doc, err := s.check(args)
	if err == nil {
		return args, nil
	}
	if v, ok := errors.AsType[*jsonschema.ValidationError](err); ok && dropNulls(doc, v) && s.root.Validate(doc) == nil {
		if b, err := json.Marshal(doc); err == nil {
			return b, nil
		}
	}
	return nil, violation(err, s.root)
}

// ValidateAnswer reports whether value, a tool's answer as it was encoded, fits. It returns an *Error as Validate does.
func (s *Schema) ValidateAnswer(value json.RawMessage) error {
	doc, err := decodeExact(value)
	if err == nil {
		err = s.root.Validate(doc)
	}
	if err == nil {
		return nil
	}
	return violation(err, s.root)
}

// check returns the arguments, decoded, when they do not fit.
func (s *Schema) check(args json.RawMessage) (any, error) {
	if err := protocol.Check(args, protocol.ArgsLimits); err != nil {
		return nil, err
	}
	if s.form != nil && s.form.fits(args) {
		return nil, nil
	}
	doc, err := decodeExact(args)
	if err != nil {
		return nil, err
	}
	if _, ok := doc.(map[string]any); !ok {
		return nil, protocol.Errorf(protocol.CodeBadMessage, "the arguments are not a JSON object")
	}
	return doc, s.root.Validate(doc)
}

// decodeExact decodes what a schema may be asked about.
func decodeExact(raw []byte) (any, error) {
	doc, err := protocol.Tree(raw)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(raw, []byte("e-")) && !bytes.Contains(raw, []byte("E-")) {
		return doc, nil
	}
	if p := vanishing(doc, nil); p != nil {
		return nil, protocol.Errorf(protocol.CodeBadMessage, "number out of range at %s", pointer(p))
	}
	return doc, nil
}

// vanishing finds a number so close to zero that no float holds it. Such a number costs a rational arithmetic of its
// whole exponent; its counterpart, too large for a float, is refused by protocol.Check.
func vanishing(v any, path []string) []string {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if p := vanishing(e, append(path, k)); p != nil {
				return p
			}
		}
	case []any:
		for i, e := range v {
			switch e.(type) {
			case json.Number, map[string]any, []any:
				if p := vanishing(e, append(path, strconv.Itoa(i))); p != nil {
					return p
				}
			}
		}
	case json.Number:
		mantissa, _, ok := strings.Cut(strings.ToLower(string(v)), "e")
		if !ok || !strings.ContainsAny(mantissa, "123456789") {
			return nil
		}
		if f, err := v.Float64(); err != nil || f == 0 {
			return slices.Clone(path)
		}
	}
	return nil
}

// dropNulls removes from doc each property whose null the schema refused. It reports whether it removed any.
func dropNulls(doc any, e *jsonschema.ValidationError) bool {
	dropped := false
	for leaf := range leaves(e) {
		if len(leaf.InstanceLocation) == 0 || !refusesNull(leaf) {
			continue
		}
		at, key := doc, leaf.InstanceLocation[len(leaf.InstanceLocation)-1]
		for _, step := range leaf.InstanceLocation[:len(leaf.InstanceLocation)-1] {
			at = child(at, step)
		}
		if m, ok := at.(map[string]any); ok {
			if v, ok := m[key]; ok && v == nil {
				delete(m, key)
				dropped = true
			}
		}
	}
	return dropped
}

func child(v any, step string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[step]
	case []any:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}
