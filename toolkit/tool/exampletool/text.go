package exampletool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/genai"
)

// fences are what stands before a call and before a result. Gemini 2 was trained on named ones.
type fences struct{ call, response string }

var (
	plainFences = fences{"```\n", "```\n"}
	namedFences = fences{"```tool_code\n", "```tool_outputs\n"}
)

func namesFences(model string) bool { return strings.Contains(model, "gemini-2") }

// The marks that a model knows the examples by.
const (
	intro = "<EXAMPLES>\nBegin few-shot\nThe following are examples of user queries and model responses using the available tools.\n\n"
	end   = "End few-shot"
	outro = end + "\n<EXAMPLES>"
	shut  = "\n```\n"
)

// masked is text that cannot end the examples early.
func masked(text string) string { return strings.ReplaceAll(text, end, "[PROTECTED]") }

// write is the block of text, empty without examples.
func write(examples []*Example, f fences) (string, error) {
	if len(examples) == 0 {
		return "", nil
	}
	var b strings.Builder
	b.WriteString(intro)
	for i, e := range examples {
		fmt.Fprintf(&b, "EXAMPLE %d:\nBegin example\n[user]\n", i+1)
		if e.Input != nil {
			for _, p := range e.Input.Parts {
				if p != nil {
					writeText(&b, p.Text)
				}
			}
		}
		if err := writeOutput(&b, e.Output, f); err != nil {
			return "", fmt.Errorf("Examples[%d]: %w", i, err)
		}
		b.WriteString("End example\n\n")
	}
	b.WriteString(outro)
	return b.String(), nil
}

// writeOutput says whose turn it is only when that changes.
func writeOutput(b *strings.Builder, output []*genai.Content, f fences) error {
	before := ""
	for _, c := range output {
		if c == nil {
			continue
		}
		role := "[user]\n"
		if c.Role == genai.RoleModel {
			role = "[model]\n"
		}
		if role != before {
			b.WriteString(role)
		}
		before = role
		for _, p := range c.Parts {
			switch {
			case p == nil:
			case p.FunctionCall != nil:
				text, err := call(p.FunctionCall)
				if err != nil {
					return err
				}
				b.WriteString(f.call + masked(text) + shut)
			case p.FunctionResponse != nil:
				text, err := encode(p.FunctionResponse.Response)
				if err != nil {
					return fmt.Errorf("the result of %s: %w", p.FunctionResponse.Name, err)
				}
				b.WriteString(f.response + masked(text) + shut)
			default:
				writeText(b, p.Text)
			}
		}
	}
	return nil
}

func writeText(b *strings.Builder, text string) {
	if text != "" {
		b.WriteString(masked(text) + "\n")
	}
}

// call is a call as Python writes it, its arguments by name: lookup(city='Oslo', days=3).
func call(c *genai.FunctionCall) (string, error) {
	args := make([]string, 0, len(c.Args))
	for _, name := range slices.Sorted(maps.Keys(c.Args)) {
		if s, ok := c.Args[name].(string); ok {
			args = append(args, name+"='"+quoted.Replace(s)+"'")
			continue
		}
		text, err := encode(c.Args[name])
		if err != nil {
			return "", fmt.Errorf("argument %s of %s: %w", name, c.Name, err)
		}
		args = append(args, name+"="+text)
	}
	return c.Name + "(" + strings.Join(args, ", ") + ")", nil
}

var quoted = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`)

// encode writes keys in order, and text as it is.
func encode(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
