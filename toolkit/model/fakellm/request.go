package fakellm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"google.golang.org/genai"
)

// request is the part of a request that is looked at. Other known fields are only known.
type request struct {
	Contents          []*genai.Content `json:"contents"`
	Tools             []tool           `json:"tools"`
	ToolConfig        json.RawMessage  `json:"toolConfig"`
	SystemInstruction *genai.Content   `json:"systemInstruction"`
	GenerationConfig  json.RawMessage  `json:"generationConfig"`
	SafetySettings    json.RawMessage  `json:"safetySettings"`
	CachedContent     json.RawMessage  `json:"cachedContent"`
	ServiceTier       json.RawMessage  `json:"serviceTier"`
	Store             json.RawMessage  `json:"store"`
	Model             json.RawMessage  `json:"model"`
}

type tool struct {
	FunctionDeclarations []function `json:"functionDeclarations"`
}

type function struct {
	Name                 string         `json:"name"`
	Parameters           map[string]any `json:"parameters"`
	ParametersJSONSchema map[string]any `json:"parametersJsonSchema"`
	Response             map[string]any `json:"response"`
	ResponseJSONSchema   any            `json:"responseJsonSchema"`
}

// readRequest reads a body as strictly as Gemini does. Its errors are *apiFault.
func readRequest(body []byte) (*request, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, invalid("the request body is empty: contents is required")
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(body, &top); err != nil {
		return nil, invalid("Invalid JSON payload received. %v", err)
	}
	for key := range top {
		if !slices.Contains(known, key) {
			return nil, invalid("Invalid JSON payload received. Unknown name %q: Cannot find field.", key)
		}
	}
	q := &request{}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(q); err != nil {
		return nil, invalid("Invalid JSON payload received. %v", err)
	}
	if err := checkContents(q.Contents); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for i, t := range q.Tools {
		for j, f := range t.FunctionDeclarations {
			at := fmt.Sprintf("tools[%d].function_declarations[%d]", i, j)
			if err := f.check(at); err != nil {
				return nil, err
			}
			if names[f.Name] {
				return nil, invalid("%s: Duplicate function declaration found: %s", at, f.Name)
			}
			names[f.Name] = true
		}
	}
	return q, nil
}

var known = []string{
	"contents", "tools", "toolConfig", "systemInstruction", "generationConfig", "safetySettings", "cachedContent",
	"serviceTier", "store", "model",
}

// checkContents wants an answer for every call, in order, and the user to have the last word.
func checkContents(contents []*genai.Content) error {
	if len(contents) == 0 {
		return invalid("contents is not specified")
	}
	var open []*genai.FunctionCall
	for i, c := range contents {
		if c == nil || len(c.Parts) == 0 {
			return invalid("contents[%d].parts must not be empty", i)
		}
		switch c.Role {
		case "", "user", "model", "function":
		default:
			return invalid("contents[%d].role: Please use a valid role: user, model.", i)
		}
		var calls []*genai.FunctionCall
		var answers []*genai.FunctionResponse
		for j, p := range c.Parts {
			if b, err := json.Marshal(p); err != nil || string(b) == "{}" || string(b) == "null" {
				return invalid("contents[%d].parts[%d].data: required oneof field 'data' must have one initialized field", i, j)
			}
			if p.FunctionCall != nil {
				calls = append(calls, p.FunctionCall)
			}
			if p.FunctionResponse != nil {
				answers = append(answers, p.FunctionResponse)
			}
		}
		if len(calls) > 0 && c.Role != "model" {
			return invalid("contents[%d]: function calls come from the model", i)
		}
		if err := checkAnswers(i, open, answers); err != nil {
			return err
		}
		open = calls
	}
	if contents[len(contents)-1].Role == "model" {
		return invalid("Please ensure that the last content has role user: multi-turn requests end with a user role or a function response")
	}
	return nil
}

func checkAnswers(i int, calls []*genai.FunctionCall, answers []*genai.FunctionResponse) error {
	if len(answers) != len(calls) {
		return invalid("contents[%d]: Please ensure that the number of function response parts (%d) is equal to the number of function call parts of the function call turn (%d).", i, len(answers), len(calls))
	}
	for k, a := range answers {
		if a.Name != calls[k].Name || a.ID != calls[k].ID {
			return invalid("contents[%d]: function response %d is for %q (id %q), but call %d was of %q (id %q)", i, k, a.Name, a.ID, k, calls[k].Name, calls[k].ID)
		}
		if a.Response == nil {
			return invalid("contents[%d]: function response %d of %q has no response", i, k, a.Name)
		}
	}
	return nil
}

var functionName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$`)

func (f *function) check(at string) error {
	switch {
	case !functionName.MatchString(f.Name):
		return invalid("%s.name: Invalid function name %q. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:) or dashes (-), with a maximum length of 128.", at, f.Name)
	case f.Parameters != nil && f.ParametersJSONSchema != nil:
		return invalid("%s: only one of parameters and parametersJsonSchema can be set", at)
	case f.Response != nil && f.ResponseJSONSchema != nil:
		return invalid("%s: only one of response and responseJsonSchema can be set", at)
	}
	if f.Parameters != nil {
		return checkTyped(at+".parameters", f.Parameters)
	}
	if f.ParametersJSONSchema != nil {
		if f.ParametersJSONSchema["type"] != "object" {
			return invalid("%s.parameters_json_schema: the schema must describe an object", at)
		}
		return checkJSON(at+".parameters_json_schema", f.ParametersJSONSchema, 0)
	}
	return nil
}
