package worker_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

func TestLiveAnswersGoToTheMailboxThatTheCallNames(t *testing.T) {
	l := goLive(t)
	e := echo("echo", tool.AtMostOnce)
	l.consumer("echo", 30*time.Second)
	l.start("w1", "", worker.Config{}, e)
	results, wake := l.call(e, "c1", `{"n":1}`), l.call(e, "c2", `{"n":2}`)
	wake.AnswersTo, wake.Round = protocol.MailboxWake, 3
	for _, c := range []protocol.Envelope{results, wake} {
		l.send(c)
		if a := receive(t, l.done); a.call != c.Call || a.round != c.Round || a.Outcome != protocol.OutcomeCompleted {
			t.Errorf("got %+v", a)
		}
	}
	if r := l.wake(protocol.Handle{App: "app", Tool: "echo", Session: "s", Call: "c2", Round: 3}); string(r.Value) != `{"n":2}` {
		t.Errorf("in the mailbox: %+v", r)
	}
	for _, subject := range []string{l.names.ResultSubject("echo", "s", "c2", 3), l.names.ResultSubject("echo", "s", "c2", 0)} {
		if _, err := l.bus.Last(t.Context(), l.names.Results(), subject); protocol.CodeOf(err) != protocol.CodeNotFound {
			t.Errorf("%s: %v", subject, err)
		}
	}
}

func TestLiveMailboxThatNobodyKnowsIsADeadLetter(t *testing.T) {
	l := goLive(t)
	e := echo("echo", tool.Read)
	l.consumer("echo", 30*time.Second)
	settled := make(chan worker.Settlement, 1)
	l.start("w1", "", worker.Config{Listener: worker.Events{Settled: func(_ worker.Attempt, s worker.Settlement) { settled <- s }}}, e)
	c := l.call(e, "c1", `{}`)
	c.AnswersTo = "pigeon"
	l.send(c)
	if s := receive(t, settled); s.Way != worker.Buried || s.Code != protocol.CodeUnsupported {
		t.Errorf("got %+v", s)
	}
}

// The whole way of a call whose tool asks by its arguments and then by itself, against a real broker; each round on a
// worker of its own.
func TestLiveRoundsOfACallThatAsks(t *testing.T) {
	l := goLive(t)
	v := vacation()
	p := &picky{*v, func(json.RawMessage) (bool, error) { return true, nil }}
	l.consumer("vacation", 30*time.Second)
	c := l.call(p, "c1", `{}`)
	c.AnswersTo = protocol.MailboxWake
	round := func(n int, word *protocol.Confirmed) answer {
		t.Helper()
		w := l.start("w"+string(rune('0'+n)), "", worker.Config{}, p)
		c.Round, c.Confirmation = n, word
		l.send(c)
		a := receive(t, l.done)
		if err := w.drain(); err != nil {
			t.Error(err)
		}
		if a.round != n {
			t.Fatalf("round %d answered round %d", n, a.round)
		}
		return a
	}
	if a := round(0, nil); a.Outcome != protocol.OutcomeAsks || !a.Ask.Provider {
		t.Errorf("the provider: %+v", a)
	}
	a := round(1, &protocol.Confirmed{ID: "k1", Confirmed: true, Payload: json.RawMessage(`{"days":5}`)})
	if a.Outcome != protocol.OutcomeAsks || a.Ask.Provider || a.Ask.Hint != "really?" {
		t.Errorf("the tool: %+v", a)
	}
	c.State = a.Actions.StateDelta
	if a := round(2, &protocol.Confirmed{ID: "k2"}); a.Outcome != protocol.OutcomeCompleted || string(a.Value) != `{"status":"recorded: refused"}` {
		t.Errorf("the end: %+v, %s", a, a.Value)
	}
	for n, want := range []bool{false, true, true} {
		_, err := l.bus.Last(t.Context(), l.names.Results(), l.names.ClaimSubject("vacation", "c1", n))
		if claimed := err == nil; claimed != want {
			t.Errorf("round %d claimed: %v", n, claimed)
		}
	}
}

