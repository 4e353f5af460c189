package agentfile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml/ast"

	"github.com/toolfabric/toolfabric/protocol"
)

// reader puts a file's nodes into Go values and collects what is wrong on the way.
type reader struct {
	file   string
	faults Errors
	at     map[string]place // of each value that was read, by path: tools[0].name
	top    place            // where what concerns the whole agent is told
	tree   *tree
	files  []string // the files that led here, this one last, relative to the tree's folder
}

func (r *reader) fault(at place, format string, args ...any) {
	message := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ")
	r.faults = append(r.faults, &Error{File: r.file, Line: at.line, Column: at.column, Message: message})
}

// refused is a key that is known and cannot be used. Its tag why says what to do instead; empty values are let pass.
type refused struct{}

var (
	durationType = reflect.TypeFor[time.Duration]()
	rawType      = reflect.TypeFor[json.RawMessage]()
	refusedType  = reflect.TypeFor[refused]()
	belowType    = reflect.TypeFor[subAgents]()
)

// read puts n into v, which stays as it is when n is null or does not fit.
func (r *reader) read(path string, n ast.Node, v reflect.Value) {
	if isNull(n) {
		return
	}
	r.at[path] = placeOf(n)
	switch v.Type() {
	case durationType:
		r.duration(path, n, v)
		return
	case belowType:
		r.subAgents(path, n, v)
		return
	case rawType:
		if value, ok := r.plain(path, n); ok {
			b, err := json.Marshal(value)
			if err != nil {
				r.fault(placeOf(n), "%s: %v", path, err)
				return
			}
			v.SetBytes(b)
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		target := reflect.New(v.Type().Elem())
		r.read(path, n, target.Elem())
		v.Set(target)
	case reflect.Struct:
		r.structure(path, n, v)
	case reflect.Slice:
		r.list(path, n, v)
	case reflect.Map:
		r.mapping(path, n, v)
	case reflect.String:
		if s, ok := scalarText(n); ok {
			v.SetString(s)
		} else {
			r.wrongType(path, n, "text; quote it if it is meant as text")
		}
	case reflect.Bool:
		if b, ok := n.(*ast.BoolNode); ok {
			v.SetBool(b.Value)
		} else {
			r.wrongType(path, n, "true or false")
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		r.integer(path, n, v)
	case reflect.Float32, reflect.Float64:
		if f, ok := number(n); ok && !v.OverflowFloat(f) {
			v.SetFloat(f)
		} else {
			r.wrongType(path, n, "a number")
		}
	default:
		r.fault(placeOf(n), "%s cannot be set in a file", path)
	}
}

func (r *reader) wrongType(path string, n ast.Node, want string) {
	if path == "" {
		path = "the file"
	}
	r.fault(placeOf(n), "%s is %s, want %s", path, kindOf(n), want)
}

// structure reads a mapping of known keys. A field's key is its yaml tag, or the name of its json tag in snake or camel
// case.
func (r *reader) structure(path string, n ast.Node, v reflect.Value) {
	if !isMapping(n) {
		r.wrongType(path, n, "a mapping")
		return
	}
	fields := map[string]int{}
	var known []string
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if name := f.Tag.Get("yaml"); name != "" {
			fields[name] = i
			known = append(known, name)
		} else if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name], fields[snake(name)] = i, i
			known = append(known, snake(name))
		}
	}
	seen := map[int]place{}
	for _, entry := range entries(n) {
		key := keyOf(entry)
		i, ok := fields[key]
		if !ok {
			hint := ""
			if meant := protocol.Meant(key, known); meant != "" {
				hint = fmt.Sprintf("; did you mean %s?", meant)
			}
			r.fault(placeOf(entry.Key), "unknown key %q%s", key, hint)
			continue
		}
		if first, twice := seen[i]; twice {
			r.fault(placeOf(entry.Key), "duplicate key %q: it is set at line %d before", key, first.line)
			continue
		}
		seen[i] = placeOf(entry.Key)
		field := v.Type().Field(i)
		if why := refusal(v.Type(), field); why != "" {
			if !isEmptyValue(entry.Value) {
				r.fault(placeOf(entry.Key), "%s: %s", key, why)
			}
			continue
		}
		r.read(join(path, key), entry.Value, v.Field(i))
	}
}

func isEmptyValue(n ast.Node) bool {
	if seq, ok := n.(*ast.SequenceNode); ok {
		return len(seq.Values) == 0
	}
	return isNull(n) || isMapping(n) && len(entries(n)) == 0
}

func (r *reader) list(path string, n ast.Node, v reflect.Value) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok || v.Type().Elem().Kind() == reflect.Uint8 {
		r.wrongType(path, n, "a list")
		return
	}
	list := reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values))
	for i, element := range seq.Values {
		at := fmt.Sprintf("%s[%d]", path, i)
		if isNull(element) {
			r.fault(placeOf(element), "%s is empty", at)
			continue
		}
		r.read(at, element, list.Index(i))
	}
	v.Set(list)
}

func (r *reader) mapping(path string, n ast.Node, v reflect.Value) {
	if !isMapping(n) {
		r.wrongType(path, n, "a mapping")
		return
	}
	m := reflect.MakeMap(v.Type())
	for _, entry := range entries(n) {
		key := keyOf(entry)
		name := reflect.ValueOf(key).Convert(v.Type().Key())
		if m.MapIndex(name).IsValid() {
			r.fault(placeOf(entry.Key), "duplicate key %q", key)
			continue
		}
		value := reflect.New(v.Type().Elem()).Elem()
		r.read(join(path, key), entry.Value, value)
		m.SetMapIndex(name, value)
	}
	v.Set(m)
}

// plain is a node as the JSON value it stands for.
func (r *reader) plain(path string, n ast.Node) (any, bool) {
	switch n := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		m := map[string]any{}
		ok := true
		for _, entry := range entries(n) {
			key := keyOf(entry)
			if _, twice := m[key]; twice {
				r.fault(placeOf(entry.Key), "duplicate key %q", key)
				ok = false
				continue
			}
			r.at[join(path, key)] = placeOf(entry.Value)
			value, valid := r.plain(join(path, key), entry.Value)
			m[key], ok = value, ok && valid
		}
		return m, ok
	case *ast.SequenceNode:
		list, ok := make([]any, len(n.Values)), true
		for i, element := range n.Values {
			value, valid := r.plain(fmt.Sprintf("%s[%d]", path, i), element)
			list[i], ok = value, ok && valid
		}
		return list, ok
	case *ast.NullNode:
		return nil, true
	case *ast.BoolNode:
		return n.Value, true
	case *ast.IntegerNode:
		return n.Value, true
	case *ast.FloatNode:
		return n.Value, true
	}
	if s, ok := scalarText(n); ok {
		return s, true
	}
	if n == nil {
		return nil, true
	}
	r.fault(placeOf(n), "%s has no form in JSON", path)
	return nil, false
}

func keyOf(entry *ast.MappingValueNode) string {
	if s, ok := entry.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return entry.Key.String()
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// snake writes a camel-case name as Python does: topP is top_p.
func snake(camel string) string {
	var b strings.Builder
	for _, c := range camel {
		if unicode.IsUpper(c) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
