package scripted

import (
	"context"
	"iter"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/model/internal/assemble"
)

// attempts is how often one question is asked when the script answers with faults that pass.
const attempts = 4

// New is a model that plays s. It answers as a provider's adapter would: faults that pass are asked again up to three
// times, others and cut answers are errors.
func New(name string, s *Script) model.LLM {
	return &llm{name: name, player: NewPlayer(s)}
}

type llm struct {
	name   string
	player *Player
}

func (m *llm) Name() string { return m.name }

// Provider implements model.Provided.
func (m *llm) Provider() string { return "scripted" }

func (m *llm) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		reply, err := m.ask(ctx, req)
		if err != nil {
			yield(nil, err)
			return
		}
		var answer assemble.Assembler
		for i, c := range reply.Chunks {
			if reply.Cut && i == len(reply.Chunks)-1 {
				break
			}
			if err := wait(ctx, reply.Delay); err != nil {
				yield(nil, err)
				return
			}
			partial, err := answer.Add(c.Response(m.name))
			if err != nil {
				yield(nil, err)
				return
			}
			if stream && partial != nil && !yield(partial, nil) {
				return
			}
		}
		yield(answer.Final())
	}
}

func (m *llm) ask(ctx context.Context, req *model.LLMRequest) (*Reply, error) {
	for try := 1; ; try++ {
		if err := protocol.ContextError(ctx); err != nil {
			return nil, err
		}
		reply, err := m.player.Reply(req.Contents)
		if err != nil || reply.Fault == nil {
			return reply, err
		}
		if !reply.Fault.Transient() {
			return nil, protocol.Errorf(protocol.CodeModelRefused, "the script answered %d: %s", reply.Fault.Status, reply.Fault.Message)
		}
		if try == attempts {
			return nil, protocol.Errorf(protocol.CodeModelFailed, "the script answered %d after %d attempts: %s", reply.Fault.Status, try, reply.Fault.Message)
		}
		if err := wait(ctx, reply.Fault.RetryAfter); err != nil {
			return nil, err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return protocol.ContextError(ctx)
}

// Response is the chunk in the provider's words.
func (c Chunk) Response(version string) *genai.GenerateContentResponse {
	return &genai.GenerateContentResponse{
		ModelVersion:  version,
		UsageMetadata: c.Usage,
		Candidates: []*genai.Candidate{{
			Content:      &genai.Content{Role: genai.RoleModel, Parts: c.Parts},
			FinishReason: c.FinishReason,
		}},
	}
}
