package scripted

import (
	"bytes"
	"encoding/json"
	"strings"

	"google.golang.org/genai"
)

// state is the conversation as rules see it: what was said and done since the user last spoke.
type state struct {
	user    string
	turn    int // model answers since then
	results []result
	asked   int // model answers in the whole conversation
}

type result struct {
	tool  string
	args  any
	value any    // as templates see it: numbers keep their digits, {"result": v} is v
	json  string // of value
}

func stateOf(contents []*genai.Content) state {
	var s state
	from := 0
	for i, c := range contents {
		if text, ok := userText(c); ok {
			s.user, from = text, i+1
		}
		if c != nil && c.Role == genai.RoleModel {
			s.asked++
		}
	}
	var open []*genai.FunctionCall
	for _, c := range contents[from:] {
		if c == nil {
			continue
		}
		if c.Role == genai.RoleModel {
			s.turn++
			open = nil
		}
		for _, p := range c.Parts {
			switch {
			case p == nil:
			case p.FunctionCall != nil:
				open = append(open, p.FunctionCall)
			case p.FunctionResponse != nil:
				s.results = append(s.results, resultOf(p.FunctionResponse, &open))
			}
		}
	}
	return s
}

// forContext is how a content begins that tells of what other agents said and did.
const forContext = "For context:"

// userText is the text of a content in which the user speaks: role user, no answers of tools in it, nor what other agents
// said.
func userText(c *genai.Content) (string, bool) {
	if c == nil || c.Role == genai.RoleModel || len(c.Parts) > 0 && c.Parts[0] != nil && c.Parts[0].Text == forContext {
		return "", false
	}
	var b strings.Builder
	for _, p := range c.Parts {
		if p == nil {
			continue
		}
		if p.FunctionResponse != nil {
			return "", false
		}
		b.WriteString(p.Text)
	}
	return b.String(), b.Len() > 0
}

// resultOf pairs a response with its call, by id and else by the first open call of its name, and takes that call out.
func resultOf(r *genai.FunctionResponse, open *[]*genai.FunctionCall) result {
	out := result{tool: r.Name, args: map[string]any{}, value: exact(r.Response)}
	for i, c := range *open {
		if c.Name == r.Name && (r.ID == "" || c.ID == "" || r.ID == c.ID) {
			if args := exact(c.Args); args != nil {
				out.args = args
			}
			*open = append((*open)[:i:i], (*open)[i+1:]...)
			break
		}
	}
	if m, ok := out.value.(map[string]any); ok && len(m) == 1 {
		if v, ok := m["result"]; ok {
			out.value = v
		}
	}
	out.json = encode(out.value)
	return out
}

// exact is v as JSON values with json.Number, so that a template prints 1234567 and not 1.234567e+06.
func exact(v any) any {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var out any
	_ = d.Decode(&out)
	return out
}

// encode is v as compact JSON, without the escapes that HTML needs.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "null"
	}
	return strings.TrimSuffix(b.String(), "\n")
}
