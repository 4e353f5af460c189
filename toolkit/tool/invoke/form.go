package invoke

import (
	"bytes"
	"encoding/json"
)

// form is a schema that says no more than which keys there are and of which types their values are, as most schemas of
// tools do. It tells of arguments in their bytes that they fit. Of all others it knows nothing: whether they fit and what
// is wrong with them is for the library to say, which has the last word on every refusal.
type form struct {
	kinds      kinds
	properties map[string]*form
	bit        map[string]uint64 // of required keys
	required   uint64            // all bits
	closed     bool              // no other keys
	items      *form             // nil for any
}

type kinds uint8

const (
	kindObject kinds = 1 << iota
	kindArray
	kindString
	kindNumber
	kindInteger
	kindBoolean
	kindNull
	kindAny kinds = 1<<iota - 1
)

var kindNames = map[string]kinds{
	"object": kindObject, "array": kindArray, "string": kindString, "number": kindNumber | kindInteger,
	"integer": kindInteger, "boolean": kindBoolean, "null": kindNull,
}

// formOf is the form of a decoded schema; nil when it says anything else.
func formOf(schema any) *form {
	if schema == true {
		return &form{kinds: kindAny}
	}
	doc, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	f := &form{kinds: kindAny}
	for keyword, v := range doc {
		ok := true
		switch keyword {
		case "type":
			f.kinds, ok = kindsOf(v)
		case "properties":
			ok = f.setProperties(v)
		case "required":
			ok = f.setRequired(v)
		case "additionalProperties":
			var open bool
			open, ok = v.(bool)
			f.closed = !open
		case "items":
			f.items = formOf(v)
			ok = f.items != nil
		case "title", "description", "default", "examples":
		default:
			ok = false
		}
		if !ok {
			return nil
		}
	}
	for key := range f.bit {
		if f.properties[key] == nil {
			return nil
		}
	}
	return f
}

func kindsOf(v any) (kinds, bool) {
	switch v := v.(type) {
	case string:
		k, ok := kindNames[v]
		return k, ok
	case []any:
		var all kinds
		for _, e := range v {
			name, _ := e.(string)
			k, ok := kindNames[name]
			if !ok {
				return 0, false
			}
			all |= k
		}
		return all, true
	}
	return 0, false
}

func (f *form) setProperties(v any) bool {
	properties, ok := v.(map[string]any)
	f.properties = make(map[string]*form, len(properties))
	for key, schema := range properties {
		p := formOf(schema)
		ok = ok && p != nil
		f.properties[key] = p
	}
	return ok
}

func (f *form) setRequired(v any) bool {
	keys, ok := v.([]any)
	f.bit = make(map[string]uint64, len(keys))
	for i, e := range keys {
		key, isText := e.(string)
		ok = ok && isText && i < 64
		f.bit[key] = 1 << i
		f.required |= 1 << i
	}
	return ok && len(f.bit) == len(keys)
}

// fits reports whether args, an object that protocol.Check has passed, fit for certain.
func (f *form) fits(args json.RawMessage) bool {
	r := reading{data: args}
	return r.space() == '{' && r.value(f)
}

// reading goes once over a document that is known to be valid JSON.
type reading struct {
	data []byte
	pos  int
}

// space passes white space and what stands between values, and returns the next byte.
func (r *reading) space() byte {
	for {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\n', '\r', ',', ':':
			r.pos++
		default:
			return c
		}
	}
}

// value passes a value and reports whether it fits; f is nil for any value.
func (r *reading) value(f *form) bool {
	kind := kindAny
	if f != nil {
		kind = f.kinds
	}
	switch r.space() {
	case '{':
		return kind&kindObject != 0 && r.object(f)
	case '[':
		return kind&kindArray != 0 && r.array(f)
	case '"':
		r.text()
		return kind&kindString != 0
	case 't':
		r.pos += len("true")
		return kind&kindBoolean != 0
	case 'f':
		r.pos += len("false")
		return kind&kindBoolean != 0
	case 'n':
		r.pos += len("null")
		return kind&kindNull != 0
	}
	return r.number(kind)
}

func (r *reading) object(f *form) bool {
	var seen uint64
	for r.pos++; r.space() != '}'; {
		key := r.text()
		if bytes.IndexByte(key, '\\') >= 0 {
			return false
		}
		var below *form
		if f != nil {
			below = f.properties[string(key)]
			seen |= f.bit[string(key)]
			if below == nil && f.closed {
				return false
			}
		}
		if !r.value(below) {
			return false
		}
	}
	r.pos++
	return f == nil || seen == f.required
}

func (r *reading) array(f *form) bool {
	var items *form
	if f != nil {
		items = f.items
	}
	for r.pos++; r.space() != ']'; {
		if !r.value(items) {
			return false
		}
	}
	r.pos++
	return true
}

// text passes a string and returns what is between its quotes.
func (r *reading) text() []byte {
	from := r.pos + 1
	for r.pos++; r.data[r.pos] != '"'; r.pos++ {
		if r.data[r.pos] == '\\' {
			r.pos++
		}
	}
	r.pos++
	return r.data[from : r.pos-1]
}

// number passes a number. Exponents are left to the library, and so are fractions where an integer is wanted.
func (r *reading) number(kind kinds) bool {
	whole := true
	for ; ; r.pos++ {
		switch c := r.data[r.pos]; {
		case c >= '0' && c <= '9', c == '-':
		case c == '.':
			whole = false
		case c == 'e', c == 'E':
			return false
		default:
			return kind&kindNumber != 0 || whole && kind&kindInteger != 0
		}
	}
}
