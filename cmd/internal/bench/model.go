package bench

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

// puppet is a model that says what the measurement tells it to, per conversation, and takes no time of its own. The time
// from an answer of it that asks for a call to the next time it is asked is all that the fabric takes for the call: verdict,
// append, dispatch, worker, result, and the next request.
type puppet struct {
	mu    sync.Mutex
	talks map[string]*talk // by first message
}

// talk is one conversation. It is used by one caller at a time.
type talk struct {
	key    string
	asked  chan *genai.Content // the newest content of each request
	answer chan *genai.Content // what to say to it
}

func newPuppet() *puppet { return &puppet{talks: map[string]*talk{}} }

// begin announces a conversation that a message key will start.
func (p *puppet) begin(key string) *talk {
	t := &talk{key: key, asked: make(chan *genai.Content, 1), answer: make(chan *genai.Content, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.talks[key] = t
	return t
}

func (p *puppet) forget(t *talk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.talks, t.key)
}

func (p *puppet) find(key string) *talk {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.talks[key]
}

func (*puppet) Name() string { return "puppet" }

// GenerateContent implements model.LLM.
func (p *puppet) GenerateContent(ctx context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		t := p.find(req.Contents[0].Parts[0].Text)
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

func checkAnswers(c *genai.Content, calls int) error {
	if calls == 0 {
		return nil
	}
	if len(c.Parts) != calls {
		return fmt.Errorf("%d results for %d calls", len(c.Parts), calls)
	}
	for _, p := range c.Parts {
		if r := p.FunctionResponse; r == nil || r.Response["result"] != answerText {
			return fmt.Errorf("not the tool's result: %.300v", p.FunctionResponse)
		}
	}
	return nil
}

// The payloads: as JSON, arguments and answer are payloadSize bytes.
var (
	questionText = strings.Repeat("q", payloadSize-len(`{"text":""}`))
	answerText   = strings.Repeat("a", payloadSize-len(`{"result":""}`))
)

// callsOf is an answer that asks for n calls of the tool.
func callsOf(n int) *genai.Content {
	c := &genai.Content{Role: genai.RoleModel, Parts: make([]*genai.Part, n)}
	for i := range c.Parts {
		c.Parts[i] = genai.NewPartFromFunctionCall(toolName, map[string]any{"text": questionText})
	}
	return c
}

// lastWord is an answer that ends the run.
func lastWord() *genai.Content { return genai.NewContentFromText("done", genai.RoleModel) }
