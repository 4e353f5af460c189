package invoke

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Encode writes a value that a tool answered as JSON. Beside what encoding/json does
//
//   - an error is its text,
//   - a nil slice is [] and a nil map below the top is {},
//   - raw bytes that no schema announces (v itself, or inside an any) are a data: URI in base64; a field of type []byte is
//     plain base64 as usual,
//   - an error of Encode names the field that cannot be written: NaN, a channel, a value that holds itself.
func Encode(v any) (json.RawMessage, error) {
	mended := v
	if t := reflect.TypeOf(v); t != nil && needsMending(t) {
		box := reflect.New(reflect.TypeFor[any]()).Elem()
		box.Set(reflect.ValueOf(v))
		if rv := reflect.ValueOf(v); rv.Kind() != reflect.Map || !rv.IsNil() {
			mend(box, 0)
		}
		mended = box.Interface()
	}
	b, err := json.Marshal(mended)
	if err != nil {
		return nil, unencodable(mended, err)
	}
	return b, nil
}

// maxMend bounds the walk over values that may hold themselves; encoding/json then says so.
const maxMend = 1000

// errorText is an error as JSON sees it.
type errorText string

func (e errorText) Error() string { return string(e) }
func (e errorText) MarshalText() ([]byte, error) {
	return []byte(strings.ToValidUTF8(string(e), "\uFFFD")), nil
}

var (
	mending       sync.Map // reflect.Type -> bool
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	errorType     = reflect.TypeFor[error]()
)

func needsMending(t reflect.Type) bool {
	if yes, ok := mending.Load(t); ok {
		return yes.(bool)
	}
	yes := mayNeed(t, map[reflect.Type]bool{})
	mending.Store(t, yes)
	return yes
}

func mayNeed(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] || marshals(t) {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface, reflect.Slice, reflect.Map:
		return true
	case reflect.Pointer, reflect.Array:
		return mayNeed(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); (f.IsExported() || f.Anonymous) && mayNeed(f.Type, seen) {
				return true
			}
		}
	}
	return t.Implements(errorType)
}

// marshals reports whether t writes itself.
func marshals(t reflect.Type) bool {
	return t.Implements(jsonMarshaler) || t.Implements(textMarshaler) ||
		t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && (reflect.PointerTo(t).Implements(jsonMarshaler) || reflect.PointerTo(t).Implements(textMarshaler))
}

// mend changes v, which nobody else sees; whatever v points to is copied first, since the tool may still hold it.
func mend(v reflect.Value, depth int) {
	t := v.Type()
	if !v.CanSet() && t.Kind() != reflect.Struct || depth > maxMend {
		return
	}
	if t.Kind() == reflect.Interface {
		mendInterface(v, depth)
		return
	}
	if marshals(t) {
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && needsMending(t.Elem()) {
			p := reflect.New(t.Elem())
			p.Elem().Set(v.Elem())
			mend(p.Elem(), depth+1)
			v.Set(p)
		}
	case reflect.Slice:
		if v.IsNil() {
			v.Set(reflect.MakeSlice(t, 0, 0))
		} else if needsMending(t.Elem()) {
			s := reflect.MakeSlice(t, v.Len(), v.Len())
			reflect.Copy(s, v)
			for i := range s.Len() {
				mend(s.Index(i), depth+1)
			}
			v.Set(s)
		}
	case reflect.Array:
		if needsMending(t.Elem()) {
			for i := range v.Len() {
				mend(v.Index(i), depth+1)
			}
		}
	case reflect.Map:
		m := reflect.MakeMapWithSize(t, v.Len())
		for it := v.MapRange(); it.Next(); {
			e := reflect.New(t.Elem()).Elem()
			e.Set(it.Value())
			mend(e, depth+1)
			m.SetMapIndex(it.Key(), e)
		}
		v.Set(m)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.IsExported() || f.Anonymous {
				if strings.Contains(f.Tag.Get("json"), ",omitzero") && v.Field(i).IsZero() {
					continue
				}
				mend(v.Field(i), depth+1)
			}
		}
	}
}

func mendInterface(v reflect.Value, depth int) {
	if v.IsNil() {
		return
	}
	e := v.Elem()
	t := e.Type()
	if marshals(t) {
		return
	}
	if err, ok := e.Interface().(error); ok {
		setIf(v, reflect.ValueOf(errorText(err.Error())))
		return
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !e.IsNil() {
		setIf(v, reflect.ValueOf("data:application/octet-stream;base64,"+base64.StdEncoding.EncodeToString(e.Bytes())))
		return
	}
	if needsMending(t) {
		c := reflect.New(t).Elem()
		c.Set(e)
		mend(c, depth+1)
		v.Set(c)
	}
}

func setIf(v, to reflect.Value) {
	if to.Type().AssignableTo(v.Type()) {
		v.Set(to)
	}
}

// unencodable turns err into one that names the innermost value that cannot be written.
func unencodable(v any, err error) error {
	path, inner := culprit(reflect.ValueOf(v), nil, err)
	return fmt.Errorf("the answer cannot be written as JSON: %s: %s", pointer(path), reason(inner))
}

func reason(err error) string {
	if e, ok := errors.AsType[*json.UnsupportedValueError](err); ok {
		return e.Str + " is no JSON value"
	}
	if e, ok := errors.AsType[*json.UnsupportedTypeError](err); ok {
		return "a " + e.Type.String() + " is no JSON value"
	}
	return err.Error()
}

func culprit(v reflect.Value, path []string, err error) ([]string, error) {
	if len(path) > 64 {
		return path[:8], errors.New("it holds itself, or is nested deeper than 64")
	}
	for name, e := range children(v) {
		if !e.CanInterface() {
			continue
		}
		if k := e.Kind(); k == reflect.Float64 || k == reflect.Float32 {
			if f := e.Float(); !math.IsNaN(f) && !math.IsInf(f, 0) {
				continue
			}
		}
		if _, inner := json.Marshal(e.Interface()); inner != nil {
			return culprit(e, append(path, name), inner)
		}
	}
	return path, err
}

// children goes over the values that encoding/json would write inside v, by their JSON names.
func children(v reflect.Value) func(func(string, reflect.Value) bool) {
	return func(yield func(string, reflect.Value) bool) {
		for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
			if v.IsNil() {
				return
			}
			v = v.Elem()
		}
		if !v.IsValid() || marshals(v.Type()) {
			return
		}
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				f := v.Type().Field(i)
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if name == "-" || !f.IsExported() {
					continue
				}
				if name == "" {
					name = f.Name
				}
				if !yield(name, v.Field(i)) {
					return
				}
			}
		case reflect.Map:
			for it := v.MapRange(); it.Next(); {
				if !yield(fmt.Sprint(it.Key()), it.Value()) {
					return
				}
			}
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				if !yield(strconv.Itoa(i), v.Index(i)) {
					return
				}
			}
		}
	}
}
