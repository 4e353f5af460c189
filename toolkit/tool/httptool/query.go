package httptool

import (
	"encoding/json"
	"strings"
)

// style is how a value that is no scalar is written. The names are those of OpenAPI.
type style int

// The styles. Those of a query but form, which repeats the name for each item of a list.
const (
	styleForm       style = iota // a=1&a=2
	styleComma                   // a=1,2
	styleSpace                   // a=1%202
	stylePipe                    // a=1%7C2
	styleDeepObject              // a[x]=1&a[y]=2
	styleJSON                    // a={"x":1}
)

// fillQuery is the query as it is sent, without a question mark. A pair whose argument is left out is left out.
func fillQuery(pairs []pair, v *values) (string, error) {
	var b strings.Builder
	add := func(name, value string) {
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		b.WriteString(escape(name))
		b.WriteByte('=')
		b.WriteString(value)
	}
	for _, p := range pairs {
		if !isArgument(p.value) {
			text, ok, err := v.join(p.value)
			if err != nil {
				return "", err
			}
			if ok {
				add(p.name, escape(text))
			}
			continue
		}
		name := p.value[0].argument
		raw, ok := v.get(name)
		switch {
		case !ok:
			continue
		case p.style == styleJSON:
			add(p.name, escape(string(raw)))
			continue
		case p.style == styleDeepObject:
			if err := addObject(name, p.name, raw, v, add); err != nil {
				return "", err
			}
			continue
		}
		texts, _, err := v.texts(name)
		if err != nil {
			return "", err
		}
		for i := range texts {
			texts[i] = escape(texts[i])
		}
		if separator := separators[p.style]; separator != "" && raw[0] == '[' {
			texts = []string{strings.Join(texts, separator)}
		}
		for _, text := range texts {
			add(p.name, text)
		}
	}
	return b.String(), nil
}

var separators = map[style]string{styleComma: ",", styleSpace: "%20", stylePipe: "%7C"}

// addObject writes an object whose values are scalars.
func addObject(argument, name string, raw json.RawMessage, v *values, add func(name, value string)) error {
	inner, err := readValues(raw, nil)
	if err != nil {
		return v.fault(argument, "an object is wanted here")
	}
	for _, f := range inner.fields {
		text, err := inner.text(argument+"/"+f.name, f.raw)
		if err != nil {
			return err
		}
		add(name+"["+f.name+"]", escape(text))
	}
	return nil
}
