package functiontool

import (
	"bytes"
	"encoding/json"
	"math/big"
	"reflect"

	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// maxPlain is how many digits a number may get when its exponent is written out. No Go integer has more.
const maxPlain = 20

// plainIntegers writes the numbers of a valid document that have a fraction or an exponent and are whole, such as 5.0 and
// 1e2, as plain digits. It reports whether there was one.
func plainIntegers(raw []byte) ([]byte, bool) {
	var out []byte
	done := 0
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case c == '-' || '0' <= c && c <= '9':
			from := i
			for i+1 < len(raw) && bytes.IndexByte([]byte("+-.eE0123456789"), raw[i+1]) >= 0 {
				i++
			}
			if digits := whole(raw[from : i+1]); digits != "" {
				out = append(append(out, raw[done:from]...), digits...)
				done = i + 1
			}
		}
	}
	if done == 0 {
		return raw, false
	}
	return append(out, raw[done:]...), true
}

func whole(number []byte) string {
	if !bytes.ContainsAny(number, ".eE") || len(number) > 40 {
		return ""
	}
	f, err := json.Number(number).Float64()
	if err != nil || f > 1e20 || f < -1e20 || f == 0 && bytes.ContainsAny(number, "eE") {
		return ""
	}
	r, ok := new(big.Rat).SetString(string(number))
	if !ok || !r.IsInt() || len(r.Num().String()) > maxPlain {
		return ""
	}
	return r.Num().String()
}

// holdsAny reports whether a value of type t has a place for any JSON value.
func holdsAny(t reflect.Type) bool { return anyIn(t, map[reflect.Type]bool{}) }

func anyIn(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] || reflect.PointerTo(t).Implements(jsonUnmarshaler) {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return anyIn(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); (f.IsExported() || f.Anonymous) && anyIn(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

// floats gives the numbers inside an any the types they have in ADK: see invoke.Floats.
func floats(v reflect.Value) {
	if !v.IsValid() || !holdsAny(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() && v.CanSet() {
			v.Set(reflect.ValueOf(invoke.Floats(v.Elem().Interface())))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			floats(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			floats(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(v.MapIndex(key))
			floats(e)
			v.SetMapIndex(key, e)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			floats(v.Field(i))
		}
	}
}
