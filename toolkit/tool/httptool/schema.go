package httptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Keywords of schemas that mean the same in OpenAPI and in JSON Schema, by what their values are.
var (
	plainWords = words("title description format multipleOf minimum maximum minLength maxLength minItems maxItems uniqueItems required " +
		"minProperties maxProperties minContains maxContains dependentRequired enum const default deprecated examples")
	schemaWords = words("items additionalProperties not contains propertyNames if then else unevaluatedItems unevaluatedProperties")
	listWords   = words("oneOf anyOf allOf prefixItems")
	mapWords    = words("properties patternProperties dependentSchemas")
	droppedWord = words("example xml externalDocs discriminator readOnly writeOnly nullable $comment $schema allowEmptyValue contentMediaType contentEncoding")
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}

// converter makes JSON Schema (draft 2020-12) of schemas of one operation. Components become definitions, and references
// to them stay references, so that a schema that holds itself is as small as it was written.
type converter struct {
	doc  *document
	defs map[string]any
}

// convert makes a schema of what OpenAPI wrote. What JSON Schema does not know is dropped, and so are patterns that are no
// regular expressions of Go: the endpoint checks them itself.
func (c *converter) convert(v any) (any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		if _, always := v.(bool); always {
			return v, nil
		}
		return nil, errors.New("a schema of it is no object")
	}
	if ref, ok := m["$ref"].(string); ok {
		return c.reference(ref, m)
	}
	out := map[string]any{}
	for key, value := range m {
		if err := c.keyword(out, key, value); err != nil {
			return nil, err
		}
	}
	c.bounds(out, m)
	dropReadOnly(out, m)
	if example, ok := m["example"]; ok && out["examples"] == nil {
		out["examples"] = []any{example}
	}
	if m["nullable"] == true {
		return nullable(out), nil
	}
	return out, nil
}

func (c *converter) reference(ref string, m map[string]any) (any, error) {
	target, kind, name, err := c.doc.component(ref)
	if err != nil {
		return nil, err
	}
	if kind != "schemas" || strings.ContainsAny(name, "/~%#") {
		return nil, fmt.Errorf("it refers to %s as a schema", quoteRef(ref))
	}
	if _, done := c.defs[name]; !done {
		c.defs[name] = true // before its own references are followed: it may hold itself
		def, err := c.convert(target)
		if err != nil {
			return nil, err
		}
		c.defs[name] = def
	}
	out := map[string]any{"$ref": "#/$defs/" + name}
	if text, ok := m["description"].(string); ok {
		out["description"] = text
	}
	return out, nil
}

func (c *converter) keyword(out map[string]any, key string, value any) error {
	var err error
	switch {
	case key == "type":
		if value != "any" && value != "file" {
			out[key] = value
		}
	case key == "pattern":
		if text, _ := value.(string); compiles(text) {
			out[key] = value
		}
	case plainWords[key]:
		out[key] = value
	case schemaWords[key]:
		out[key], err = c.convert(value)
	case listWords[key]:
		list, _ := value.([]any)
		converted := make([]any, len(list))
		for i := range list {
			if converted[i], err = c.convert(list[i]); err != nil {
				return err
			}
		}
		out[key] = converted
	case mapWords[key]:
		all, _ := value.(map[string]any)
		converted := make(map[string]any, len(all))
		for name, schema := range all {
			if key == "patternProperties" && !compiles(name) {
				continue
			}
			if converted[name], err = c.convert(schema); err != nil {
				return err
			}
		}
		out[key] = converted
	case droppedWord[key], strings.HasPrefix(key, "x-"), key == "exclusiveMinimum", key == "exclusiveMaximum":
	case strings.HasPrefix(key, "$"):
		return fmt.Errorf("a schema of it uses %.20s, which is not read", key)
	}
	return err
}

func compiles(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil && pattern != ""
}

// bounds writes exclusive bounds as numbers: in OpenAPI 3.0 they are booleans beside minimum and maximum.
func (c *converter) bounds(out, m map[string]any) {
	for exclusive, inclusive := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		switch v := m[exclusive].(type) {
		case bool:
			if bound, ok := m[inclusive]; v && ok {
				out[exclusive] = bound
				delete(out, inclusive)
			}
		case json.Number:
			out[exclusive] = v
		}
	}
}

// dropReadOnly takes out of an object what only responses have.
func dropReadOnly(out, m map[string]any) {
	all, _ := m["properties"].(map[string]any)
	kept, _ := out["properties"].(map[string]any)
	required, _ := out["required"].([]any)
	for name, p := range all {
		if p, ok := p.(map[string]any); ok && p["readOnly"] == true {
			delete(kept, name)
			required = slices.DeleteFunc(slices.Clone(required), func(r any) bool { return r == name })
		}
	}
	if len(required) > 0 {
		out["required"] = required
	} else {
		delete(out, "required")
	}
}

func nullable(schema map[string]any) any {
	kind, ok := schema["type"].(string)
	if !ok {
		if len(schema) == 0 {
			return schema
		}
		return map[string]any{"anyOf": []any{schema, map[string]any{"type": "null"}}}
	}
	schema["type"] = []any{kind, "null"}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, nil) {
		schema["enum"] = append(slices.Clone(enum), nil)
	}
	return schema
}
