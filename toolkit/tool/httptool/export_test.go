package httptool

import (
	"encoding/json"
	"net/url"
)

// Shape is how many parts a template has.
type Shape struct{ Segments, Pairs int }

// FillForTest fills every place of a template with one value. It reports false when either is refused.
func FillForTest(text, value string) (*url.URL, Shape, bool) {
	t, err := parseTemplate(text)
	if err != nil {
		return nil, Shape{}, false
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, Shape{}, false
	}
	v := &values{secrets: &opened{}}
	places := [][]piece{}
	for _, s := range t.path {
		places = append(places, s)
	}
	for _, p := range t.query {
		places = append(places, p.value)
	}
	for _, pieces := range places {
		for _, p := range pieces {
			if p.argument != "" {
				v.fields = append(v.fields, field{p.argument, raw})
			}
		}
	}
	u, err := t.fill(v)
	if err != nil {
		return nil, Shape{}, false
	}
	return u, Shape{len(t.path), len(t.query)}, true
}
