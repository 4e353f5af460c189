package client

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// answerDecisions plays the coordinator: it answers every decision with what reply makes of it, and counts them.
func (f *fabric) answerDecisions(reply func(seq uint64, approver string, d protocol.Decision) []protocol.Receipt) {
	f.t.Helper()
	n := f.conn.Names()
	if err := f.conn.EnsureConsumer(f.t.Context(), natswire.Consumer{Stream: n.Approval(), Durable: "helper", Filter: n.ApprovalFilter("helper"), AckWait: time.Minute, MaxDeliver: -1, MaxAckPending: -1}); err != nil {
		f.t.Fatal(err)
	}
	puller, err := f.conn.Pull(f.t.Context(), n.Approval(), "helper", natswire.PullEvents{Lost: func(error) {}, Deliver: func(d natswire.Delivery) {
		app, session, confirmation, approver, _ := n.ParseApproval(d.Subject)
		decision, err := protocol.DecodeDecision(d.Data, confirmation)
		if err != nil {
			f.t.Error(err)
		}
		for _, r := range reply(d.Seq, approver, decision) {
			r.V, r.Confirmation = protocol.Version, confirmation
			data, _ := protocol.Encode(r)
			if err := f.conn.Emit(context.Background(), natswire.Msg{Subject: n.ReceiptSubject(app, session, confirmation), Data: data}); err != nil {
				f.t.Error(err)
			}
		}
		d.Ack()
	}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(puller.Close)
	puller.Want(100)
}

func TestADecisionIsBoundToWhatWasShownAndAnsweredByItsOwnReceipt(t *testing.T) {
	f := newFabric(t)
	p := f.park(question("s1", "c1", "q1", `{"amount":5}`))
	got := make(chan protocol.Decision, 1)
	f.answerDecisions(func(seq uint64, approver string, d protocol.Decision) []protocol.Receipt {
		got <- d
		return []protocol.Receipt{
			{Approver: "other", Seq: seq, Message: "not his"},
			{Approver: approver, Seq: seq + 7, Message: "not this decision"},
			{Approver: approver, Seq: seq, Message: "it runs"},
			{Approver: approver, Seq: seq, Code: protocol.CodeDecided, Message: "told twice"},
		}
	})
	r, err := f.Decide(soon(t), p, protocol.Decision{Confirmed: true, Payload: json.RawMessage(`{"days":3}`)}, "zoe")
	if err != nil || r.Message != "it runs" || r.Approver != "zoe" {
		t.Errorf("%+v, %v", r, err)
	}
	if d := <-got; !d.Confirmed || d.Digest != p.Confirmation.Digest || string(d.Payload) != `{"days":3}` {
		t.Errorf("%+v", d)
	}
	r, err = f.Decide(soon(t), p, protocol.Decision{Digest: "mine"}, "")
	if err != nil || r.Approver != "tester" {
		t.Errorf("%+v, %v", r, err)
	}
	if d := <-got; d.Confirmed || d.Digest != "mine" {
		t.Errorf("%+v", d)
	}
}

func TestADecisionThatCannotBeMeantIsNotPublished(t *testing.T) {
	f := newFabric(t)
	p := f.park(question("s1", "c1", "q1", `{"amount":5}`))
	forged := p
	forged.Args = json.RawMessage(`{"amount":500}`)
	result := Parked{Parked: report("s1", "c2")}
	yes := protocol.Decision{Confirmed: true}
	for name, c := range map[string]struct {
		p        Parked
		d        protocol.Decision
		approver string
		code     protocol.Code
	}{
		"a call that waits for a result": {result, yes, "", protocol.CodeBadMessage},
		"arguments that are not signed":  {forged, yes, "", protocol.CodeDigestMismatch},
		"an approver that is no token":   {p, yes, "a.b", protocol.CodeBadID},
		"arguments that are no JSON":     {p, protocol.Decision{Confirmed: true, Args: json.RawMessage(`{`)}, "", protocol.CodeBadMessage},
		"edited arguments and a no":      {p, protocol.Decision{Args: json.RawMessage(`{}`)}, "", protocol.CodeBadMessage},
		"a payload that is no JSON":      {p, protocol.Decision{Confirmed: true, Payload: json.RawMessage(`x`)}, "", protocol.CodeBadMessage},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Decide(t.Context(), c.p, c.d, c.approver)
			wantCode(t, err, c.code)
		})
	}
	if stored, err := f.conn.Read(t.Context(), f.conn.Names().Approval(), f.conn.Names().ApprovalFilter("helper"), 1, 10); err != nil || len(stored) > 0 {
		t.Errorf("%d decisions are stored, %v", len(stored), err)
	}
}

// shortClock lets no wait last.
type shortClock struct{ natswire.SystemClock }

func (c shortClock) After(time.Duration) (<-chan time.Time, func()) { return c.SystemClock.After(0) }

func TestWithoutAReceiptTheLogIsAsked(t *testing.T) {
	f := newFabric(t)
	f.cfg.Clock = shortClock{}
	p := f.park(question("s1", "c1", "q1", `{}`))
	f.append("helper", "s1", protocol.Event{Stop: &protocol.Stop{Kind: protocol.StopParked}})
	_, err := f.Decide(soon(t), p, protocol.Decision{Confirmed: true}, "zoe")
	wantCode(t, err, protocol.CodeUnreachable)
	if !errors.Is(err, ErrNoReceipt) || !strings.Contains(err.Error(), "the decision is stored (number 1)") {
		t.Errorf("%v", err)
	}
	f.append("helper", "s1", protocol.Event{Inputs: []protocol.FoldedInput{
		{ID: "d2", Kind: protocol.InputDecision, Client: "zoe", Seq: 2, Decision: &protocol.FoldedDecision{Confirmation: "q1", Decision: protocol.Decision{Confirmed: true}}},
		{ID: "d3", Kind: protocol.InputDecision, Client: "zoe", Seq: 3, Refused: &protocol.Problem{Code: protocol.CodeDecided, Message: "too late"}},
	}})
	for _, want := range []protocol.Code{"", protocol.CodeDecided} {
		r, err := f.Decide(soon(t), p, protocol.Decision{Confirmed: true}, "zoe")
		if err != nil || r.Code != want {
			t.Errorf("%+v, %v", r, err)
		}
	}
}
