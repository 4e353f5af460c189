package fold

import (
	"encoding/json"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
)

func TestACallThatACallbackAnsweredIsAnsweredByItsTurn(t *testing.T) {
	l := newLog(t)
	l.adopt(message("in1"))
	turn := asked("a", "b")
	turn.Calls[0].Verdict = protocol.VerdictAnswer
	turn.Calls[0].Answer = &protocol.Result{V: 1, Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{"x":1}`),
		Actions: &protocol.Actions{StateDelta: map[string]json.RawMessage{"k": json.RawMessage(`1`)}}}
	l.modelled(turn)
	if open := l.state.Open(); len(open) != 1 || open[0].ID != "b" {
		t.Fatalf("open are %v", open)
	}
	l.answer("b", "")
	l.modelled(protocol.Turn{Agent: "helper", Content: json.RawMessage(`{}`)})
	if string(l.state.Values["k"]) != "1" {
		t.Errorf("the state is %v", l.state.Values)
	}
}

// The answer of a decision's event stands for what the decision alone would lead to.
func TestWhatCallbacksMakeOfADecisionIsInItsEvent(t *testing.T) {
	for name, c := range map[string]struct {
		yes     bool
		ends    protocol.Answer
		outcome protocol.Outcome
	}{
		"approved and answered":    {true, result("a", 0, protocol.OutcomeCompleted, `{"x":1}`), protocol.OutcomeCompleted},
		"approved and asked again": {true, result("a", 0, protocol.OutcomeAsks, `{}`), protocol.OutcomeAsks},
		"denied with another word": {false, result("a", 0, protocol.OutcomeDenied, `{"sorry":true}`), protocol.OutcomeDenied},
		"for another call":         {false, result("z", 0, protocol.OutcomeCompleted, `{}`), protocol.OutcomeDenied},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog(t)
			l.adopt(message("in1"))
			l.modelled(gated("a"))
			d := decision("qa", "boss", c.yes)
			d.Input.StateDelta = map[string]json.RawMessage{"k": json.RawMessage(`1`)}
			if c.ends.Confirmation != nil {
				c.ends.Confirmation = question("qa2", "a", `{}`)
			}
			d.Ends = &c.ends
			ev := l.say(Adopt{Coordinator: "c2", Adoption: "a2", Arrivals: []Arrival{d}})
			l.outcome(ev, "a", c.outcome)
			if string(l.state.Values["k"]) != "1" {
				t.Errorf("the state is %v", l.state.Values)
			}
			if c.outcome == protocol.OutcomeAsks {
				l.stopped(ev, protocol.StopParked)
				if _, q, ok := l.state.Question("qa2"); !ok || q.ID != "qa2" || l.state.RoundOf("a") != 1 {
					t.Errorf("the next question is %v in round %d", q, l.state.RoundOf("a"))
				}
				return
			}
			l.pending("Ask ")
		})
	}
}

func TestOnlyTheLastAgreementDecides(t *testing.T) {
	l := newLog(t)
	l.adopt(message("in1"))
	turn := gated("a")
	turn.Calls[0].Confirmation.Need = 2
	l.modelled(turn)
	if first := decision("qa", "ann", true).Input; l.state.Decides(first) {
		t.Error("the first of two agreements decides")
	}
	if !l.state.Decides(decision("qa", "ann", false).Input) {
		t.Error("a denial does not decide")
	}
	l.say(Adopt{Coordinator: "c2", Adoption: "a2", Arrivals: []Arrival{decision("qa", "ann", true)}})
	edit := decision("qa", "ben", true).Input
	if !l.state.Decides(edit) {
		t.Error("the second of two agreements does not decide")
	}
	edit.Decision.Args = json.RawMessage(`{"n":1}`)
	if l.state.Decides(edit) || l.state.Decides(decision("other", "ben", true).Input) {
		t.Error("edited arguments or an unknown question are decided")
	}
}

// A session is held for what callbacks look at, and let go of when that comes to nothing.
func TestASessionIsHeldForWhatCallbacksSee(t *testing.T) {
	l := newLog(t)
	if ev := l.say(Adopt{Coordinator: "c1", Adoption: "a1", Awaits: true}); ev.Stop != nil {
		t.Fatalf("it stops at once: %+v", ev.Stop)
	}
	refused := message("in1")
	refused.Input.Refused = &protocol.Problem{Code: protocol.CodeModelFailed, Message: "no"}
	l.stopped(l.say(Arrive{[]Arrival{refused}}), protocol.StopDone)

	l.say(Adopt{Coordinator: "c1", Adoption: "a2", Awaits: true})
	l.stopped(l.say(Settle{}), protocol.StopDone)
	if ev := l.say(Settle{}); ev != nil {
		t.Errorf("a session at rest is settled: %+v", ev)
	}

	l.say(Adopt{Coordinator: "c1", Adoption: "a3", Awaits: true})
	if ev := l.say(Arrive{[]Arrival{message("in2")}}); ev.Stop != nil || l.state.Run == nil {
		t.Errorf("the message begins no run: %+v", ev.Stop)
	}
	if ev := l.say(Settle{}); ev != nil {
		t.Errorf("a run is settled: %+v", ev)
	}

	parked := newLog(t)
	parked.adopt(message("in1"))
	parked.modelled(gated("a"))
	if ev := parked.say(Adopt{Coordinator: "c2", Adoption: "a2", Awaits: true}); ev.Stop != nil {
		t.Errorf("a parked session is not held: %+v", ev.Stop)
	}
}

func TestARunKnowsWhichAgentItEntered(t *testing.T) {
	l := newLog(t)
	l.adopt(message("in1"))
	ev := l.say(Entered{protocol.Turn{Agent: "helper", StateDelta: map[string]json.RawMessage{"k": json.RawMessage(`1`)}}})
	if ev.Stop != nil || l.state.Run.Entered != "helper" || l.state.Run.ModelCalls != 0 || string(l.state.Values["k"]) != "1" {
		t.Errorf("%+v after an entry, state %v", l.state.Run, l.state.Values)
	}
	l.stopped(l.modelled(protocol.Turn{Agent: "helper", Content: json.RawMessage(`{}`)}), protocol.StopDone)

	l.adopt(message("in2"))
	asked := l.state.Seq
	l.say(Arrive{[]Arrival{message("in3")}})
	ev = l.say(Modelled{Turn: protocol.Turn{Agent: "helper", By: protocol.SpeakerBeforeAgent, RequestSeq: asked, Content: json.RawMessage(`{}`)}})
	if ev.Stop != nil || l.state.Run.Entered != "" || l.state.Run.ModelCalls != 0 {
		t.Errorf("a message that came while a callback answered another one is not asked about: %+v, %+v", ev.Stop, l.state.Run)
	}
}
