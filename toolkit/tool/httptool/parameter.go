package httptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// bodyArgument is the argument that is the body of the request.
const bodyArgument = "body"

// parameter adds one parameter. One that is not supported is an error if it is required, and is left out else, which is told.
func (d *draft) parameter(p *openapi3.Parameter) error {
	if p.In == openapi3.ParameterInHeader {
		name := http.CanonicalHeaderKey(p.Name)
		if name == "Accept" || name == "Content-Type" || name == "Authorization" || slices.Contains(d.fixed, name) {
			return nil // the document is to ignore the first three, and the operator has set the others
		}
	}
	if p.In == openapi3.ParameterInQuery && slices.ContainsFunc(d.e.url.query, func(q pair) bool { return q.name == p.Name && !isArgument(q.value) }) {
		return nil // a credential
	}
	style, err := styleOf(p)
	if err == nil && p.In == openapi3.ParameterInHeader {
		_, err = parseHeader(p.Name, "")
	}
	if err == nil && p.In == openapi3.ParameterInCookie && !isToken(p.Name) {
		err = errors.New("that is no name of a cookie")
	}
	if err != nil {
		if !p.Required {
			d.without = append(d.without, fmt.Sprintf("its parameter %s (in %s), which is optional: %v", visibleName(p.Name), p.In, err))
			return nil
		}
		return fmt.Errorf("its parameter %s (in %s): %w", visibleName(p.Name), p.In, err)
	}
	schema, err := d.schemaOf(p)
	if err != nil {
		return err
	}
	name := d.argument(p.Name, p.In)
	d.properties[name] = schema
	if p.Required || p.In == openapi3.ParameterInPath {
		d.required = append(d.required, name)
	}
	pieces := []piece{{argument: name}}
	switch p.In {
	case openapi3.ParameterInPath:
		d.wire[p.Name] = name
	case openapi3.ParameterInQuery:
		d.e.url.query = append(d.e.url.query, pair{name: p.Name, value: pieces, style: style})
	case openapi3.ParameterInHeader:
		d.e.headers = append(d.e.headers, header{name: http.CanonicalHeaderKey(p.Name), value: pieces})
	case openapi3.ParameterInCookie:
		d.e.cookies = append(d.e.cookies, cookie{name: p.Name, value: pieces})
	}
	return nil
}

func visibleName(name string) string { return strconv.QuoteToASCII(name[:min(len(name), 60)]) }

// styleOf is how the value is written; an error when we do not write it so.
func styleOf(p *openapi3.Parameter) (style, error) {
	if len(p.Content) > 0 {
		if p.In == openapi3.ParameterInQuery && len(p.Content) == 1 {
			for kind := range p.Content {
				if isJSON(kind) {
					return styleJSON, nil
				}
			}
		}
		return 0, errors.New("its content is not supported")
	}
	how, err := p.SerializationMethod()
	if err != nil {
		return 0, errors.New("its style is not known")
	}
	types := typesOf(p.Schema)
	object, list := slices.Contains(types, "object"), slices.Contains(types, "array")
	switch {
	case p.In != openapi3.ParameterInQuery && object:
		return 0, errors.New("an object there is not supported")
	case p.In == openapi3.ParameterInPath && how.Style != openapi3.SerializationSimple:
		return 0, fmt.Errorf("the style %.20s is not supported", how.Style)
	case p.In == openapi3.ParameterInCookie && list && how.Explode:
		return 0, errors.New("a list there is not supported")
	case p.In != openapi3.ParameterInQuery:
		return styleComma, nil
	case how.Style == openapi3.SerializationDeepObject && object:
		return styleDeepObject, nil
	case object:
		return 0, fmt.Errorf("an object in the style %.20s is not supported", how.Style)
	case how.Explode || !list:
		return styleForm, nil
	case how.Style == openapi3.SerializationForm:
		return styleComma, nil
	case how.Style == openapi3.SerializationSpaceDelimited:
		return styleSpace, nil
	case how.Style == openapi3.SerializationPipeDelimited:
		return stylePipe, nil
	}
	return 0, fmt.Errorf("the style %.20s is not supported", how.Style)
}

func typesOf(s *openapi3.SchemaRef) []string {
	if s == nil || s.Value == nil || s.Value.Type == nil {
		return nil
	}
	return s.Value.Type.Slice()
}

// schemaOf is the schema of a parameter, with its description.
func (d *draft) schemaOf(p *openapi3.Parameter) (any, error) {
	ref := p.Schema
	for _, media := range p.Content {
		ref = media.Schema
	}
	schema, err := d.convert(ref)
	if err != nil {
		return nil, err
	}
	m, ok := schema.(map[string]any)
	if ok && p.Description != "" && m["description"] == nil {
		m["description"] = p.Description
	}
	return schema, nil
}

func (d *draft) convert(ref *openapi3.SchemaRef) (any, error) {
	if ref == nil {
		return map[string]any{}, nil
	}
	raw, err := json.Marshal(ref)
	if err != nil {
		return nil, errors.New("a schema of it cannot be read")
	}
	tree, err := parseTree(raw)
	if err != nil {
		return nil, err
	}
	return d.c.convert(tree)
}

// requestBody adds the body as one argument.
func (d *draft) requestBody(ref *openapi3.RequestBodyRef) error {
	if ref == nil || ref.Value == nil {
		return nil
	}
	kind, mime := bodyNone, ""
	var media *openapi3.MediaType
	names := make([]string, 0, len(ref.Value.Content))
	for name := range ref.Value.Content {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		plain, _, _ := strings.Cut(name, ";")
		plain = strings.ToLower(strings.TrimSpace(plain))
		switch {
		case (isJSON(plain) || plain == "*/*" || plain == "application/*") && (kind != bodyWhole || plain == mimeJSON):
			kind, media, mime = bodyWhole, ref.Value.Content[name], mimeJSON
			if isJSON(plain) && isMediaType(plain) {
				mime = plain
			}
		case plain == mimeForm && kind == bodyNone:
			kind, media, mime = bodyForms, ref.Value.Content[name], mimeForm
		}
	}
	if kind == bodyNone || media == nil {
		if !ref.Value.Required {
			if len(names) > 0 {
				d.without = append(d.without, fmt.Sprintf("its body, which is optional, is of %.60s, and only JSON and forms are supported", strings.Join(names, ", ")))
			}
			return nil
		}
		return fmt.Errorf("its body is of %.60s, and only JSON and forms are supported", strings.Join(names, ", "))
	}
	if !slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, d.e.method) {
		return fmt.Errorf("a %s with a body is not supported", d.e.method)
	}
	schema, err := d.convert(media.Schema)
	if err != nil {
		return err
	}
	if m, ok := schema.(map[string]any); ok && ref.Value.Description != "" && m["description"] == nil {
		m["description"] = ref.Value.Description
	}
	d.properties[bodyArgument] = schema
	if ref.Value.Required {
		d.required = append(d.required, bodyArgument)
	}
	d.e.body = body{kind: kind, argument: bodyArgument, mime: mime}
	return nil
}

// isMediaType reports whether s can be sent as the type of a body.
func isMediaType(s string) bool {
	family, kind, ok := strings.Cut(s, "/")
	return ok && isToken(family) && isToken(kind)
}
