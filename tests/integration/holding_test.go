package integration

import (
	"context"
	"iter"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/model"
)

// holdingLLM is a model that says when it is asked and answers once it is let.
type holdingLLM struct {
	asked   chan string // the last text of each request
	release chan struct{}
}

func holding() *holdingLLM {
	return &holdingLLM{asked: make(chan string, 1000), release: make(chan struct{})}
}

func (*holdingLLM) Name() string { return "holding" }

func (m *holdingLLM) GenerateContent(ctx context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		text := ""
		for _, c := range req.Contents {
			for _, p := range c.Parts {
				if c.Role == genai.RoleUser && p.Text != "" {
					text = p.Text
				}
			}
		}
		m.asked <- text
		select {
		case <-m.release:
			yield(&model.LLMResponse{Content: genai.NewContentFromText("answer to "+text, genai.RoleModel), FinishReason: genai.FinishReasonStop, TurnComplete: true}, nil)
		case <-ctx.Done():
			yield(nil, ctx.Err())
		}
	}
}
