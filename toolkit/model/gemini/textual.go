package gemini

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Gemini takes enums of text only, and its SDK cannot carry a 64-bit integer. Such parameters are declared as text:
// textual makes the declaration, toModel and fromModel carry arguments over and back.

// textual is the schema as it is declared: enums and constants of any kind as enums of text, 64-bit integers as digits.
func (s schema) textual() schema {
	out := maps.Clone(s)
	for _, k := range []string{"items", "additionalProperties"} {
		if v, ok := s[k].(map[string]any); ok {
			out[k] = map[string]any(schema(v).textual())
		}
	}
	if props, ok := s["properties"].(map[string]any); ok {
		all := make(map[string]any, len(props))
		for name, v := range props {
			all[name] = map[string]any(schema(v.(map[string]any)).textual())
		}
		out["properties"] = all
	} else {
		delete(out, "required")
	}
	for _, k := range []string{"anyOf", "oneOf", "prefixItems"} {
		if list, ok := s[k].([]any); ok {
			all := make([]any, len(list))
			for i, v := range list {
				all[i] = map[string]any(schema(v.(map[string]any)).textual())
			}
			out[k] = all
		}
	}
	delete(out, "enum")
	delete(out, "const")
	if values := s.choices(); values != nil {
		texts := make([]any, 0, len(values))
		for _, v := range values {
			if v != nil && !slices.Contains(texts, any(textOf(v))) {
				texts = append(texts, textOf(v))
			}
		}
		if len(texts) > 0 {
			out["enum"] = texts
			out.becomeText(slices.Contains(values, nil))
		}
	} else if s.wide() {
		out.becomeText(isType(s, "null"))
		text, _ := s["description"].(string)
		out["description"] = strings.TrimSpace(text + " (a whole number, written as decimal digits)")
	}
	return out
}

// becomeText makes s a schema of text and takes out what says something about numbers.
func (s schema) becomeText(orNull bool) {
	for _, k := range []string{"default", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"} {
		delete(s, k)
	}
	s["type"] = "string"
	if orNull {
		s["type"] = []any{"string", "null"}
	}
}

// choices are the values of an enum or of a constant; nil when there is neither, or when one of them is no scalar.
func (s schema) choices() []any {
	values, _ := s["enum"].([]any)
	if v, ok := s["const"]; ok {
		values = []any{v}
	}
	for _, v := range values {
		switch v.(type) {
		case map[string]any, []any:
			return nil
		}
	}
	return values
}

// wide reports whether s is a 64-bit integer.
func (s schema) wide() bool {
	return isType(s, "integer") && (s["format"] == "int64" || s["format"] == "uint64")
}

func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// toModel is args as the model would have said them.
func (s schema) toModel(args map[string]any) map[string]any {
	out, _ := wideToText(walk(args, []schema{s}, "", func(v any, at []schema, _ string) any {
		for _, s := range at {
			if values := s.choices(); v != nil && slices.Contains(values, v) || s.wide() && isNumber(v) {
				return textOf(v)
			}
		}
		return v
	})).(map[string]any)
	return out
}

var digits = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,19})$`)

// fromModel is args as the tool's own schema means them, and the JSON pointers of numbers that may have been rounded.
func (s schema) fromModel(args map[string]any) (map[string]any, []string) {
	var doubtful []string
	out := walk(args, []schema{s}, "", func(v any, at []schema, pointer string) any {
		switch v := v.(type) {
		case string:
			return meaning(v, at)
		case float64:
			if math.Abs(v) >= 1<<53 && !slices.ContainsFunc(at, func(s schema) bool { return isType(s, "number") }) {
				doubtful = append(doubtful, pointer)
			}
		}
		return v
	})
	slices.Sort(doubtful)
	return out.(map[string]any), doubtful
}

// meaning is what a text stands for. Where text itself is allowed it stands for itself.
func meaning(text string, at []schema) any {
	for _, s := range at {
		values := s.choices()
		if slices.Contains(values, any(text)) || values == nil && (isType(s, "string") || len(at) == 1 && s["type"] == nil) {
			return text
		}
	}
	for _, s := range at {
		for _, v := range s.choices() {
			if v != nil && textOf(v) == text {
				return number(v)
			}
		}
		if s.wide() && digits.MatchString(text) {
			return json.Number(text)
		}
	}
	return text
}

// number is v as the SDK would decode it, where that is exact.
func number(v any) any {
	n, ok := v.(json.Number)
	if !ok {
		return v
	}
	if f, err := n.Float64(); err == nil && math.Abs(f) < 1<<53 {
		return f
	}
	return n
}

func isNumber(v any) bool {
	switch v.(type) {
	case json.Number, float64:
		return true
	}
	return false
}

// walk rebuilds v, giving each scalar to leaf together with the schemas that speak about its place.
func walk(v any, at []schema, pointer string, leaf func(v any, at []schema, pointer string) any) any {
	at = branches(at)
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			var below []schema
			for _, s := range at {
				props, _ := s["properties"].(map[string]any)
				if p, ok := props[k].(map[string]any); ok {
					below = append(below, p)
				} else if p, ok := s["additionalProperties"].(map[string]any); ok {
					below = append(below, p)
				}
			}
			out[k] = walk(x, below, pointer+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(k), leaf)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			var below []schema
			for _, s := range at {
				first, _ := s["prefixItems"].([]any)
				if i < len(first) {
					below = append(below, first[i].(map[string]any))
				} else if p, ok := s["items"].(map[string]any); ok {
					below = append(below, p)
				}
			}
			out[i] = walk(x, below, fmt.Sprintf("%s/%d", pointer, i), leaf)
		}
		return out
	}
	return leaf(v, at, pointer)
}

// branches are the schemas and all their alternatives.
func branches(at []schema) []schema {
	var out []schema
	for _, s := range at {
		out = append(out, s)
		for _, k := range []string{"anyOf", "oneOf"} {
			list, _ := s[k].([]any)
			for _, v := range list {
				out = append(out, branches([]schema{v.(map[string]any)})...)
			}
		}
	}
	return out
}

// wideToText writes every integer of 2^53 or more as text, which is how the SDK leaves it alone.
func wideToText(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = wideToText(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = wideToText(x)
		}
		return out
	case json.Number:
		if strings.ContainsAny(string(v), ".eE") {
			return v
		}
		if f, err := v.Float64(); err != nil || math.Abs(f) >= 1<<53 {
			return string(v)
		}
	}
	return v
}
