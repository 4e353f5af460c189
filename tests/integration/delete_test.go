package integration

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

// delete sends what asks for a session's deletion.
func (f *fabric) delete(app, session string) {
	f.t.Helper()
	data, err := json.Marshal(protocol.Input{V: protocol.Version, ID: protocol.NewID(), Kind: protocol.InputDelete})
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.conn.Publish(f.t.Context(), natswire.Msg{Subject: f.conn.Names().InputSubject(app, "tester", session), Data: data}); err != nil {
		f.t.Fatal(err)
	}
}

func TestDeletionCancelsOpenCallsAndTakesNoMoreInput(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(`
turns:
  - parts: [{functionCall: {name: slow, id: a}}, {functionCall: {name: later, id: b}}]
    finishReason: STOP
  - {parts: [{text: finished}], finishReason: STOP}
`), nil)
	f.coordinate(newAgent(t, "app", p.llm, "slow", "later"))
	g := gated("slow", `{}`, tool.Settings{Effect: tool.AtMostOnce})
	settled := make(chan worker.Settlement, 10)
	conn := f.server.Dial(t, natswire.Config{})
	f.workOn(conn, conn, worker.Events{Settled: func(_ worker.Attempt, s worker.Settlement) { settled <- s }}, g)
	waiting := answering("later", `{}`, tool.AtMostOnce)
	f.work(waiting).stop() // known, but nobody serves it: its call waits
	r := f.send(t.Context(), "app", "", "go")
	receive(t, "start of the call", g.started)
	calls := f.untilTurn("app", r.Session).Calls

	f.delete("app", r.Session)
	if s := receive(t, "end of the running call", settled); s.Outcome != protocol.OutcomeCancelled {
		t.Errorf("the running call ended with %+v, want cancelled", s)
	}
	out := f.wait(r)
	if out.Problem == nil || out.Problem.Code != protocol.CodeSessionClosed {
		t.Errorf("the run ended with %+v, want session_closed", out.Problem)
	}
	n := f.conn.Names()
	f.eventually("purged log", func() bool {
		left, err := f.conn.Read(t.Context(), n.Log(), n.LogSubject("app", r.Session), 1, 100)
		return err == nil && len(left) == 1
	})
	claim, err := f.conn.Last(t.Context(), n.Results(), n.ClaimSubject("later", calls[1].ID, 0))
	if err != nil || !strings.Contains(string(claim.Data), `"coordinator"`) {
		t.Errorf("the claim of the waiting call is %s, %v; want a coordinator's", claim.Data, err)
	}
	again := answering("later", `{}`, tool.AtMostOnce)
	f.work(again)
	if r, err := f.call("later", `{}`); err != nil || r.Outcome != protocol.OutcomeCompleted {
		t.Fatalf("another call of the tool ended with %+v, %v", r, err)
	}
	again.wantRuns(t, 1) // not that of the deleted session, which stood before it

	second := f.ask("app", r.Session, "are you there")
	if second.Problem == nil || second.Problem.Code != protocol.CodeSessionClosed {
		t.Errorf("a message to the deleted session ended with %+v, want session_closed", second)
	}
	p.wantCount(1)
	tail, err := f.conn.Read(t.Context(), n.Log(), n.LogSubject("app", r.Session), 1, 100)
	if err != nil || len(tail) != 1 || !strings.Contains(string(tail[0].Data), `"deleted"`) {
		t.Errorf("the log holds %d events, %v; want the deletion alone", len(tail), err)
	}
	if _, err := f.client.Find(t.Context(), r.Session); protocol.CodeOf(err) != protocol.CodeUnknownSession {
		t.Errorf("the session is found: %v", err)
	}
}

// speechless is a connection on which no result can be stored while it is told so.
type speechless struct {
	*natswire.Conn
	on    atomic.Bool
	tried chan struct{}
}

func (b *speechless) Publish(ctx context.Context, m natswire.Msg) (natswire.Ack, error) {
	if b.on.Load() && strings.Contains(m.Subject, ".claim.") {
		select {
		case b.tried <- struct{}{}:
		default:
		}
		return natswire.Ack{}, protocol.Errorf(protocol.CodeUnreachable, "cut off")
	}
	return b.Conn.Publish(ctx, m)
}

func TestDeletionThatBrokeOffIsCarriedOutLater(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(twoSteps), nil)
	bus := &speechless{Conn: f.server.Dial(t, natswire.Config{}), tried: make(chan struct{}, 1)}
	f.coordinateOn(bus.Conn, bus, newAgent(t, "app", p.llm, "slow"))
	s := answering("slow", `{}`, tool.AtMostOnce)
	f.work(s).stop()
	r := f.send(t.Context(), "app", "", "go")
	call := f.untilTurn("app", r.Session).Calls[0]
	adoption := f.log("app", r.Session)[0].Event.Adopt.Adoption
	f.eventually("queued call", func() bool { return f.queued("slow") == 1 })
	bus.on.Store(true)
	f.delete("app", r.Session)
	receive(t, "try to take the call back", bus.tried)
	bus.on.Store(false)
	// What the guard does in its time.
	n := f.conn.Names()
	if err := natswire.SetGuard(t.Context(), f.conn, n, "app", r.Session, f.log("app", r.Session)[0].Time, protocol.Guard{Adoption: adoption}); err != nil {
		t.Fatal(err)
	}
	f.eventually("claim of the call", func() bool {
		_, err := f.conn.Last(t.Context(), n.Results(), n.ClaimSubject("slow", call.ID, 0))
		return err == nil
	})
	f.eventually("purged log", func() bool {
		left, err := f.conn.Read(t.Context(), n.Log(), n.LogSubject("app", r.Session), 1, 100)
		return err == nil && len(left) == 1
	})
	s.wantRuns(t, 0)
}
