package functiontool

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// field is one property of a struct as encoding/json sees it.
type field struct {
	name     string // in JSON
	goName   string
	typ      reflect.Type
	tag      reflect.StructTag
	optional bool
	quoted   bool // the tag option string
	depth    int  // of embedding
}

// fieldsOf lists a struct's properties in order, those of embedded structs in their place. Where encoding/json would drop
// two fields that share a name, it returns an error.
func fieldsOf(t reflect.Type) ([]field, error) {
	var all []field
	collect(t, 0, map[reflect.Type]bool{}, &all)
	var out []field
	for _, f := range all {
		i := slices.IndexFunc(out, func(o field) bool { return o.name == f.name })
		switch {
		case i < 0:
			out = append(out, f)
		case f.depth < out[i].depth:
			out[i] = f
		case f.depth == out[i].depth:
			return nil, fmt.Errorf("fields %s and %s of %s share the JSON name %q", out[i].goName, f.goName, t, f.name)
		}
	}
	return out, nil
}

func collect(t reflect.Type, depth int, embedded map[reflect.Type]bool, all *[]field) {
	if embedded[t] {
		return
	}
	embedded[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == "-":
			continue
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			collect(inner, depth+1, embedded, all)
			continue
		case !f.IsExported():
			continue
		}
		if name == "" {
			name = f.Name
		}
		has := func(option string) bool { return slices.Contains(strings.Split(options, ","), option) }
		*all = append(*all, field{
			name: name, goName: f.Name, typ: f.Type, tag: f.Tag, depth: depth,
			optional: has("omitempty") || has("omitzero"),
			quoted:   has("string") && quotable(inner.Kind()),
		})
	}
}

// quotable reports whether the tag option string means anything for k.
func quotable(k reflect.Kind) bool {
	switch k {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64:
		return true
	}
	return k >= reflect.Int && k <= reflect.Uintptr
}
