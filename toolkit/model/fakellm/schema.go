package fakellm

import (
	"slices"
	"strings"
)

// typedKeys are the keywords of Gemini's own schema, an extract of OpenAPI 3.0.
var typedKeys = []string{
	"type", "format", "title", "description", "nullable", "enum", "items", "maxItems", "minItems", "properties", "required",
	"minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering", "default",
	"minimum", "maximum",
}

// checkTyped refuses what the parameters field refuses.
func checkTyped(at string, s map[string]any) error {
	for k := range s {
		if !slices.Contains(typedKeys, k) {
			return invalid("Invalid JSON payload received. Unknown name %q at '%s': Cannot find field.", k, at)
		}
	}
	kind, ok := s["type"].(string)
	if !ok && s["type"] != nil {
		return invalid("%s.type: Proto field is not repeating, cannot start list.", at)
	}
	if s["enum"] != nil && !strings.EqualFold(kind, "string") {
		return invalid("%s.enum: only allowed for STRING type", at)
	}
	if strings.EqualFold(kind, "array") && s["items"] == nil {
		return invalid("%s.items: missing field.", at)
	}
	return below(at, s, func(at string, s map[string]any) error { return checkTyped(at, s) })
}

// checkJSON refuses what the parametersJsonSchema field is known to refuse.
func checkJSON(at string, s map[string]any, depth int) error {
	if depth > 64 {
		return invalid("%s: the schema is too deep", at)
	}
	for _, k := range []string{"$schema", "$ref", "$dynamicRef"} {
		if s[k] != nil {
			return invalid("%s: %s is not supported here", at, k)
		}
	}
	if enum, ok := s["enum"].([]any); ok {
		for _, v := range enum {
			if _, ok := v.(string); !ok {
				return invalid("%s.enum: only allowed for STRING type", at)
			}
		}
	}
	if s["type"] == "array" && s["items"] == nil {
		return invalid("%s.items: missing field.", at)
	}
	return below(at, s, func(at string, s map[string]any) error { return checkJSON(at, s, depth+1) })
}

// below checks required and goes on to the subschemas.
func below(at string, s map[string]any, check func(string, map[string]any) error) error {
	props, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for i, name := range required {
		if text, _ := name.(string); props[text] == nil {
			return invalid("%s.required[%d]: property is not defined", at, i)
		}
	}
	for name, p := range props {
		m, ok := p.(map[string]any)
		if !ok {
			return invalid("%s.properties[%s]: a schema is an object", at, name)
		}
		if err := check(at+".properties["+name+"]", m); err != nil {
			return err
		}
	}
	for _, k := range []string{"items", "additionalProperties"} {
		if m, ok := s[k].(map[string]any); ok {
			if err := check(at+"."+k, m); err != nil {
				return err
			}
		}
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		list, _ := s[k].([]any)
		for _, v := range list {
			if m, ok := v.(map[string]any); ok {
				if err := check(at+"."+k, m); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
