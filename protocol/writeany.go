package protocol

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// writeAny appends a value that may be of any type: those that documents are read into.
func writeAny(b []byte, v reflect.Value) ([]byte, bool) {
	if v.IsNil() {
		return append(b, "null"...), true
	}
	return appendAny(b, v.Interface(), maxAny)
}

// maxAny is how deep a value is followed: one that holds itself has no end, and encoding/json says so.
const maxAny = 256

func appendAny(b []byte, v any, depth int) (_ []byte, ok bool) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), true
	case string:
		return appendText(b, v), true
	case bool:
		return strconv.AppendBool(b, v), true
	case int:
		return strconv.AppendInt(b, int64(v), 10), true
	case float64:
		return appendFloat(b, v)
	case json.Number:
		return append(b, v...), isNumber([]byte(v))
	case map[string]any:
		if v == nil {
			return append(b, "null"...), true
		}
		return appendObject(b, v, depth)
	case []any:
		if v == nil || depth == 0 {
			return append(b, "null"...), v == nil
		}
		b = append(b, '[')
		for i, element := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, ok = appendAny(b, element, depth-1); !ok {
				return b, false
			}
		}
		return append(b, ']'), true
	}
	return b, false
}

func writeObject(b []byte, v reflect.Value) ([]byte, bool) {
	if v.IsNil() {
		return append(b, "null"...), true
	}
	return appendObject(b, v.Interface().(map[string]any), maxAny)
}

func appendObject(b []byte, v map[string]any, depth int) (_ []byte, ok bool) {
	if depth == 0 {
		return b, false
	}
	var few [8]string
	keys := slices.AppendSeq(few[:0], maps.Keys(v))
	slices.Sort(keys)
	b = append(b, '{')
	for i, key := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, key), ':')
		if b, ok = appendAny(b, v[key], depth-1); !ok {
			return b, false
		}
	}
	return append(b, '}'), true
}

func writeFloat(b []byte, v reflect.Value) ([]byte, bool) { return appendFloat(b, v.Float()) }

// appendFloat appends a number as ECMAScript writes it, like encoding/json.
func appendFloat(b []byte, f float64) ([]byte, bool) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return b, false
	}
	if abs := math.Abs(f); abs == 0 || abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(b, f, 'f', -1, 64), true
	}
	from := len(b)
	b = strconv.AppendFloat(b, f, 'e', -1, 64)
	if number := b[from:]; bytes.HasSuffix(number[:len(number)-1], []byte("e-0")) { // e-09 is e-9
		number[len(number)-2] = number[len(number)-1]
		b = b[:len(b)-1]
	}
	return b, true
}
