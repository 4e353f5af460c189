package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// schema is a JSON Schema with every reference written out and nothing in it that Gemini does not read. Numbers are
// json.Number. The nil schema allows everything.
type schema map[string]any

// Bounds of writing out references.
const (
	maxSchemaDepth = 32
	maxSchemaNodes = 2000
	maxUnroll      = 2 // of one reference within itself
)

// kept are the keywords that are copied as they are.
var kept = []string{
	"type", "format", "title", "description", "enum", "const", "default", "minimum", "maximum", "exclusiveMinimum",
	"exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems",
	"minProperties", "maxProperties", "propertyOrdering",
}

// expand makes a schema of raw, which is anything that encodes to a JSON object. It returns an error when it does not.
func expand(raw any) (schema, error) {
	b, err := json.Marshal(raw)
	if err != nil {
		return nil, fmt.Errorf("its schema cannot be encoded: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var root map[string]any
	if err := d.Decode(&root); err != nil || root == nil {
		return nil, fmt.Errorf("its schema is no JSON object")
	}
	e := &expander{root: root, open: map[string]int{}}
	out := e.object(root, 0)
	if out["type"] == nil && out["properties"] != nil {
		out["type"] = "object"
	}
	if out["type"] == "object" && out["properties"] == nil {
		out["properties"] = map[string]any{}
	}
	return out, nil
}

type expander struct {
	root  map[string]any
	open  map[string]int // references being written out
	nodes int
}

// opaque stands for what is not written out: a value of a known kind about which nothing else is said.
func opaque(of map[string]any) schema {
	out := schema{"type": "object"}
	for _, k := range []string{"type", "description"} {
		if v, ok := of[k]; ok {
			out[k] = v
		}
	}
	if out["type"] == "array" {
		out["items"] = map[string]any{}
	}
	return out
}

// any writes out one subschema, which may be true or false.
func (e *expander) any(v any, depth int) schema {
	m, _ := v.(map[string]any)
	return e.object(m, depth)
}

func (e *expander) object(s map[string]any, depth int) schema {
	e.nodes++
	if depth > maxSchemaDepth || e.nodes > maxSchemaNodes {
		return opaque(s)
	}
	out := schema{}
	if ref, ok := s["$ref"].(string); ok {
		out = e.reference(ref, depth)
	}
	for _, k := range kept {
		if v, ok := s[k]; ok && fits(k, v) {
			out[k] = v
		}
	}
	if props, ok := s["properties"].(map[string]any); ok {
		all, _ := out["properties"].(map[string]any)
		all = orEmpty(all)
		for _, name := range slices.Sorted(maps.Keys(props)) {
			if props[name] != false { // a property that nothing satisfies
				all[name] = map[string]any(e.any(props[name], depth+1))
			}
		}
		out["properties"] = all
	}
	for _, k := range []string{"items", "additionalProperties"} {
		switch v := s[k].(type) {
		case map[string]any:
			out[k] = map[string]any(e.object(v, depth+1))
		case bool:
			if k == "additionalProperties" {
				out[k] = v
			}
		}
	}
	for _, k := range []string{"anyOf", "oneOf", "prefixItems"} {
		if list, ok := s[k].([]any); ok && len(list) > 0 {
			branches := make([]any, len(list))
			for i := range list {
				branches[i] = map[string]any(e.any(list[i], depth+1))
			}
			out[k] = branches
		}
	}
	require(out, s["required"])
	if list, ok := s["allOf"].([]any); ok {
		for _, v := range list {
			merge(out, e.any(v, depth+1))
		}
	}
	if isType(out, "array") && out["items"] == nil {
		out["items"] = map[string]any{}
	}
	prune(out)
	return out
}

// fits reports whether a keyword's value is one that Gemini can read. The SDK sends numbers as float64.
func fits(key string, v any) bool {
	switch key {
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		n, ok := v.(json.Number)
		if !ok {
			return false
		}
		f, err := n.Float64()
		return err == nil && math.Abs(f) < 1<<53
	case "default":
		n, ok := v.(json.Number)
		return !ok || wideToText(n) == any(n)
	case "enum":
		list, ok := v.([]any)
		return ok && len(list) > 0
	}
	return true
}

// reference writes out what ref names. What cannot be found or has no end becomes opaque.
func (e *expander) reference(ref string, depth int) schema {
	target, ok := e.find(ref)
	if !ok || e.open[ref] >= maxUnroll {
		return opaque(target)
	}
	e.open[ref]++
	defer func() { e.open[ref]-- }()
	return e.object(target, depth+1)
}

// find follows a JSON pointer within the document. Documents elsewhere and anchors are not followed.
func (e *expander) find(ref string) (map[string]any, bool) {
	fragment, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	if text, err := url.PathUnescape(fragment); err == nil {
		fragment = text
	}
	var at any = e.root
	if fragment != "" {
		if fragment[0] != '/' {
			return nil, false
		}
		for step := range strings.SplitSeq(fragment[1:], "/") {
			step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
			switch v := at.(type) {
			case map[string]any:
				at = v[step]
			case []any:
				i, err := strconv.Atoi(step)
				if err != nil || i < 0 || i >= len(v) {
					return nil, false
				}
				at = v[i]
			default:
				return nil, false
			}
		}
	}
	m, ok := at.(map[string]any)
	return m, ok
}

// merge adds what a branch of allOf says. Where both speak, out wins.
func merge(out, branch schema) {
	for k, v := range branch {
		switch k {
		case "properties":
			props, _ := out[k].(map[string]any)
			props = orEmpty(props)
			for name, p := range v.(map[string]any) {
				if props[name] == nil {
					props[name] = p
				}
			}
			out[k] = props
		case "required":
			require(out, v)
		default:
			if out[k] == nil {
				out[k] = v
			}
		}
	}
}

func require(out schema, names any) {
	list, _ := names.([]any)
	have, _ := out["required"].([]any)
	for _, name := range list {
		if _, ok := name.(string); ok && !slices.Contains(have, name) {
			have = append(have, name)
		}
	}
	if len(have) > 0 {
		out["required"] = have
	}
}

// prune takes out of required what is no property. A branch of allOf may require what its sibling declares, so a schema
// without properties keeps its list until it has been merged.
func prune(s schema) {
	props, ok := s["properties"].(map[string]any)
	list, _ := s["required"].([]any)
	if !ok {
		return
	}
	var have []any
	for _, name := range list {
		if _, ok := props[name.(string)]; ok {
			have = append(have, name)
		}
	}
	delete(s, "required")
	if have != nil {
		s["required"] = have
	}
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// isType reports whether the type keyword names t, alone or in a list.
func isType(s map[string]any, t string) bool {
	switch v := s["type"].(type) {
	case string:
		return v == t
	case []any:
		return slices.Contains(v, any(t))
	}
	return false
}
