package httptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// field is one argument of a call.
type field struct {
	name string
	raw  json.RawMessage
}

// values are the arguments of one call, in their order, and the credentials as they are now.
type values struct {
	fields  []field
	secrets *opened
}

func readValues(args json.RawMessage, secrets *opened) (*values, error) {
	v := &values{secrets: secrets}
	d := json.NewDecoder(bytes.NewReader(args))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("the arguments are no JSON object")
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, err
		}
		v.fields = append(v.fields, field{t.(string), raw})
	}
	return v, nil
}

// get is an argument as JSON. One that is null is left out, as in a schema's eyes an optional one is.
func (v *values) get(name string) (json.RawMessage, bool) {
	for _, f := range v.fields {
		if f.name == name {
			return f.raw, string(f.raw) != "null"
		}
	}
	return nil, false
}

func (v *values) fault(name, format string, args ...any) error {
	return errors.New("/" + name + ": " + fmt.Sprintf(format, args...))
}

// texts are the scalars of an argument: one of a text, number or boolean, one for each item of a list.
func (v *values) texts(name string) ([]string, bool, error) {
	raw, ok := v.get(name)
	if !ok {
		return nil, false, nil
	}
	if raw[0] != '[' {
		text, err := v.text(name, raw)
		return []string{text}, true, err
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, false, err
	}
	texts := make([]string, len(items))
	for i, item := range items {
		var err error
		if texts[i], err = v.text(name, item); err != nil {
			return nil, false, err
		}
	}
	return texts, true, nil
}

// text is a scalar as it stands in a URL: a string as it is, a number or boolean as JSON writes it.
func (v *values) text(name string, raw json.RawMessage) (string, error) {
	switch raw[0] {
	case '{', '[':
		return "", v.fault(name, "a text, number or boolean is wanted here")
	case '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return text, err
	case 'n':
		return "", nil
	}
	return string(raw), nil
}

// join fills pieces with single texts. It reports false when an argument is left out.
func (v *values) join(pieces []piece) (string, bool, error) {
	var b strings.Builder
	for _, p := range pieces {
		switch {
		case p.argument != "":
			texts, ok, err := v.texts(p.argument)
			if err != nil || !ok {
				return "", false, err
			}
			b.WriteString(strings.Join(texts, ","))
		case p.secret != "":
			text, err := v.secrets.text(p.secret)
			if err != nil {
				return "", false, err
			}
			b.WriteString(text)
		default:
			b.WriteString(p.literal)
		}
	}
	return b.String(), true, nil
}
