// Package exampletool shows a model examples of how to answer (few-shot), in its system instruction. Names and the text are
// those of ADK's exampletool.
package exampletool

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// Example is one exchange: what a user says, and what the model answers, calls of tools and their results included. What
// has the role model is the model's; everything else in Output is the user's side.
type Example struct {
	Input  *genai.Content   `json:"input"`
	Output []*genai.Content `json:"output"`
}

// ExampleToolConfig is what New takes. Without examples the tool does nothing.
type ExampleToolConfig struct {
	Examples []*Example
}

// Tool adds the examples to each request of a run that a message with text began. It is a tool.RequestProcessor, which
// models are told nothing of and cannot call. It may be used by many sessions at once.
type Tool struct {
	plain, fenced string // the block for each generation of models
}

var _ tool.RequestProcessor = (*Tool)(nil)

// New makes a tool of examples, which it reads now and not later. It returns an error that names a nil example, or one whose
// call has arguments that are no JSON.
func New(config ExampleToolConfig) (*Tool, error) {
	for i, e := range config.Examples {
		if e == nil {
			return nil, fmt.Errorf("example tool: Examples[%d]: %w", i, errNil)
		}
	}
	plain, err := write(config.Examples, plainFences)
	if err != nil {
		return nil, fmt.Errorf("example tool: %w", err)
	}
	fenced, err := write(config.Examples, namedFences)
	if err != nil {
		return nil, fmt.Errorf("example tool: %w", err)
	}
	return &Tool{plain: plain, fenced: fenced}, nil
}

var errNil = errors.New("the example is nil")

// Name is example_tool.
func (*Tool) Name() string { return "example_tool" }

// Description is nothing that a model sees.
func (*Tool) Description() string { return "example tool" }

// IsLongRunning is false.
func (*Tool) IsLongRunning() bool { return false }

// ProcessRequest appends the examples to the system instruction.
func (t *Tool) ProcessRequest(ctx tool.Context, req *model.LLMRequest) error {
	if !hasText(ctx.UserContent()) {
		return nil
	}
	text := t.plain
	if namesFences(req.Model) {
		text = t.fenced
	}
	req.AppendInstructions(text)
	return nil
}

func hasText(c *genai.Content) bool {
	return c != nil && slices.ContainsFunc(c.Parts, func(p *genai.Part) bool { return p != nil && p.Text != "" })
}
