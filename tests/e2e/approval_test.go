package e2e

import (
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
)

const (
	yes = `{"confirmed":true}`
	no  = `{"confirmed":false}`
)

// Between the question and its end every process of the fabric is killed and started anew.
func TestAQuestionOutlivesEveryProcess(t *testing.T) {
	t.Parallel()
	needNATS(t)
	for _, c := range []struct {
		name, park string
		end        func(b *bank, w *watcher, q client.Parked)
		outcome    protocol.Outcome
		taken      int           // decisions that the log holds
		late       protocol.Code // what an approval is told that comes when all is over
		says       string        // of the answer's value
	}{
		{name: "Approved", park: "1h", outcome: protocol.OutcomeCompleted, taken: 1, late: protocol.CodeDecided, says: "paid",
			end: func(_ *bank, w *watcher, q client.Parked) { w.decide(q, "ann", yes, "") }},
		{name: "Denied", park: "1h", outcome: protocol.OutcomeDenied, taken: 1, late: protocol.CodeDecided, says: "rejected",
			end: func(_ *bank, w *watcher, q client.Parked) { w.decide(q, "ann", no, "") }},
		{name: "Expired", park: "4s", outcome: protocol.OutcomeExpired, late: protocol.CodeExpired, says: "nobody decided",
			end: func(*bank, *watcher, client.Parked) {}},
		{name: "CancelledByCommand", park: "1h", outcome: protocol.OutcomeCancelled, late: protocol.CodeCancelled, says: "not executed",
			end: func(b *bank, _ *watcher, q client.Parked) { b.ok("sessions", "cancel", q.Session) }},
		{name: "CancelledByAPublish", park: "1h", outcome: protocol.OutcomeCancelled, late: protocol.CodeCancelled, says: "not executed",
			end: func(_ *bank, w *watcher, q client.Parked) {
				w.pub(w.conn.Names().InputSubject(q.App, "somebody", q.Session), `{"v":1,"id":"enough","kind":"cancel","target":"`+q.Call+`"}`)
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := openBank(t, c.park)
			b.open()
			q := b.ask("pay 5")
			b.crash()
			w := b.open()
			c.end(b, w, q)
			want := 0
			if c.outcome == protocol.OutcomeCompleted {
				want = 1
			}
			over := func(w *watcher) {
				t.Helper()
				a, log := w.ended(q)
				if a.Outcome != c.outcome || !strings.Contains(string(a.Value), c.says) {
					t.Errorf("the call ended as %s with %s", a.Outcome, a.Value)
				}
				if got := decisions(log); len(got) != c.taken || c.taken > 0 && (got[0].Client != "ann" || got[0].Decision.Confirmation != q.Confirmation.ID) {
					t.Errorf("the log has the decisions %+v", got)
				}
				if got := b.effects(); got[q.Call] != want || len(got) != want {
					t.Errorf("the effects are %v, want %d", got, want)
				}
			}
			over(w)
			await(t, "nothing waits any more", func() bool { return len(b.questions(q.Session)) == 0 })
			if show := b.ok("sessions", "show", q.Session); c.outcome != protocol.OutcomeCancelled && !strings.Contains(show, "clerk: the transfer gave") {
				t.Errorf("the answer is not there:\n%s", show)
			}

			// The same again, at once and after another end of everything: it changes nothing, and is told so.
			w.decide(q, "bob", yes, c.late)
			over(w)
			b.crash()
			w = b.open()
			w.decide(q, "cat", yes, c.late)
			over(w)
		})
	}
}
