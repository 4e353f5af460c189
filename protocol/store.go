package protocol

import (
	"encoding/json"
	"reflect"
	"strconv"
)

// store passes a value that begins with c and puts it into into as encoding/json would. What it cannot put there as it is,
// a number that is no plain integer or a value of another type, it only passes: then misfit is set, and encoding/json has
// the word.
func (w *walker) store(c byte, s *shape, into reflect.Value) {
	from := w.pos
	if c == 'n' && (s.how != asRaw || into.Kind() == reflect.Pointer) {
		w.literal("null") // leaves a zero value as it is
		return
	}
	for into.Kind() == reflect.Pointer {
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	switch s.how {
	case asRaw:
		w.pass(c, nil, reflect.Value{})
		if w.err == nil {
			into.SetBytes(append([]byte(nil), w.data[from:w.pos]...))
		}
		return
	case asString:
		if c == '"' {
			if raw, escaped := w.str(); raw != nil {
				into.SetString(text(raw, escaped))
			}
			return
		}
	case asInt:
		if c == '-' || c >= '0' && c <= '9' {
			w.number()
			n, err := strconv.ParseInt(string(w.data[from:w.pos]), 10, 64)
			if w.misfit = err != nil || into.OverflowInt(n); !w.misfit {
				into.SetInt(n)
			}
			return
		}
	case asUint:
		if c >= '0' && c <= '9' {
			w.number()
			n, err := strconv.ParseUint(string(w.data[from:w.pos]), 10, 64)
			if w.misfit = err != nil || into.OverflowUint(n); !w.misfit {
				into.SetUint(n)
			}
			return
		}
	case asFloat:
		if c == '-' || c >= '0' && c <= '9' {
			w.number()
			x, err := strconv.ParseFloat(string(w.data[from:w.pos]), into.Type().Bits())
			if w.misfit = err != nil || into.OverflowFloat(x); !w.misfit {
				into.SetFloat(x)
			}
			return
		}
	case asBool:
		if c == 't' || c == 'f' {
			w.pass(c, s, reflect.Value{})
			into.SetBool(c == 't')
			return
		}
	case asStruct:
		if c == '{' {
			w.object(s, into)
			return
		}
	case asSlice:
		if c == '[' {
			into.Set(reflect.MakeSlice(into.Type(), 0, 0))
			w.array(s, into)
			return
		}
	case asMap:
		if c == '{' {
			into.Set(reflect.MakeMap(into.Type()))
			w.object(s, into)
			return
		}
	}
	w.misfit = true
	w.pass(c, s, reflect.Value{})
}

// storeField passes the value of a key of the struct or map into and stores it there.
func (w *walker) storeField(s *shape, f field, key []byte, into reflect.Value) {
	switch {
	case s.how == asMap:
		value := reflect.New(into.Type().Elem()).Elem()
		w.value(f.shape, value)
		into.SetMapIndex(reflect.ValueOf(string(key)).Convert(into.Type().Key()), value)
	case f.index == nil: // not known
		w.value(f.shape, reflect.Value{})
	default:
		below := into.Field(f.index[0])
		for _, i := range f.index[1:] {
			below = below.Field(i)
		}
		w.value(f.shape, below)
	}
}

// grown is the i-th element of a slice, which becomes longer by it. A value that is not valid stays so.
func grown(into reflect.Value, i int) reflect.Value {
	if !into.IsValid() {
		return into
	}
	if i == into.Cap() {
		into.Grow(max(4, i))
	}
	into.SetLen(i + 1)
	return into.Index(i)
}

// text is what a string means that is written as raw.
func text(raw []byte, escaped bool) string {
	if !escaped {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s) // valid by now
	return s
}
