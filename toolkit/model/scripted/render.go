package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"text/template"

	"google.golang.org/genai"
)

// maxText bounds what one template may write, in bytes.
const maxText = 1 << 20

// functions are what templates may use besides the built-in ones.
var functions = template.FuncMap{
	"json":   encode,
	"trim":   strings.TrimSpace,
	"upper":  strings.ToUpper,
	"lower":  strings.ToLower,
	"fields": strings.Fields,
	"join":   join,
	"sum":    sum,
}

// join writes the items of a list with sep between them.
func join(sep string, list []any) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, sep)
}

// sum adds numbers exactly: its arguments are numbers, or lists of them. Other values are an error.
func sum(values ...any) (string, error) {
	total := new(big.Rat)
	for len(values) > 0 {
		v := values[0]
		values = values[1:]
		if list, ok := v.([]any); ok {
			values = append(values, list...)
			continue
		}
		n, ok := new(big.Rat).SetString(fmt.Sprint(v))
		if !ok {
			return "", fmt.Errorf("sum: %v is no number", v)
		}
		total.Add(total, n)
	}
	if total.IsInt() {
		return total.Num().String(), nil
	}
	return strings.TrimRight(total.FloatString(9), "0"), nil
}

// data is what templates see: .user, .turn, the captures by name, and .results, which has for each tool the list of its
// answers since the user spoke, each with .args and .value.
func (s state) data(captures map[string]any) map[string]any {
	results := map[string]any{}
	for _, r := range s.results {
		list, _ := results[r.tool].([]any)
		results[r.tool] = append(list, map[string]any{"args": r.args, "value": r.value})
	}
	out := map[string]any{}
	for k, v := range captures {
		out[k] = v
	}
	out["user"], out["turn"], out["results"] = s.user, s.turn, results
	return out
}

func render(t *template.Template, data map[string]any) (string, error) {
	var b limited
	if err := t.Execute(&b, data); err != nil {
		return "", err
	}
	return b.String(), nil
}

type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxText {
		return 0, errors.New("the template writes too much")
	}
	return l.Buffer.Write(p)
}

// fill renders the templates in an argument value. A mapping whose only key is json stands for the JSON that its
// template writes, so that a captured number arrives as a number.
func fill(v any, data map[string]any) (any, error) {
	switch v := v.(type) {
	case *template.Template:
		return render(v, data)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var err error
			if out[i], err = fill(v[i], data); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		if t, ok := v["json"].(*template.Template); ok && len(v) == 1 {
			return typed(t, data)
		}
		out := make(map[string]any, len(v))
		for k := range v {
			var err error
			if out[k], err = fill(v[k], data); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

func typed(t *template.Template, data map[string]any) (any, error) {
	text, err := render(t, data)
	if err != nil {
		return nil, err
	}
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("json: %.80q is no JSON", text)
	}
	return exact(json.RawMessage(text)), nil
}

// expand is the calls that c makes: one, or one per item.
func (c *callRule) expand(data map[string]any) ([]*genai.FunctionCall, error) {
	one := func(data map[string]any) (*genai.FunctionCall, error) {
		args, err := fill(c.args, data)
		if err != nil {
			return nil, fmt.Errorf("call of %s: %w", c.tool, err)
		}
		return &genai.FunctionCall{Name: c.tool, Args: args.(map[string]any)}, nil
	}
	if c.each == nil {
		call, err := one(data)
		return []*genai.FunctionCall{call}, err
	}
	text, err := render(c.each.of, data)
	if err != nil {
		return nil, fmt.Errorf("call of %s: each: %w", c.tool, err)
	}
	var out []*genai.FunctionCall
	for _, item := range c.each.split.Split(text, -1) {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		mine := map[string]any{"index": len(out)}
		for k, v := range data {
			mine[k] = v
		}
		mine[c.each.as] = item
		call, err := one(mine)
		if err != nil {
			return nil, err
		}
		out = append(out, call)
	}
	return out, nil
}