func TestLiveDeniedAndUnaskedCallsDoNotRun(t *testing.T) {
	l := goLive(t)
	e := echo("refund", tool.Read)
	e.settings.Confirm = true
	e.run = func(tool.Context, json.RawMessage) (json.RawMessage, error) {
		t.Error("it ran")
		return nil, nil
	}
	l.consumer("refund", 30*time.Second)
	l.start("w1", "", worker.Config{}, e)
	unasked, denied := l.call(e, "c1", `{}`), l.call(e, "c2", `{}`)
	l.send(unasked)
	if a := receive(t, l.done); a.Outcome != protocol.OutcomeFailed || a.Code != protocol.CodeForbidden {
		t.Errorf("unasked: %+v", a)
	}
	denied.Confirmation = &protocol.Confirmed{ID: "k"}
	l.send(denied)
	if a := receive(t, l.done); a.Outcome != protocol.OutcomeDenied || string(a.Value) != `{"error":"error tool \"refund\" call is rejected"}` {
		t.Errorf("denied: %+v, %s", a, a.Value)
	}
}

// The coordinator ends the call in its mailbox and cancels it: what the tool says then is kept as a late result.
func TestLiveCancelledCallThatFinishesAllTheSameIsLate(t *testing.T) {
	l := goLive(t)
	let, started := make(chan struct{}), make(chan struct{}, 1)
	e := echo("stubborn", tool.AtMostOnce)
	e.run = func(ctx tool.Context, _ json.RawMessage) (json.RawMessage, error) {
		started <- struct{}{}
		<-ctx.Done()
		<-let
		return json.RawMessage(`"done"`), nil
	}
	l.consumer("stubborn", 30*time.Second)
	settled := make(chan worker.Settlement, 2)
	l.start("w1", "", worker.Config{Listener: worker.Events{Settled: func(_ worker.Attempt, s worker.Settlement) { settled <- s }}}, e)
	for _, id := range []string{"c1", "c2"} {
		c := l.call(e, id, `{}`)
		c.AnswersTo = protocol.MailboxWake
		l.send(c)
		receive(t, started)
		r := protocol.Result{Outcome: protocol.OutcomeCancelled, Code: protocol.CodeCancelled, Value: protocol.ErrorValue("cancelled"), Worker: "coordinator"}
		if id == "c1" {
			if _, err := natswire.StoreWake(t.Context(), l.bus, l.names, "app", "stubborn", "s", id, 0, nil, r); err != nil {
				t.Fatal(err)
			}
			receive(t, l.done)
		}
		if err := l.bus.Emit(t.Context(), natswire.Msg{Subject: l.names.CancelSubject("stubborn", id)}); err != nil {
			t.Fatal(err)
		}
		if id == "c1" {
			close(let)
		}
		s := receive(t, settled)
		stored, err := l.bus.Last(t.Context(), l.names.DeadLetters(), l.names.DeadLetterSubject("late", id+"-0"))
		switch id {
		case "c1":
			if s.Way != worker.Refused || s.Err != nil || err != nil {
				t.Errorf("settled as %+v; the letter: %s, %v", s, stored.Data, err)
			}
		case "c2": // the cancel alone decides nothing: a tool that answers has answered
			if s.Way != worker.Answered || s.Outcome != protocol.OutcomeCompleted || protocol.CodeOf(err) != protocol.CodeNotFound {
				t.Errorf("settled as %+v; the letter: %s, %v", s, stored.Data, err)
			}
		}
	}
}

func TestLiveCancelledCallAnswersCancelled(t *testing.T) {
	l := goLive(t)
	g, started := loud("slow", tool.AtMostOnce)
	l.consumer("slow", 30*time.Second)
	l.start("w1", "", worker.Config{}, g)
	c := l.call(g, "c1", `{}`)
	c.AnswersTo = protocol.MailboxWake
	l.send(c)
	receive(t, started)
	if err := l.bus.Emit(t.Context(), natswire.Msg{Subject: l.names.CancelSubject("slow", "c1")}); err != nil {
		t.Fatal(err)
	}
	if a := receive(t, l.done); a.Outcome != protocol.OutcomeCancelled || a.Code != protocol.CodeCancelled {
		t.Errorf("got %+v, %s", a, a.Value)
	}
}
