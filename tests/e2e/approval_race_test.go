package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
)

// raw is a connection that knows nothing of the fabric.
func (w *watcher) raw() *nats.Conn {
	w.p.t.Helper()
	nc, err := nats.Connect(w.url)
	if err != nil {
		w.p.t.Fatal(err)
	}
	w.p.t.Cleanup(nc.Close)
	return nc
}

// Of two people who decide at the same instant one is heard, and the other is told so, whichever way each decides.
func TestOfTwoDecisionsAtOnceOneCounts(t *testing.T) {
	t.Parallel()
	const questions = 100
	b := openBank(t, "1h")
	w := b.open()
	for n := range questions {
		if _, err := w.client.Send(t.Context(), "clerk", "", client.Text(fmt.Sprintf("pay %d", n))); err != nil {
			t.Fatal(err)
		}
	}
	var waits []client.Parked
	await(t, "all questions are listed", func() bool {
		waits = decode[client.ParkedPage](t, b.ok("approvals", "ls", "--limit", "1000", "--output", "json")).Parked
		return len(waits) == questions
	})
	ann, bob := w.raw(), w.raw()
	for n, q := range waits {
		word := yes // half of the time they agree
		if n%2 == 1 {
			word = no
		}
		var both sync.WaitGroup
		start := make(chan struct{})
		for _, one := range []struct {
			nc        *nats.Conn
			who, word string
		}{{ann, "ann", yes}, {bob, "bob", word}} {
			both.Go(func() {
				<-start
				if err := one.nc.Publish(subject(q, one.who), []byte(one.word)); err != nil {
					t.Error(err)
				}
				if err := one.nc.Flush(); err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		both.Wait()
	}
	var paid, denied int
	for n, q := range waits {
		a, log := w.ended(q)
		taken := decisions(log)
		if len(taken) != 1 {
			t.Fatalf("the log of question %d has the decisions %+v", n, taken)
		}
		want := map[bool]protocol.Outcome{true: protocol.OutcomeCompleted, false: protocol.OutcomeDenied}[taken[0].Decision.Confirmed]
		if a.Outcome != want {
			t.Errorf("question %d was decided %v and ended as %s", n, taken[0].Decision.Confirmed, a.Outcome)
		}
		effects := b.effects()[q.Call]
		switch a.Outcome {
		case protocol.OutcomeCompleted:
			paid++
		case protocol.OutcomeDenied:
			denied++
		}
		if (a.Outcome == protocol.OutcomeCompleted) != (effects == 1) || effects > 1 {
			t.Errorf("question %d ended as %s after %d effects", n, a.Outcome, effects)
		}
		var heard map[uint64]protocol.Receipt
		await(t, "both are told", func() bool {
			heard = w.heard(q.Confirmation.ID)
			return len(heard) == 2
		})
		for seq, r := range heard {
			counts := seq == taken[0].Seq
			if counts && (r.Code != "" || r.Approver != taken[0].Client) || !counts && r.Code != protocol.CodeDecided {
				t.Errorf("question %d: the log has the word of %s; %s is told %q: %s", n, taken[0].Client, r.Approver, r.Code, r.Message)
			}
		}
	}
	t.Logf("%d questions: %d paid, %d denied", questions, paid, denied)
	if paid < questions/2 || paid+denied != questions {
		t.Errorf("%d paid and %d denied", paid, denied)
	}
}

// The one who approves has read the question in the log, before it is listed anywhere.
func TestAnApprovalMayComeBeforeTheQuestionIsListed(t *testing.T) {
	t.Parallel()
	const sessions = 20
	b := openBank(t, "1h")
	w := b.open()
	n, fast := w.conn.Names(), w.raw()
	asked := make(chan client.Parked, sessions)
	if _, err := w.raw().Subscribe(n.LiveSubject("clerk", "*"), func(m *nats.Msg) {
		ev, err := protocol.DecodeEvent(m.Data)
		if err != nil || ev.Turn == nil || len(ev.Turn.Calls) == 0 {
			return
		}
		c := ev.Turn.Calls[0]
		if c.Confirmation == nil {
			t.Errorf("a call without its question: %+v", c)
			return
		}
		session := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
		_ = fast.Publish(n.ApprovalSubject("clerk", session, c.Confirmation.ID, "ann"), []byte(yes))
		q := client.Parked{}
		q.App, q.Session, q.Call, q.Confirmation = "clerk", session, c.ID, c.Confirmation
		asked <- q
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.conn.Durables(t.Context(), n.Input()); err != nil {
		t.Fatal(err)
	}
	for i := range sessions {
		if _, err := w.client.Send(t.Context(), "clerk", "", client.Text(fmt.Sprintf("pay %d", i))); err != nil {
			t.Fatal(err)
		}
	}
	for range sessions {
		q := receive(t, "question in the log", asked)
		w.told(q, "ann", nil, "")
		if a, _ := w.ended(q); a.Outcome != protocol.OutcomeCompleted || b.effects()[q.Call] != 1 {
			t.Errorf("the call ended as %s after %d effects", a.Outcome, b.effects()[q.Call])
		}
	}
	await(t, "nothing waits any more", func() bool {
		return len(decode[client.ParkedPage](t, b.ok("approvals", "ls", "--output", "json")).Parked) == 0
	})
}

// A decision that names another session's question, another agent's, or none, is kept for a minute, because a replica may be
// behind the log that knows it. Then its sender is told, and it is a dead letter; the question itself stays answerable.
func TestADecisionForAnotherSessionDecidesNothing(t *testing.T) {
	t.Parallel()
	needNATS(t)
	b := openBank(t, "1h")
	w := b.open()
	one, other := b.ask("pay 1"), b.ask("pay 2")
	n := w.conn.Names()
	wrong := []string{
		n.ApprovalSubject("clerk", other.Session, one.Confirmation.ID, "eve"), // the other one's session
		n.ApprovalSubject("calls", one.Session, one.Confirmation.ID, "eve"),   // of another app
		n.ApprovalSubject("clerk", "nosession", one.Confirmation.ID, "eve"),   // of nobody
		n.ApprovalSubject("clerk", one.Session, "noconfirmation", "eve"),      // about nothing
		n.ApprovalSubject("clerk", one.Session, other.Confirmation.ID, "eve"), // the other way round
	}
	for _, s := range wrong {
		w.pub(s, yes)
	}
	w.decide(one, "eve", `{"confirmed":true,"digest":"`+other.Confirmation.Digest+`"}`, protocol.CodeDigestMismatch)
	w.decide(one, "eve", `{"confirmed":"yes"}`, protocol.CodeBadMessage)
	call, asks := one, *one.Confirmation
	asks.ID, call.Confirmation, call.Reply = one.Call, &asks, n.ApprovalSubject("clerk", one.Session, one.Call, "*")
	w.decide(call, "eve", yes, protocol.CodeUnknownConfirm) // a call is no confirmation, and this one's is known
	await(t, "each is a dead letter", func() bool {
		letters := decode[client.LetterPage](t, b.ok("dlq", "ls", "--output", "json")).Letters
		found := map[string]bool{}
		for _, l := range letters {
			if l.Code == protocol.CodeUnknownConfirm {
				found[l.Subject] = true
			}
		}
		for _, s := range wrong {
			if !found[s] {
				return false
			}
		}
		return true
	})
	for _, s := range wrong {
		_, _, confirmation, _, _ := n.ParseApproval(s)
		await(t, "whoever published on "+s+" is told", func() bool {
			for _, r := range w.heard(confirmation) {
				if r.Code == protocol.CodeUnknownConfirm && r.Approver == "eve" {
					return true
				}
			}
			return false
		})
	}
	if got := b.effects(); len(got) > 0 {
		t.Errorf("the effects are %v", got)
	}
	w.decide(one, "ann", yes, "")
	if a, log := w.ended(one); a.Outcome != protocol.OutcomeCompleted || len(decisions(log)) != 1 || b.effects()[one.Call] != 1 {
		t.Errorf("%+v after %v", a, b.effects())
	}
	if waits := b.questions(other.Session); len(waits) != 1 || waits[0].Call != other.Call {
		t.Errorf("the other question: %+v", waits)
	}
}

// receive waits for a signal.
func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}
