package main

import (
	"context"
	"iter"
	"strconv"
	"sync"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

// turnsPerSession is how many calls a session has before its slot takes another: a conversation of usual length.
const turnsPerSession = 50

// puppet is a model that says what the measurement tells it to and takes no time of its own.
type puppet struct {
	mu    sync.Mutex
	count int
	talks map[string]*talk // by first message
}

// talk is one conversation, used by one slot.
type talk struct {
	key    string
	turns  int
	asked  chan *genai.Content // the newest content of each request
	answer chan *genai.Content // what to say to it
}

func newPuppet() *puppet { return &puppet{talks: map[string]*talk{}} }

// begin announces a conversation that its key as a message starts.
func (p *puppet) begin() *talk {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	t := &talk{key: "conversation " + strconv.Itoa(p.count), asked: make(chan *genai.Content, 1), answer: make(chan *genai.Content, 1)}
	p.talks[t.key] = t
	return t
}

// heard waits until the model is asked.
func (t *talk) heard(ctx context.Context) (*genai.Content, error) {
	select {
	case c := <-t.asked:
		return c, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Name implements model.LLM.
func (*puppet) Name() string { return "puppet" }

// GenerateContent implements model.LLM.
func (p *puppet) GenerateContent(ctx context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		p.mu.Lock()
		t := p.talks[req.Contents[0].Parts[0].Text]
		p.mu.Unlock()
		if t == nil {
			yield(nil, protocol.Errorf(protocol.CodeModelRefused, "nobody measures this conversation"))
			return
		}
		select {
		case t.asked <- req.Contents[len(req.Contents)-1]:
		case <-ctx.Done():
			yield(nil, protocol.ContextError(ctx))
			return
		}
		select {
		case c := <-t.answer:
			yield(&model.LLMResponse{Content: c, TurnComplete: true, FinishReason: genai.FinishReasonStop}, nil)
		case <-ctx.Done():
			yield(nil, protocol.ContextError(ctx))
		}
	}
}

// callOf is an answer that asks for a call of the tool.
func callOf(text string) *genai.Content {
	return &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{genai.NewPartFromFunctionCall(toolName, map[string]any{"text": text})}}
}

// lastWord is an answer that ends the run.
func lastWord() *genai.Content { return genai.NewContentFromText("done", genai.RoleModel) }
