package turn

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

// Run is what a request tells instruction providers and templates about where it is made.
type Run struct {
	App, User, Session string
	Invocation         string                     // id of the run
	State              map[string]json.RawMessage // temp: keys included
	Root               *llmagent.LLMAgent         // of the tree of agents, whose global instruction counts; nil is the agent itself
}

// Request builds what a's model is asked next. open are the answers that the log does not hold yet, of the open
// turn's calls and of earlier ones that were pending, in any order; a call of the open turn without one is answered with
// an error, so a model is asked once all have ended or are pending with a value. offers may come in any order. The log is not asked again: Seq tells what the
// request was built from.
//
// An output schema is enforced by the provider when there are no tools. Beside tools providers refuse or ignore that, so
// the model is told by instruction. Decide checks the answer in both cases.
//
// It returns an *Error of code internal for a log that cannot be shown or in which the model has the last word, and of
// code model_failed when an instruction cannot be made.
func (h *History) Request(ctx context.Context, a *llmagent.LLMAgent, run Run, offers []Offer, open []protocol.Answer) (*model.LLMRequest, error) {
	cfg := a.Config()
	contents, err := h.ContentsFor(a.Name(), open, cfg.IncludeContents == llmagent.IncludeContentsNone)
	if err != nil {
		return nil, err
	}
	if n := len(contents); n == 0 || contents[n-1].Role != genai.RoleUser {
		return nil, protocol.Errorf(protocol.CodeInternal, "the model has nothing to answer after sequence %d of the session's log", h.seq)
	}
	instruction, err := a.Instructions(readonly{Context: ctx, agent: a.Name(), run: run, message: h.runMessage(open)}, run.Root)
	if err != nil {
		return nil, err
	}
	generate := genai.GenerateContentConfig{}
	if cfg.GenerateContentConfig != nil {
		generate = *cfg.GenerateContentConfig
	}
	if schema := a.OutputSchema(); schema != nil {
		if len(offers) == 0 {
			generate.ResponseJsonSchema = schema
			generate.ResponseMIMEType = "application/json"
		} else {
			instruction += "\n\nYour final answer, the one that calls no tool, is a single JSON value and nothing else. It fits this JSON Schema:\n" + string(schema)
		}
	}
	for i := range offers {
		if more := offers[i].Instruction; more != "" {
			instruction += "\n\n" + more
		}
	}
	generate.SystemInstruction = &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{Text: instruction}}}
	if len(offers) > 0 {
		generate.Tools = []*genai.Tool{{FunctionDeclarations: declare(offers)}}
	}
	return &model.LLMRequest{Model: cfg.Model.Name(), Contents: contents, Config: &generate}, nil
}

// declare writes the declarations in order of their names, so that equal requests are equal bytes: providers cache by
// prefix. The schema goes out as its worker wrote it.
func declare(offers []Offer) []*genai.FunctionDeclaration {
	list := make([]*genai.FunctionDeclaration, len(offers))
	for i := range offers {
		d := &offers[i].Declaration
		list[i] = &genai.FunctionDeclaration{Name: d.Name, Description: d.Description, ParametersJsonSchema: d.Parameters}
	}
	slices.SortFunc(list, func(x, y *genai.FunctionDeclaration) int { return strings.Compare(x.Name, y.Name) })
	return list
}
