package httptool

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// bodyKind is what the body of a request is made of.
type bodyKind int

// The kinds of body.
const (
	bodyNone  bodyKind = iota
	bodyJSON           // an object of the arguments that stand nowhere else
	bodyForm           // the same, as a form
	bodyWhole          // one argument, as JSON
	bodyForms          // one argument, an object, as a form
)

// body is how the body of a request is made.
type body struct {
	kind     bodyKind
	argument string   // of bodyWhole and bodyForms
	taken    []string // arguments that stand elsewhere
	mime     string
}

// make is the body and its media type; nil when there is none.
func (b *body) make(args json.RawMessage, v *values) ([]byte, error) {
	switch b.kind {
	case bodyNone:
		return nil, nil
	case bodyWhole:
		raw, _ := v.get(b.argument)
		return raw, nil
	case bodyForms:
		raw, ok := v.get(b.argument)
		if !ok {
			return nil, nil
		}
		inner, err := readValues(raw, nil)
		if err != nil {
			return nil, v.fault(b.argument, "an object is wanted here")
		}
		return form(inner.fields, inner)
	}
	left := make([]field, 0, len(v.fields))
	for _, f := range v.fields {
		if !slices.Contains(b.taken, f.name) {
			left = append(left, f)
		}
	}
	if b.kind == bodyForm {
		return form(left, v)
	}
	if len(left) == len(v.fields) {
		return args, nil // byte for byte
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for i, f := range left {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := json.Marshal(f.name)
		if err != nil {
			return nil, err
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(f.raw)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

func form(fields []field, v *values) ([]byte, error) {
	var parts []string
	for _, f := range fields {
		texts, ok, err := v.texts(f.name)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		for _, text := range texts {
			parts = append(parts, escape(f.name)+"="+escape(text))
		}
	}
	return []byte(strings.Join(parts, "&")), nil
}
