package fold

import (
	"encoding/json"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
)

func by(agent string, t protocol.Turn) protocol.Turn {
	t.Agent = agent
	return t
}

// answeredWith makes the calls of a turn answered by itself, with these actions in order; nil leaves a call to its pool.
func answeredWith(t protocol.Turn, actions ...*protocol.Actions) protocol.Turn {
	for i, a := range actions {
		if a != nil {
			t.Calls[i].Verdict = protocol.VerdictAnswer
			t.Calls[i].Answer = &protocol.Result{V: 1, Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{}`), Actions: a}
		}
	}
	return t
}

func (l *log) acted(call string, a protocol.Actions) *protocol.Event {
	return l.say(Answered{protocol.Answer{Call: call, Seq: 7, Result: protocol.Result{V: 1, Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{"r":1}`), Actions: &a}}})
}

func (l *log) speaker(want string) {
	l.t.Helper()
	if got := l.state.Speaker(); got != want {
		l.t.Errorf("it is %q's turn, want %q", got, want)
	}
}

var (
	exits = &protocol.Actions{SkipSummarization: true, Escalate: true}
	toB   = &protocol.Actions{TransferToAgent: "b"}
	toC   = &protocol.Actions{TransferToAgent: "c"}
)

func TestTheRunGoesOnWithTheAgentItWasHandedOverTo(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.speaker("") // whoever spoke last, or the root
	l.modelled(answeredWith(by("a", asked("c1")), toB))
	l.pending("Ask ")
	l.speaker("b")
	if n := len(l.events); n != 2 {
		t.Errorf("a transfer took %d events, want the turn's alone", n-1)
	}
	l.state = l.replay() // whoever adopts
	l.adopt()
	l.speaker("b")
	l.modelled(by("b", asked()))
	l.adopt(message("i2"))
	l.speaker("") // a new run: the tree decides whether b is asked first
	if l.state.Spoke != "b" {
		t.Errorf("%q spoke last, want b", l.state.Spoke)
	}
}

func TestWhatAnswersAskOfTheRun(t *testing.T) {
	for _, c := range []struct {
		name    string
		recs    []*protocol.Actions // recorded in the turn; nil goes to a pool
		c1      protocol.Actions    // answers of the pool's calls
		speaker string
		pending string
	}{
		{"the last of two transfers counts", []*protocol.Actions{toB, toC}, protocol.Actions{}, "c", "Ask "},
		{"call order, not the order of their ends", []*protocol.Actions{nil, toC}, protocol.Actions{TransferToAgent: "b"}, "c", "Ask "},
		{"a worker's tool hands over", []*protocol.Actions{nil}, protocol.Actions{TransferToAgent: "b"}, "b", "Ask "},
		{"one that wants no summary ends the run", []*protocol.Actions{nil}, protocol.Actions{SkipSummarization: true}, "a", "Finish "},
		{"and those beside it", []*protocol.Actions{exits, nil}, protocol.Actions{}, "a", "Finish "},
		{"a transfer goes before an end", []*protocol.Actions{exits, toB}, protocol.Actions{}, "b", "Ask "},
		{"an escalation alone ends nothing", []*protocol.Actions{nil}, protocol.Actions{Escalate: true}, "a", "Ask "},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLog(t)
			l.adopt(message("i1"))
			ids := []string{"c1", "c2"}[:len(c.recs)]
			turn := answeredWith(by("a", asked(ids...)), c.recs...)
			l.modelled(turn)
			for i, rec := range c.recs {
				if rec == nil {
					l.pending("Perform:" + ids[i] + " ") // nothing of it counts before all calls ended
					l.acted(ids[i], c.c1)
				}
			}
			l.speaker(c.speaker)
			l.pending(c.pending)
			l.say(Drain{})
			l.state = l.replay()
			l.adopt()
			l.speaker(c.speaker)
			l.pending(c.pending)
			if c.pending != "Finish " {
				return
			}
			ev := l.say(Finished{})
			if ev == nil || ev.Stop == nil || ev.Stop.Kind != protocol.StopDone || ev.Stop.Problem != nil {
				t.Fatalf("the run was not ended: %+v", ev)
			}
			l.pending("Disarm ")
		})
	}
}

