package gemini

import (
	"bytes"
	"encoding/json"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

// question is a request as the SDK takes it. Nothing in it is shared with the LLMRequest.
type question struct {
	model    string
	contents []*genai.Content
	config   *genai.GenerateContentConfig
	schemas  map[string]schema // of the declared tools
}

// goOn is said in the user's place when the history ends with the model's own words: Gemini answers users only.
const goOn = "Go on with what you were asked. If nothing is left to do, say what was done."

func (m *llm) prepare(req *model.LLMRequest) (*question, error) {
	q := &question{model: req.Model, schemas: map[string]schema{}}
	if q.model == "" {
		q.model = m.cfg.Model
	}
	config := genai.GenerateContentConfig{}
	if req.Config != nil {
		config = *req.Config
	}
	if config.SystemInstruction != nil {
		system := *config.SystemInstruction
		config.SystemInstruction = &system
	}
	config.Tools, config.ToolConfig = m.declare(config.Tools, config.ToolConfig, q.schemas)
	config.HTTPOptions = options(config.HTTPOptions)
	config.AutomaticContinuation = new(bool)
	q.config = &config
	// What cannot be encoded would go out as an empty body, without an error.
	if _, err := json.Marshal(struct {
		*genai.GenerateContentConfig
		HTTPOptions any `json:"httpOptions,omitempty"`
	}{GenerateContentConfig: q.config}); err != nil {
		return nil, protocol.Wrap(err, protocol.CodeModelRefused, "the model's configuration cannot be encoded: %v", err)
	}
	for i, c := range req.Contents {
		out, err := q.content(c)
		if err != nil {
			return nil, protocol.Wrap(err, protocol.CodeModelRefused, "content %d of the request cannot be encoded: %v", i, err)
		}
		if len(out.Parts) > 0 {
			q.contents = append(q.contents, out)
		}
	}
	if n := len(q.contents); n == 0 || q.contents[n-1].Role == genai.RoleModel {
		q.contents = append(q.contents, genai.NewContentFromText(goOn, genai.RoleUser))
	}
	return q, nil
}

// options keeps a request's own HTTP settings but for retries: those are ours.
func options(o *genai.HTTPOptions) *genai.HTTPOptions {
	if o == nil {
		return nil
	}
	out := *o
	out.RetryOptions = nil
	out.Headers = o.Headers.Clone()
	return &out
}

// content is a deep copy of c in the form Gemini takes.
func (q *question) content(c *genai.Content) (*genai.Content, error) {
	b, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	out := &genai.Content{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(out); err != nil {
		return nil, err
	}
	if out.Role == "" {
		out.Role = genai.RoleUser
	}
	parts := out.Parts[:0]
	for _, p := range out.Parts {
		if p == nil || isZero(p) {
			continue
		}
		if f := p.FunctionCall; f != nil {
			f.Args = q.schemas[f.Name].toModel(f.Args)
			f.PartialArgs, f.WillContinue = nil, nil
		}
		if f := p.FunctionResponse; f != nil {
			f.Response = visible(wideToText(f.Response).(map[string]any))
		}
		parts = append(parts, p)
	}
	out.Parts = parts
	return out, nil
}

func isZero(p *genai.Part) bool {
	b, err := json.Marshal(p)
	return err == nil && string(b) == "{}"
}

// visible puts a result into a form of which the model sees everything. An empty object would be left out of the body.
// Gemini takes output and error for the whole answer, so a result that has them among fields of its own is nested.
func visible(response map[string]any) map[string]any {
	_, output := response["output"]
	_, failed := response["error"]
	switch {
	case len(response) == 0:
		return map[string]any{"result": map[string]any{}}
	case len(response) > 1 && (output || failed):
		return map[string]any{"result": response}
	}
	return response
}

// restore turns the calls of an answer back into what the tools' own schemas speak of, and lists what may be rounded.
func (q *question) restore(r *model.LLMResponse) {
	var inexact []model.InexactArg
	call := 0
	for _, p := range r.Content.Parts {
		f := p.FunctionCall
		if f == nil {
			continue
		}
		args, doubtful := q.schemas[f.Name].fromModel(f.Args)
		f.Args = args
		for _, pointer := range doubtful {
			inexact = append(inexact, model.InexactArg{Call: call, Pointer: pointer})
		}
		call++
	}
	if inexact != nil {
		r.CustomMetadata = map[string]any{model.InexactArgs: inexact}
	}
}
