package integration

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
)

type order struct {
	Order string `json:"order"`
}

// refund is a tool that needs a person's word; it counts its runs.
func refund(t *testing.T, runs *atomic.Int32) tool.Tool {
	t.Helper()
	tl, err := functiontool.New(functiontool.Config{Name: "refund", Description: "pays back", RequireConfirmation: true},
		func(ctx tool.Context, in order) (map[string]any, error) {
			runs.Add(1)
			return map[string]any{"paid": in.Order, "note": ctx.ToolConfirmation().Payload}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

const refundScript = `
turns:
  - {parts: [{functionCall: {name: refund, id: r, args: {order: "7"}}}], finishReason: STOP}
  - {parts: [{text: finished}], finishReason: STOP}
`

// untilParked waits for the first stop that parks the session.
func (f *fabric) untilParked(app, session string) client.Entry {
	f.t.Helper()
	return f.until(app, session, "stop that parks", func(ev *protocol.Event) bool { return ev.Stop != nil && ev.Stop.Kind == protocol.StopParked })
}

// gatedRefund has a coordinator and a worker run until the refund waits for a person's word.
func (f *fabric) gatedRefund(runs *atomic.Int32) (client.Receipt, protocol.Call) {
	f.t.Helper()
	f.coordinate(newAgent(f.t, "app", script(f.t, refundScript), "refund"))
	f.work(refund(f.t, runs))
	r := f.send(f.t.Context(), "app", "", "pay order 7 back")
	return r, f.untilParked("app", r.Session).Event.Turn.Calls[0]
}

// decide publishes a decision as an approver does who has nothing but NATS, and returns the receipt.
func (f *fabric) decide(app, session, confirmation, approver, body string) protocol.Receipt {
	f.t.Helper()
	n := f.conn.Names()
	receipts := make(chan protocol.Receipt, 100)
	stop, err := f.conn.Subscribe(n.ReceiptSubject(app, session, confirmation), func(m natswire.Msg) {
		var r protocol.Receipt
		if json.Unmarshal(m.Data, &r) == nil && r.Approver == approver {
			receipts <- r
		}
	})
	if err != nil {
		f.t.Fatal(err)
	}
	defer stop()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	if _, err := f.conn.Publish(ctx, natswire.Msg{Subject: n.ApprovalSubject(app, session, confirmation, approver), Data: []byte(body)}); err != nil {
		f.t.Fatal(err)
	}
	return receive(f.t, "receipt", receipts)
}

func TestAnApprovedCallRunsOnceWhicheverCoordinatorHearsIt(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	var runs atomic.Int32
	a := newAgent(t, "app", script(t, refundScript), "refund")
	one := f.coordinate(a)
	f.work(refund(t, &runs))
	r := f.send(t.Context(), "app", "", "pay order 7 back")
	parked := f.untilParked("app", r.Session)
	call := parked.Event.Turn.Calls[0]
	if call.Verdict != protocol.VerdictAsk || call.Confirmation == nil {
		t.Fatalf("the call is recorded as %+v", call)
	}
	one.stop()
	f.coordinate(a)
	if got := f.decide("app", r.Session, call.Confirmation.ID, "ann", `{"confirmed":true,"payload":{"by":"ann"}}`); got.Code != "" {
		t.Fatalf("the receipt says %s: %s", got.Code, got.Message)
	}
	out := f.wait(r)
	contains(t, "the answer", out.Text, "finished")
	if n := runs.Load(); n != 1 {
		t.Errorf("the effect happened %d times", n)
	}
	log := f.log("app", r.Session)
	answer := answers(log)[0]
	contains(t, "the result", string(answer.Value), `"by":"ann"`)
	if got := f.decide("app", r.Session, call.Confirmation.ID, "bob", `{"confirmed":true}`); got.Code != protocol.CodeDecided {
		t.Errorf("a second approval is told %s: %s", got.Code, got.Message)
	}
	if got := f.decide("app", r.Session, call.Confirmation.ID, "ann", `{"confirmed":false}`); got.Code != protocol.CodeConflict {
		t.Errorf("a change of mind is told %s: %s", got.Code, got.Message)
	}
	if got := f.decide("app", r.Session, call.Confirmation.ID, "eve", `{"confirmed":"yes"}`); got.Code != protocol.CodeBadMessage {
		t.Errorf("a malformed decision is told %s: %s", got.Code, got.Message)
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("the effect happened %d times after the replays", n)
	}
}

func TestADeniedCallNeverStarts(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	var runs atomic.Int32
	r, call := f.gatedRefund(&runs)
	if got := f.decide("app", r.Session, call.Confirmation.ID, "ann", `{"confirmed":false}`); got.Code != "" {
		t.Fatalf("the receipt says %s: %s", got.Code, got.Message)
	}
	contains(t, "the answer", f.wait(r).Text, "finished")
	if n := runs.Load(); n != 0 {
		t.Errorf("the denied effect happened %d times", n)
	}
	answer := answers(f.log("app", r.Session))[0]
	if answer.Outcome != protocol.OutcomeDenied || !strings.Contains(string(answer.Value), "is rejected") {
		t.Errorf("the model reads %s: %s", answer.Outcome, answer.Value)
	}
}

func TestAnAnswerBeforeTheDecisionIsNoAnswer(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	var runs atomic.Int32
	r, call := f.gatedRefund(&runs)
	forged := protocol.Result{Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{"paid":"forged"}`)}
	if _, err := natswire.StoreWake(t.Context(), f.conn, f.conn.Names(), "app", "refund", r.Session, call.ID, 0, nil, forged); err != nil {
		t.Fatal(err)
	}
	f.decide("app", r.Session, call.Confirmation.ID, "ann", `{"confirmed":false}`)
	contains(t, "the answer", f.wait(r).Text, "finished")
	if a := answers(f.log("app", r.Session))[0]; a.Outcome != protocol.OutcomeDenied {
		t.Errorf("the call ended as %s: %s", a.Outcome, a.Value)
	}
}

func TestTheIndexOfWhatWaitsIsRebuiltFromTheLogs(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	var runs atomic.Int32
	a := newAgent(t, "app", script(t, refundScript), "refund")
	one := f.coordinate(a)
	f.work(refund(t, &runs))
	r := f.send(t.Context(), "app", "", "pay order 7 back")
	call := f.untilParked("app", r.Session).Event.Turn.Calls[0]
	listed := f.untilListed("app", r.Session, call.ID)
	one.stop()
	f.drop(f.conn.Names().ParkStream())
	if err := natswire.Provision(t.Context(), f.conn, natswire.ProvisionConfig{}); err != nil {
		t.Fatal(err)
	}
	f.coordinate(a)
	again := f.untilListed("app", r.Session, call.ID)
	again.Revision = listed.Revision
	if d := cmp.Diff(listed, again); d != "" {
		t.Errorf("the index is rebuilt otherwise (-was +is):\n%s", d)
	}
	f.decide("app", r.Session, call.Confirmation.ID, "ann", `{"confirmed":true}`)
	contains(t, "the answer", f.wait(r).Text, "finished")
}

func TestADeletedIndexHoldsUpNeitherDecisionsNorDeadlines(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	var runs atomic.Int32
	f.coordinate(newAgent(t, "app", script(t, refundScript), "refund"))
	f.work(refund(t, &runs))
	f.drop(f.conn.Names().ParkStream())
	r := f.send(t.Context(), "app", "", "pay order 7 back")
	call := f.untilParked("app", r.Session).Event.Turn.Calls[0]
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for f.timers("app", r.Session) < 1 { // the deadline
		if err := natswire.Sleep(ctx, natswire.SystemClock{}, poll); err != nil {
			t.Fatal("the deadline of the call is not armed")
		}
	}
	f.decide("app", r.Session, call.Confirmation.ID, "ann", `{"confirmed":true}`)
	contains(t, "the answer", f.wait(r).Text, "finished")
}

// untilListed waits until PARK lists a call.
func (f *fabric) untilListed(app, session, call string) client.Parked {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	for {
		p, err := f.client.ParkedCall(ctx, app, session, call)
		if err == nil {
			return p
		}
		if natswire.Sleep(ctx, natswire.SystemClock{}, poll) != nil {
			f.t.Fatalf("PARK does not list call %s: %v", call, err)
		}
	}
}

// drop deletes a stream, as an operator may.
func (f *fabric) drop(stream string) {
	f.t.Helper()
	if _, err := f.conn.Request(f.t.Context(), natswire.Msg{Subject: "$JS.API.STREAM.DELETE." + stream}); err != nil {
		f.t.Fatal(err)
	}
}

// timers counts the timers of a session that have not fired.
func (f *fabric) timers(app, session string) int {
	f.t.Helper()
	n := f.conn.Names()
	stored, err := f.conn.Read(f.t.Context(), n.Timers(), n.TimerSubject(app, session, "*"), 1, 10)
	if err != nil {
		f.t.Fatal(err)
	}
	return len(stored)
}
