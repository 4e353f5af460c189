package cli

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

func at(ms int) time.Time { return time.UnixMilli(int64(ms)).UTC() }

func TestTraceIsATreeWithBars(t *testing.T) {
	roots := []*client.Span{
		{Name: "invoke_agent helper", Process: "coordinator1", Start: at(0), End: at(1000), Status: "ok", Children: []*client.Span{
			{Name: "generate_content m", Process: "coordinator1", Start: at(0), End: at(250), Status: "ok", Tokens: 12},
			{Name: "execute_tool hash", Role: "dispatch", Process: "coordinator1", Start: at(250), End: at(900), Status: "failed", Detail: "disk\ngone", Children: []*client.Span{
				{Name: "execute_tool hash", Process: "w1", Start: at(600), End: at(600), Status: "failed", Attempt: 2, Queue: 350},
			}},
			{Name: "execute_tool sum", Role: "dispatch", Process: "coordinator1", Start: at(250), End: at(1100), Status: "ok"},
		}},
		{Name: "invoke_agent helper", Process: "coordinator2", Start: at(5000), Status: "running"},
	}
	var b bytes.Buffer
	if err := writeTrace(term.Screen{Writer: &b}, roots, at(65000)); err != nil {
		t.Fatal(err)
	}
	golden(t, "trace.txt", b.String())
}

func TestConversationReadsLikeOne(t *testing.T) {
	entry := func(ev protocol.Event) client.Entry { return client.Entry{Event: ev} }
	content := func(text string) json.RawMessage {
		raw, _ := json.Marshal(client.Text(text))
		return raw
	}
	events := client.Events([]client.Entry{
		entry(protocol.Event{ID: "e1", Inputs: []protocol.FoldedInput{{ID: "in", Kind: protocol.InputMessage, Content: content("How many\nwords?")}}}),
		entry(protocol.Event{ID: "e2", Turn: &protocol.Turn{
			Agent: "helper", Content: json.RawMessage(`{"role":"model","parts":[{"text":"hidden","thought":true},{"text":"Let me look."},{"functionCall":{"name":"hash","args":{"n":1}}}]}`),
			Calls: []protocol.Call{{ID: "c1", Tool: "hash", Args: json.RawMessage(`{"n":1}`), Verdict: protocol.VerdictRun}},
		}}),
		entry(protocol.Event{
			ID: "e3", Answers: []protocol.Answer{{Call: "c1", Result: protocol.Result{Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{"result":"\u001b[31m"}`)}}},
			Stop: &protocol.Stop{Kind: protocol.StopDone, Problem: &protocol.Problem{Code: protocol.CodeModelFailed, Message: "the model could not be asked"}},
		}),
	}, nil)
	var b bytes.Buffer
	if err := writeConversation(term.Screen{Writer: &b, TTY: true}, client.Session{App: "helper", ID: "s1", State: "failed"}, events); err != nil {
		t.Fatal(err)
	}
	golden(t, "conversation.txt", b.String())
}

func TestDecisionsStandInTheConversation(t *testing.T) {
	args := json.RawMessage(`{"amount":5}`)
	asks := func(id, hint string) *protocol.Confirmation {
		return &protocol.Confirmation{ID: id, Hint: hint, Origin: protocol.OriginFlag}
	}
	decides := func(id string, d protocol.Decision, next *protocol.Confirmation) protocol.Event {
		return protocol.Event{ID: "e-" + id, Inputs: []protocol.FoldedInput{{ID: "d-" + id, Kind: protocol.InputDecision, Client: "ann", Decision: &protocol.FoldedDecision{Confirmation: id, Decision: d, Asks: next}}}}
	}
	var log []client.Entry
	for _, ev := range []protocol.Event{
		{ID: "e1", Turn: &protocol.Turn{
			Agent: "clerk", Content: json.RawMessage(`{"role":"model","parts":[{"functionCall":{"name":"pay","args":{"amount":5}}}]}`),
			Calls: []protocol.Call{{ID: "c1", Tool: "pay", Args: args, Verdict: protocol.VerdictAsk, Confirmation: asks("q1", toolconfirmation.Hint("pay")+"\n\nOver\u202e 4.")}},
		}, Stop: &protocol.Stop{Kind: protocol.StopParked}},
		decides("q1", protocol.Decision{Confirmed: true, Args: json.RawMessage(`{"amount":1}`)}, asks("q2", toolconfirmation.Hint("pay"))),
		decides("q2", protocol.Decision{Hint: "not today"}, nil),
	} {
		log = append(log, client.Entry{Event: ev})
	}
	var b bytes.Buffer
	if err := writeConversation(term.Screen{Writer: &b, TTY: true}, client.Session{App: "clerk", ID: "s1", State: "parked"}, client.Events(log, nil)); err != nil {
		t.Fatal(err)
	}
	golden(t, "decisions.txt", b.String())
}
