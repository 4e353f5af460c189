package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
)

// gone waits until nothing of a session is listed as waiting.
func (f *fabric) gone(session string) {
	f.t.Helper()
	n := f.conn.Names()
	f.eventually("index without the session", func() bool {
		listed, err := f.conn.Latest(f.t.Context(), n.ParkStream(), n.ParkSubject("app", session, "*"))
		if err != nil {
			return false
		}
		for _, m := range listed {
			if !natswire.KeyDeleted(m.Header) {
				return false
			}
		}
		return true
	})
}

// The coordinator hears nothing of its own write, of the stop or of the index or of the timer, while the decision comes.
func TestAnApprovalComesWhileTheSessionParks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, held, session string }{
		{"BeforeTheStopIsKnownToBeStored", "tf.log.app.s-stop", "s-stop"},
		{"BeforeTheIndexIsKnownToBeWritten", "$KV.PARK.app.s-index.*", "s-index"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFabric(t)
			var runs atomic.Int32
			proxy, conn := f.behind()
			f.coordinateOn(conn, conn, newAgent(t, "app", script(t, refundScript), "refund"))
			f.work(refund(t, &runs))
			f.send(t.Context(), "app", "warm-up", "pay order 7 back")
			f.untilParked("app", "warm-up")
			held := proxy.Hold(natstest.Acks, c.held)
			r := f.send(t.Context(), "app", c.session, "pay order 7 back")
			receive(t, "held ack", held.Caught())
			if strings.HasPrefix(c.held, "tf.log") { // the adoption's own; the stop comes after it
				adoption := held
				held = proxy.Hold(natstest.Acks, c.held)
				adoption.Release()
				receive(t, "held ack of the stop", held.Caught())
			}
			call := f.untilParked("app", c.session).Event.Turn.Calls[0]
			n := f.conn.Names()
			if _, err := f.conn.Publish(t.Context(), natswire.Msg{Subject: n.ApprovalSubject("app", c.session, call.Confirmation.ID, "ann"), Data: []byte(`{"confirmed":true}`)}); err != nil {
				t.Fatal(err)
			}
			held.Release()
			contains(t, "the answer", f.wait(r).Text, "finished")
			if n := runs.Load(); n != 1 {
				t.Errorf("the effect happened %d times", n)
			}
			f.gone(c.session)
		})
	}
}

// What the outside says while the streams it goes through are full is refused to its sender, and counts once there is room.
func TestAFullStreamRefusesDecisionsAndTheQuestionStays(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	var runs atomic.Int32
	r, call := f.gatedRefund(&runs)
	n := f.conn.Names()
	f.limitStream(n.Approval(), 1)
	_, err := f.conn.Publish(t.Context(), natswire.Msg{Subject: n.ApprovalSubject("app", r.Session, call.Confirmation.ID, "ann"), Data: []byte(`{"confirmed":true}`)})
	if protocol.CodeOf(err) != protocol.CodeStorageFull {
		t.Fatalf("a decision on a full stream: %v", err)
	}
	f.limitStream(n.Approval(), -1)
	if got := f.decide("app", r.Session, call.Confirmation.ID, "ann", `{"confirmed":true}`); got.Code != "" {
		t.Fatalf("the receipt says %s: %s", got.Code, got.Message)
	}
	contains(t, "the answer", f.wait(r).Text, "finished")
	if n := runs.Load(); n != 1 {
		t.Errorf("the effect happened %d times", n)
	}
}

// A session that parks while the index is full is parked all the same, and is listed once there is room.
func TestAFullIndexKeepsNobodyFromDeciding(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	var runs atomic.Int32
	f.coordinate(newAgent(t, "app", script(t, refundScript), "refund"))
	f.work(refund(t, &runs))
	n := f.conn.Names()
	f.limitStream(n.ParkStream(), 1)
	r := f.send(t.Context(), "app", "", "pay order 7 back")
	call := f.untilParked("app", r.Session).Event.Turn.Calls[0]
	f.limitStream(n.ParkStream(), -1)
	f.eventually("question in the index", func() bool {
		p, err := f.client.ParkedCall(t.Context(), "app", r.Session, call.ID)
		return err == nil && p.Verified()
	})
	if got := f.decide("app", r.Session, call.Confirmation.ID, "ann", `{"confirmed":true}`); got.Code != "" {
		t.Fatalf("the receipt says %s: %s", got.Code, got.Message)
	}
	contains(t, "the answer", f.wait(r).Text, "finished")
	f.gone(r.Session)
}