func TestATurnThatEndsTheRunByItselfIsOneEvent(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	ev := l.modelled(answeredWith(by("a", asked("c1", "c2")), &protocol.Actions{}, exits))
	if ev.Stop == nil || ev.Stop.Kind != protocol.StopDone {
		t.Errorf("the turn's event has the stop %+v", ev.Stop)
	}
	l.pending("Disarm ")
}

func TestTheAnswersOfATurnThatEndsTheRunAreInItsStop(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.modelled(by("a", asked("c1", "c2")))
	l.acted("c2", protocol.Actions{SkipSummarization: true, StateDelta: map[string]json.RawMessage{"k": json.RawMessage(`1`)}})
	l.answer("c1", "")
	ev := l.say(Finished{})
	if ev == nil || len(ev.Answers) != 2 || ev.Answers[0].Call != "c1" {
		t.Fatalf("the event is %+v, want both answers in call order", ev)
	}
	if string(l.state.Values["k"]) != "1" {
		t.Errorf("the state is %s", l.state.Values)
	}
}

func TestAMessageThatNobodySawIsAnsweredThoughTheTurnEndsTheRun(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	before := l.state.Seq
	l.say(Arrive{[]Arrival{message("i2")}})
	turn := answeredWith(by("a", asked("c1")), exits)
	turn.RequestSeq = before
	if ev := l.say(Modelled{Turn: turn}); ev.Stop != nil {
		t.Fatalf("the run ended with %+v", ev.Stop)
	}
	l.pending("Ask ")
	if ev := l.say(Finished{}); ev != nil {
		t.Errorf("the run was ended: %+v", ev)
	}
	l.modelled(by("a", asked("c2")))
	l.acted("c2", *exits)
	l.pending("Finish ")
	l.say(Arrive{[]Arrival{message("i3")}}) // before the stop is appended
	l.pending("Ask ")
}

func TestACancelGoesBeforeAnEnd(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.modelled(by("a", asked("c1")))
	l.say(Arrive{[]Arrival{{Input: protocol.FoldedInput{ID: "x", Kind: protocol.InputCancel, Client: "me"}}}})
	if ev := l.acted("c1", *exits); ev == nil || ev.Stop == nil || ev.Stop.Kind != protocol.StopCancelled {
		t.Errorf("the last answer makes %+v, want the stop of a cancel", ev)
	}
}

func TestALateResultComesToTheAgentThatWaitsForIt(t *testing.T) {
	late := func(a protocol.Actions) *log {
		l := newLog(t)
		l.adopt(message("i1"))
		turn := by("b", asked("c1"))
		turn.Calls[0].LongRunning, turn.Calls[0].AnswersTo, turn.Calls[0].Park = true, protocol.MailboxWake, 100_000
		l.modelled(turn)
		l.say(Answered{protocol.Answer{Call: "c1", Result: protocol.Result{V: 1, Outcome: protocol.OutcomePending, Value: json.RawMessage(`{"ticket":1}`)}}})
		l.modelled(by("b", asked()))
		l.adopt(Arrival{Answer: &protocol.Answer{Call: "c1", Round: 1, Seq: 9, Result: protocol.Result{V: 1, Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{"r":1}`), Actions: &a}}})
		return l
	}
	l := late(protocol.Actions{})
	l.speaker("b")
	l.pending("Ask ")
	l = late(protocol.Actions{TransferToAgent: "c"})
	l.speaker("c")
	l.pending("Ask ")
	l = late(protocol.Actions{SkipSummarization: true})
	if l.state.Owned() {
		t.Errorf("a result that nobody is to be told of began a run: %s", kinds(Pending(l.state)))
	}
}
