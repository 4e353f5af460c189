package protocol

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// writer appends a value as encoding/json writes it, without the escapes for HTML. It returns false for what only
// encoding/json can write, or refuses.
type writer func(b []byte, v reflect.Value) ([]byte, bool)

var writers sync.Map // reflect.Type -> writer

func writerOf(t reflect.Type) writer {
	if w, ok := writers.Load(t); ok {
		return w.(writer)
	}
	w := buildWriter(t, map[reflect.Type]bool{})
	writers.Store(t, w)
	return w
}

var (
	marshalsJSON = reflect.TypeFor[json.Marshaler]()
	marshalsText = reflect.TypeFor[encoding.TextMarshaler]()
)

// buildWriter makes the writer of a type. above holds the types that it is a part of: one within itself is left to
// encoding/json, like all that can have a method to write itself.
func buildWriter(t reflect.Type, above map[reflect.Type]bool) writer {
	switch t {
	case rawType:
		return writeRaw
	case reflect.TypeFor[json.Number]():
		return leave
	}
	if p := reflect.PointerTo(t); above[t] || p.Implements(marshalsJSON) || p.Implements(marshalsText) {
		return leave
	}
	above[t] = true
	defer delete(above, t)
	switch t.Kind() {
	case reflect.String:
		return writeText
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(b []byte, v reflect.Value) ([]byte, bool) { return strconv.AppendInt(b, v.Int(), 10), true }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(b []byte, v reflect.Value) ([]byte, bool) { return strconv.AppendUint(b, v.Uint(), 10), true }
	case reflect.Bool:
		return func(b []byte, v reflect.Value) ([]byte, bool) { return strconv.AppendBool(b, v.Bool()), true }
	case reflect.Pointer:
		below := buildWriter(t.Elem(), above)
		return func(b []byte, v reflect.Value) ([]byte, bool) {
			if v.IsNil() {
				return append(b, "null"...), true
			}
			return below(b, v.Elem())
		}
	case reflect.Float64:
		return writeFloat
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return writeAny
		}
	case reflect.Slice:
		if e := t.Elem(); e.Kind() != reflect.Uint8 {
			return listWriter(buildWriter(e, above))
		} else if e == reflect.TypeFor[byte]() {
			return writeBytes
		}
	case reflect.Map:
		if t == reflect.TypeFor[map[string]any]() {
			return writeObject
		}
		if t.Key().Kind() == reflect.String && !t.Key().Implements(marshalsText) {
			return mapWriter(buildWriter(t.Elem(), above))
		}
	case reflect.Struct:
		if parts, ok := partsOf(t, nil, above); ok {
			return structWriter(parts)
		}
	}
	return leave
}

func leave(b []byte, _ reflect.Value) ([]byte, bool) { return b, false }

func listWriter(below writer) writer {
	return func(b []byte, v reflect.Value) (_ []byte, ok bool) {
		if v.IsNil() {
			return append(b, "null"...), true
		}
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			if b, ok = below(b, v.Index(i)); !ok {
				return b, false
			}
		}
		return append(b, ']'), true
	}
}

func mapWriter(below writer) writer {
	return func(b []byte, v reflect.Value) (_ []byte, ok bool) {
		if v.IsNil() {
			return append(b, "null"...), true
		}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
		b = append(b, '{')
		for i, key := range keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, key.String()), ':')
			if b, ok = below(b, v.MapIndex(key)); !ok {
				return b, false
			}
		}
		return append(b, '}'), true
	}
}

// part is a field of a struct, at an index by embedded structs.
type part struct {
	key       string // with quotes and colon
	index     []int
	omitEmpty bool
	write     writer
}

// partsOf lists the fields of t, which is embedded at the given index. It returns false when there is more to their order
// and precedence than to write one after the other.
func partsOf(t reflect.Type, at []int, above map[reflect.Type]bool) (parts []part, ok bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(at), i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			below, ok := partsOf(f.Type, index, above)
			if !ok {
				return nil, false
			}
			parts = append(parts, below...)
			continue
		case f.Anonymous && name == "":
			return nil, false
		case name == "-" && options == "" || !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		if options != "" && options != "omitempty" {
			return nil, false
		}
		key := string(appendText(nil, name)) + ":"
		if slices.ContainsFunc(parts, func(p part) bool { return p.key == key }) {
			return nil, false
		}
		parts = append(parts, part{key: key, index: index, omitEmpty: options == "omitempty", write: buildWriter(f.Type, above)})
	}
	return parts, true
}

func structWriter(parts []part) writer {
	return func(b []byte, v reflect.Value) (_ []byte, ok bool) {
		b = append(b, '{')
		first := true
		for i := range parts {
			p := &parts[i]
			field := v.Field(p.index[0])
			for _, below := range p.index[1:] {
				field = field.Field(below)
			}
			if p.omitEmpty && isEmpty(field) {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			if b, ok = p.write(append(b, p.key...), field); !ok {
				return b, false
			}
		}
		return append(b, '}'), true
	}
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// writeRaw appends a raw part without the white space between its tokens.
func writeRaw(b []byte, v reflect.Value) ([]byte, bool) {
	raw := v.Bytes()
	if raw == nil {
		return append(b, "null"...), true
	}
	spaced, ok := grammar(raw)
	if !ok {
		return b, false
	}
	if !spaced {
		return append(b, raw...), true
	}
	out := bytes.NewBuffer(b)
	err := json.Compact(out, raw)
	return out.Bytes(), err == nil
}

// grammar reports whether data is JSON, and whether there is white space in it. What the walker does not take for other
// reasons, encoding/json may.
func grammar(data []byte) (spaced, ok bool) {
	w := walkers.Get().(*walker)
	*w = walker{data: data, path: w.path[:0], seen: w.seen[:0], lean: true}
	w.value(nil, reflect.Value{})
	w.space()
	spaced, ok = w.spaced, w.err == nil && w.pos == len(data)
	w.release()
	return spaced, ok
}
