package httptool

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

const (
	mimeJSON = "application/json"
	mimeForm = "application/x-www-form-urlencoded"
)

// property is what the schema says of one argument, as far as its place in a request depends on it.
type property struct {
	Type any `json:"type"`
}

// is reports whether the property is of one type and no other.
func (p property) is(kind string) bool { return p.Type == kind }

// place decides where each argument goes, and refuses a schema some of whose properties would go nowhere.
func (e *endpoint) place(wanted string) error {
	var taken, inPath []string
	for _, s := range e.url.path {
		for _, p := range s {
			if p.argument != "" {
				inPath = append(inPath, p.argument)
			}
		}
	}
	for p := range e.pieces() {
		if p.argument != "" && !slices.Contains(taken, p.argument) {
			taken = append(taken, p.argument)
		}
	}
	if len(e.schema) == 0 {
		e.schema = derived(taken, inPath)
	}
	var shape struct {
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	}
	if err := json.Unmarshal(e.schema, &shape); err != nil {
		return fmt.Errorf("the schema: %w", err)
	}
	for _, name := range taken {
		p, ok := shape.Properties[name]
		switch {
		case !ok:
			return fmt.Errorf("{%s} names no property of the schema", name)
		case p.is("object"):
			return fmt.Errorf("{%s} is of type object, which fills no place of a URL or a header; send it in the body", name)
		}
	}
	for _, name := range inPath {
		switch {
		case shape.Properties[name].is("array"):
			return fmt.Errorf("{%s} is of type array, which fills no segment of a path", name)
		case !slices.Contains(shape.Required, name):
			return fmt.Errorf("{%s} stands in the path, so the schema must have it among those that are required", name)
		}
	}
	var left []string
	for name := range shape.Properties {
		if !slices.Contains(taken, name) {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return e.placeBody(wanted, taken, left)
}

// placeBody says what the body is made of; left are the properties that stand nowhere else, in order.
func (e *endpoint) placeBody(wanted string, taken, left []string) error {
	name, one := strings.CutPrefix(wanted, "{")
	name = strings.TrimSuffix(name, "}")
	hasBody := e.method == "POST" || e.method == "PUT" || e.method == "PATCH" || e.method == "DELETE"
	switch {
	case wanted == "none" || wanted == "" && len(left) == 0:
	case !hasBody && wanted == "":
		return fmt.Errorf("the argument %s of the schema goes nowhere: a %s has no body, so name it in the URL, as ?%s={%s}", left[0], e.method, left[0], left[0])
	case !hasBody:
		return fmt.Errorf("a %s has no body", e.method)
	case one && wanted == "{"+name+"}":
		if !slices.Contains(left, name) {
			return fmt.Errorf("the body {%s} is no property of the schema, or stands in the URL or a header already", name)
		}
		e.body = body{kind: bodyWhole, argument: name, mime: mimeJSON}
		left = slices.DeleteFunc(left, func(n string) bool { return n == name })
	case wanted == "json" || wanted == "":
		e.body, left = body{kind: bodyJSON, taken: taken, mime: mimeJSON}, nil
	case wanted == "form":
		e.body, left = body{kind: bodyForm, taken: taken, mime: mimeForm}, nil
	default:
		return fmt.Errorf("the body %.40q is none of json, form, none and {argument}", wanted)
	}
	if len(left) > 0 {
		return fmt.Errorf("the argument %s of the schema goes nowhere: name it in the URL or a header, or send it in the body", left[0])
	}
	return nil
}

// derived is the schema of an endpoint whose arguments are texts.
func derived(taken, inPath []string) json.RawMessage {
	properties := map[string]any{}
	required := []string{}
	for _, name := range taken {
		properties[name] = map[string]string{"type": "string"}
		if slices.Contains(inPath, name) {
			required = append(required, name)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	raw, _ := json.Marshal(schema)
	return raw
}

// hostOf is the host of a parsed origin.
func hostOf(origin string) string {
	u, err := url.Parse(origin)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
