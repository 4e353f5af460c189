package coordinator_test

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

// pool is a worker that answers each call of one tool with what run says, and notes the calls.
type pool struct {
	mu    sync.Mutex
	calls []protocol.Envelope
}

func (p *pool) taken() []protocol.Envelope {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]protocol.Envelope(nil), p.calls...)
}

// pool registers d and serves its calls.
func (f *fabric) pool(d protocol.Declaration, run func(protocol.Envelope) protocol.Result) *pool {
	f.Helper()
	f.beat("w-"+d.Name, d)
	f.pass(time.Second)
	p := &pool{}
	var puller natswire.Puller
	ready := make(chan struct{})
	puller, err := f.client.Pull(f.Context(), f.names.Calls(), d.Name, natswire.PullEvents{Lost: func(error) {}, Deliver: func(m natswire.Delivery) {
		env, err := protocol.DecodeEnvelope(m.Data)
		if err != nil {
			f.Error(err)
			return
		}
		f.nodes.Go(func() {
			<-ready
			puller.Want(1)
			p.mu.Lock()
			p.calls = append(p.calls, env)
			p.mu.Unlock()
			over := make(chan struct{})
			f.nodes.Go(func() { // what a worker does while it works
				for {
					select {
					case <-time.After(2 * time.Second):
						m.InProgress()
					case <-over:
						return
					}
				}
			})
			r := run(env)
			close(over)
			r.V = protocol.Version
			if r.Outcome == "" {
				r.Outcome = protocol.OutcomeCompleted
			}
			box := f.names.ResultSubject(env.Tool, env.Session, env.Call, env.Round)
			if env.AnswersTo == protocol.MailboxWake {
				box = f.names.WakeSubject(env.App, env.Tool, env.Session, env.Call, env.Round)
			}
			data, _ := protocol.Encode(r)
			if _, err := f.client.Publish(context.Background(), natswire.Msg{Subject: box, Data: data}); err != nil && protocol.CodeOf(err) != protocol.CodeAnswered {
				f.Error(err)
			}
			m.Ack()
		})
	}})
	if err != nil {
		f.Fatal(err)
	}
	close(ready)
	puller.Want(8)
	f.Cleanup(puller.Close)
	return p
}

// decide publishes a decision on a confirmation.
func (f *fabric) decide(app, session, confirmation, body string) {
	f.Helper()
	f.publish(natswire.Msg{Subject: f.names.ApprovalSubject(app, session, confirmation, "boss"), Data: []byte(body)})
}

// question is the question that is open about the newest call of a session.
func (f *fabric) question(app, session string) *protocol.Confirmation {
	f.Helper()
	var q *protocol.Confirmation
	for _, e := range f.log(app, session) {
		for _, a := range e.Answers {
			if a.Confirmation != nil {
				q = a.Confirmation
			}
		}
		if e.Turn != nil {
			for _, c := range e.Turn.Calls {
				if c.Confirmation != nil {
					q = c.Confirmation
				}
			}
		}
	}
	if q == nil {
		f.Fatal("no question is open")
	}
	return q
}

// answers are the answers in a session's log, and how its calls were judged, as short lines.
func (f *fabric) answers(app, session string) (lines []string) {
	for _, e := range f.log(app, session) {
		for _, a := range e.Answers {
			lines = append(lines, string(a.Outcome)+" "+string(a.Value))
		}
		if e.Turn != nil {
			for _, c := range e.Turn.Calls {
				line := string(c.Verdict) + " " + c.Tool + string(c.Args)
				if r := c.Recorded(); r != nil {
					line += " " + string(r.Outcome) + " " + string(r.Value)
				}
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// state is what the events of a session set, by key, the last value of each.
func (f *fabric) set(app, session string) map[string]string {
	all := map[string]string{}
	add := func(delta map[string]json.RawMessage) {
		for k, v := range delta {
			all[k] = string(v)
		}
	}
	for _, e := range f.log(app, session) {
		for _, in := range e.Inputs {
			add(in.StateDelta)
		}
		for _, a := range e.Answers {
			if a.Actions != nil {
				add(a.Actions.StateDelta)
			}
		}
		if e.Turn != nil {
			add(e.Turn.StateDelta)
		}
	}
	return all
}

// caller asks for calls once, one for each of tools with its arguments, and then says ok.
func caller(tools ...string) *oracle {
	return &oracle{answer: func(_ context.Context, req *model.LLMRequest) ([]*genai.Part, error) {
		last := req.Contents[len(req.Contents)-1]
		if last.Parts[0].FunctionResponse != nil {
			return text("ok"), nil
		}
		var parts []*genai.Part
		for _, t := range tools {
			name, args, _ := strings.Cut(t, " ")
			c := &genai.FunctionCall{Name: name}
			if args != "" {
				_ = json.Unmarshal([]byte(args), &c.Args)
			}
			parts = append(parts, &genai.Part{FunctionCall: c})
		}
		return parts, nil
	}}
}

// object is the result of a completed call.
func object(value string) protocol.Result { return protocol.Result{Value: json.RawMessage(value)} }

// says checks what a session's model was told of its calls in its newest request.
func (o *oracle) told(t *testing.T) (lines []string) {
	t.Helper()
	_, req := o.requests()
	for _, c := range req.Contents {
		for _, p := range c.Parts {
			if r := p.FunctionResponse; r != nil {
				data, err := json.Marshal(r.Response)
				if err != nil {
					t.Fatal(err)
				}
				lines = append(lines, r.Name+string(data))
			}
		}
	}
	return lines
}

type msg = natswire.Msg

// streamer says a secret in two pieces.
type streamer struct{}

func (*streamer) Name() string { return "streamer" }

func (*streamer) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		piece := answering("a sec")
		piece.Partial = true
		if yield(piece, nil) {
			yield(answering("a secret"), nil)
		}
	}
}
