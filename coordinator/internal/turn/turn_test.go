package turn

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

var update = flag.Bool("update", false, "rewrite the golden files")

type fakeModel struct{ model.LLM }

func (fakeModel) Name() string { return "fake-1" }

func newAgent(t testing.TB, change func(*llmagent.Config)) *llmagent.LLMAgent {
	t.Helper()
	cfg := llmagent.Config{Name: "helper", Model: fakeModel{}}
	if change != nil {
		change(&cfg)
	}
	a, err := llmagent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a.(*llmagent.LLMAgent)
}

// schemaFunc is a Schema that a test writes out.
type schemaFunc func(json.RawMessage) (json.RawMessage, error)

func (f schemaFunc) Normalize(args json.RawMessage) (json.RawMessage, error) { return f(args) }

var anyArgs = schemaFunc(func(args json.RawMessage) (json.RawMessage, error) { return args, nil })

func refuseArgs(text string) schemaFunc {
	return func(json.RawMessage) (json.RawMessage, error) { return nil, errors.New(text) }
}

func offer(name string, change func(*protocol.Declaration)) Offer {
	o := Offer{Declaration: protocol.Declaration{
		V: protocol.Version, Name: name, Description: name + " tool", Effect: protocol.EffectRead,
		Parameters: json.RawMessage(`{"type":"object","properties":{}}`),
	}, Schema: anyArgs}
	if change != nil {
		change(&o.Declaration)
	}
	o.Pinned = o.Declaration.Digest()
	return o
}

func callID(i int) string { return fmt.Sprintf("call%d", i) }

// desk makes confirmations q1, q2 and so on, at instant 1000.
func desk() Desk {
	n := 0
	return Desk{App: "helper", Session: "s1", User: "ann", Now: 1000, NewID: func() string { n++; return fmt.Sprintf("q%d", n) }}
}

// logOf numbers events from 1 and adds them.
func logOf(events ...protocol.Event) *History {
	h := &History{}
	for i, ev := range events {
		h.Add(uint64(i+1), ev)
	}
	return h
}

func said(texts ...string) protocol.Event {
	var ev protocol.Event
	for _, text := range texts {
		raw, _ := encode(genai.NewContentFromText(text, genai.RoleUser))
		ev.Inputs = append(ev.Inputs, protocol.FoldedInput{Kind: protocol.InputMessage, Content: raw})
	}
	return ev
}

// asked is a model's turn: texts, or calls written name#provider-id:our-id.
func asked(requestSeq uint64, parts ...string) protocol.Event {
	c := genai.Content{Role: genai.RoleModel}
	t := &protocol.Turn{RequestSeq: requestSeq}
	for _, p := range parts {
		name, ids, isCall := strings.Cut(p, "#")
		if !isCall {
			c.Parts = append(c.Parts, &genai.Part{Text: p})
			continue
		}
		provider, ours, _ := strings.Cut(ids, ":")
		c.Parts = append(c.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: provider, Name: name}})
		t.Calls = append(t.Calls, protocol.Call{ID: ours, ProviderID: provider, Tool: name, Verdict: protocol.VerdictRun})
	}
	t.Content, _ = encode(c)
	return protocol.Event{Turn: t}
}

func answer(call, value string) protocol.Answer {
	return protocol.Answer{Call: call, Result: protocol.Result{V: 1, Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(value)}}
}

// pending is an interim answer of a long-running call.
func pending(call string, round int, value string) protocol.Answer {
	return protocol.Answer{Call: call, Round: round, Result: protocol.Result{V: 1, Outcome: protocol.OutcomePending, Value: json.RawMessage(value)}}
}

// asks is an interim answer of a call that wants a person's word.
func asks(call string, round int, value string) protocol.Answer {
	a := pending(call, round, value)
	a.Outcome, a.Ask = protocol.OutcomeAsks, &protocol.Ask{Hint: "need it"}
	return a
}

// ended is a call's last answer.
func ended(call string, round int, value string) protocol.Answer {
	a := answer(call, value)
	a.Round = round
	return a
}

func answered(answers ...protocol.Answer) protocol.Event { return protocol.Event{Answers: answers} }

func join(events ...protocol.Event) protocol.Event {
	var all protocol.Event
	for _, ev := range events {
		all.Inputs = append(all.Inputs, ev.Inputs...)
		all.Answers = append(all.Answers, ev.Answers...)
		if ev.Turn != nil {
			all.Turn = ev.Turn
		}
		if ev.Stop != nil {
			all.Stop = ev.Stop
		}
	}
	return all
}

func stopped(kind protocol.StopKind) protocol.Event {
	return protocol.Event{Stop: &protocol.Stop{Kind: kind}}
}

// lines writes contents for a reader, one line each.
func lines(contents []*genai.Content) string {
	var b strings.Builder
	for _, c := range contents {
		fmt.Fprintf(&b, "%s:", c.Role)
		for _, p := range c.Parts {
			switch {
			case p.FunctionCall != nil:
				fmt.Fprintf(&b, " call %s#%s", p.FunctionCall.Name, p.FunctionCall.ID)
			case p.FunctionResponse != nil:
				value, _ := encode(p.FunctionResponse.Response)
				fmt.Fprintf(&b, " response %s#%s %s", p.FunctionResponse.Name, p.FunctionResponse.ID, value)
			default:
				fmt.Fprintf(&b, " %s", p.Text)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
