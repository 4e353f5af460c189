package integration

import (
	"sync/atomic"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

// A coordinator that the broker hears or that hears the broker, but not both, holds no decision up and undoes none when it
// is back.
func TestAOneWayPartitionHoldsNoDecisionUp(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]natstest.Way{"ItHearsNothing": natstest.ToClient, "NobodyHearsIt": natstest.ToServer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFabric(t)
			var runs atomic.Int32
			a := newAgent(t, "app", script(t, refundScript), "refund")
			proxy, conn := f.behind()
			f.coordinateOn(conn, conn, a)
			f.work(refund(t, &runs))
			r := f.send(t.Context(), "app", "", "pay order 7 back")
			call := f.untilParked("app", r.Session).Event.Turn.Calls[0]
			proxy.Freeze(way)
			f.coordinate(a)
			n := f.conn.Names()
			if _, err := f.conn.Publish(t.Context(), natswire.Msg{Subject: n.ApprovalSubject("app", r.Session, call.Confirmation.ID, "ann"), Data: []byte(`{"confirmed":true}`)}); err != nil {
				t.Fatal(err)
			}
			contains(t, "the answer", f.wait(r).Text, "finished")
			proxy.Heal()
			if got := f.decide("app", r.Session, call.Confirmation.ID, "bob", `{"confirmed":false}`); got.Code != protocol.CodeDecided {
				t.Errorf("a denial after the end is told %s: %s", got.Code, got.Message)
			}
			f.ask("app", r.Session, "and now?") // whoever drives it
			taken := 0
			for _, e := range f.log("app", r.Session) {
				for _, in := range e.Event.Inputs {
					if in.Kind == protocol.InputDecision {
						taken++
					}
				}
			}
			if taken != 1 || runs.Load() != 1 {
				t.Errorf("%d decisions in the log, %d effects; want one of each", taken, runs.Load())
			}
		})
	}
}
