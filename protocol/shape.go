package protocol

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// shape is what the decoder knows of a Go type: the exact keys of a struct, and the shapes below. A nil shape knows
// nothing and allows everything.
type shape struct {
	fields map[string]field
	elem   *shape
	how    storing
}

// field is a key's place in a struct.
type field struct {
	shape *shape
	index []int // by embedded structs; nil where there is no struct
}

// storing is how a value of a type is stored.
type storing uint8

const (
	byJSON   storing = iota // by encoding/json alone
	asRaw                   // its bytes
	asString                // likewise the kinds below
	asInt
	asUint
	asFloat
	asBool
	asStruct
	asSlice
	asMap
)

// direct reports whether the walker can store values of the shape.
func (s *shape) direct() bool { return s != nil && s.how != byJSON }

func (s *shape) field(key []byte) (f field, other string) {
	if s == nil {
		return field{}, ""
	}
	if s.fields == nil {
		return field{shape: s.elem}, ""
	}
	if f, ok := s.fields[string(key)]; ok {
		return f, ""
	}
	for known := range s.fields {
		if bytes.EqualFold([]byte(known), key) {
			return field{}, known
		}
	}
	return field{}, ""
}

func (s *shape) element() *shape {
	if s == nil {
		return nil
	}
	return s.elem
}

var shapes sync.Map // reflect.Type -> *shape

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s := buildShape(t, map[reflect.Type]*shape{})
	shapes.Store(t, s)
	return s
}

var (
	rawType  = reflect.TypeFor[json.RawMessage]()
	readJSON = reflect.TypeFor[json.Unmarshaler]()
	readText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func buildShape(t reflect.Type, building map[reflect.Type]*shape) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == rawType {
		return &shape{how: asRaw}
	}
	if s, ok := building[t]; ok {
		return s
	}
	s := &shape{}
	building[t] = s
	switch t.Kind() {
	case reflect.Array:
		s.elem = buildShape(t.Elem(), building)
		return s
	case reflect.Slice, reflect.Map:
		s.elem = buildShape(t.Elem(), building)
		if s.elem.direct() && t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 {
			s.how = asSlice
		} else if s.elem.direct() && t.Kind() == reflect.Map && t.Key().Kind() == reflect.String {
			s.how = asMap
		}
	case reflect.Struct:
		s.fields, s.how = map[string]field{}, asStruct
		s.addFields(t, nil, building)
	case reflect.String:
		s.how = asString
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		s.how = asInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s.how = asUint
	case reflect.Float32, reflect.Float64:
		s.how = asFloat
	case reflect.Bool:
		s.how = asBool
	}
	if p := reflect.PointerTo(t); p.Implements(readJSON) || p.Implements(readText) {
		s.how = byJSON
	}
	return s
}

// addFields notes the fields of the struct t, which is embedded at the given index. One that the walker cannot store leaves
// the whole struct to encoding/json.
func (s *shape) addFields(t reflect.Type, at []int, building map[reflect.Type]*shape) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(at), i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			if f.Type.Kind() == reflect.Struct {
				s.addFields(f.Type, index, building)
				continue
			}
			s.how = byJSON
			if inner := buildShape(f.Type, building); inner != nil { // an interface has no fields to promote
				for k, v := range inner.fields {
					s.fields[k] = field{shape: v.shape}
				}
			}
			continue
		case name == "-" || !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		below := buildShape(f.Type, building)
		if _, twice := s.fields[name]; twice || !below.direct() || strings.Contains(options, "string") {
			s.how = byJSON
		}
		s.fields[name] = field{shape: below, index: index}
	}
}