// A decision and its redelivered twin are one decision.
func TestADecisionThatIsDeliveredTwiceIsTakenOnce(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	var runs atomic.Int32
	proxy, conn := f.behind()
	f.coordinateOn(conn, conn, newAgent(t, "app", script(t, refundScript), "refund"))
	f.work(refund(t, &runs))
	r := f.send(t.Context(), "app", "", "pay order 7 back")
	call := f.untilParked("app", r.Session).Event.Turn.Calls[0]
	twice := proxy.Duplicate(natstest.Deliveries, "tf.approval.>")
	if got := f.decide("app", r.Session, call.Confirmation.ID, "ann", `{"confirmed":true}`); got.Code != "" {
		t.Fatalf("the receipt says %s: %s", got.Code, got.Message)
	}
	receive(t, "doubled delivery", twice.Caught())
	contains(t, "the answer", f.wait(r).Text, "finished")
	taken := 0
	for _, e := range f.log("app", r.Session) {
		for _, in := range e.Event.Inputs {
			if in.Kind == protocol.InputDecision {
				taken++
			}
		}
	}
	if taken != 1 || runs.Load() != 1 {
		t.Errorf("%d decisions in the log, %d effects", taken, runs.Load())
	}
}

const orderScript = `
turns:
  - {parts: [{functionCall: {name: order, id: o}}], finishReason: STOP}
  - {parts: [{text: finished}], finishReason: STOP}
`

// later is a tool whose result comes from outside.
func later(t *testing.T, park time.Duration) tool.Tool {
	t.Helper()
	tl, err := functiontool.New(functiontool.Config{Name: "order", Description: "orders", IsLongRunning: true, ParkTimeout: park},
		func(tool.Context, struct{}) (map[string]any, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

// A result that comes after its call was cancelled, or after its time, is refused to its sender: the answer stands.
func TestAResultFromOutsideThatComesTooLateIsRefused(t *testing.T) {
	t.Parallel()
	for name, park := range map[string]time.Duration{"Cancelled": time.Hour, "Expired": time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFabric(t)
			f.coordinate(newAgent(t, "app", script(t, orderScript), "order"))
			f.work(later(t, park))
			r := f.send(t.Context(), "app", "", "order it")
			f.untilParked("app", r.Session)
			call := turns(f.log("app", r.Session))[0].Calls[0]
			want := protocol.OutcomeExpired
			if park > time.Minute {
				want = protocol.OutcomeCancelled
				if err := f.client.Cancel(t.Context(), "app", r.Session, call.ID); err != nil {
					t.Fatal(err)
				}
			}
			f.wait(r)
			_, err := f.conn.Publish(t.Context(), natswire.Msg{Subject: f.conn.Names().WakeSubject("app", "order", r.Session, call.ID, 1),
				Data: []byte(fmt.Sprintf(`{"v":%d,"outcome":"completed","value":{"late":true}}`, protocol.Version))})
			if protocol.CodeOf(err) != protocol.CodeAnswered {
				t.Errorf("a late result: %v", err)
			}
			all := answers(f.log("app", r.Session))
			if last := all[len(all)-1]; last.Outcome != want || strings.Contains(string(last.Value), "late") {
				t.Errorf("the call ended as %s with %s", last.Outcome, last.Value)
			}
			f.gone(r.Session)
		})
	}
}

// A parked session that is deleted waits no more: its index and timer go, and whoever decides is told.
func TestADeletedSessionWaitsForNobody(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	var runs atomic.Int32
	r, call := f.gatedRefund(&runs)
	if err := f.client.Delete(t.Context(), "app", r.Session); err != nil {
		t.Fatal(err)
	}
	f.gone(r.Session)
	if got := f.decide("app", r.Session, call.Confirmation.ID, "ann", `{"confirmed":true}`); got.Code != protocol.CodeSessionClosed {
		t.Errorf("a decision for a deleted session is told %q: %s", got.Code, got.Message)
	}
	if n := runs.Load(); n != 0 {
		t.Errorf("the effect happened %d times", n)
	}
}

// limitStream sets how many bytes a stream may hold, as an operator does; -1 is no limit.
func (f *fabric) limitStream(stream string, bytes int64) {
	f.t.Helper()
	ask := func(verb string, body []byte) map[string]json.RawMessage {
		m, err := f.conn.Request(f.t.Context(), natswire.Msg{Subject: "$JS.API.STREAM." + verb + "." + stream, Data: body})
		if err != nil {
			f.t.Fatal(err)
		}
		var reply map[string]json.RawMessage
		if err := json.Unmarshal(m.Data, &reply); err != nil || reply["error"] != nil {
			f.t.Fatalf("%s of %s: %s, %v", verb, stream, m.Data, err)
		}
		return reply
	}
	var config map[string]any
	if err := json.Unmarshal(ask("INFO", nil)["config"], &config); err != nil {
		f.t.Fatal(err)
	}
	config["max_bytes"] = bytes
	body, err := json.Marshal(config)
	if err != nil {
		f.t.Fatal(err)
	}
	ask("UPDATE", body)
}
