package fold

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
)

const week = int64(7 * 24 * 3600 * 1000)

// gated is a turn whose calls people must agree to; a name that begins with "p" is a plain call instead.
func gated(calls ...string) protocol.Turn {
	t := asked(calls...)
	for i := range t.Calls {
		c := &t.Calls[i]
		c.Park = week
		if c.ID[0] == 'p' {
			continue
		}
		c.Verdict = protocol.VerdictAsk
		c.AnswersTo = protocol.MailboxWake
		c.Confirmation = question("q"+c.ID, c.ID, `{}`)
		c.Confirmation.Origin = protocol.OriginFlag
	}
	return t
}

// question is a confirmation of a call of the tests' tool, with the digest of what it asks about.
func question(id, call, args string) *protocol.Confirmation {
	expires := 1000 + week
	c := protocol.Call{ID: call, Tool: "t"}
	return &protocol.Confirmation{ID: id, Digest: protocol.ConfirmationDigest("s", &c, json.RawMessage(args), expires, id), Expires: expires}
}

func decision(confirmation, approver string, yes bool) Arrival {
	return Arrival{Input: protocol.FoldedInput{ID: "d-" + confirmation + "-" + approver, Kind: protocol.InputDecision, Client: approver, Sent: 2000,
		Decision: &protocol.FoldedDecision{Confirmation: confirmation, Decision: protocol.Decision{Confirmed: yes, Payload: json.RawMessage(`{"x":1}`)}}}}
}

func cancelled(target string) Arrival {
	return Arrival{Input: protocol.FoldedInput{ID: "cancel-" + target, Kind: protocol.InputCancel, Client: "me", Target: target}}
}

func result(call string, round int, o protocol.Outcome, value string) protocol.Answer {
	a := protocol.Answer{Call: call, Round: round, Seq: 9, Result: protocol.Result{V: 1, Outcome: o, Value: json.RawMessage(value)}}
	if o == protocol.OutcomeAsks {
		a.Ask = &protocol.Ask{Hint: "sure?"}
		a.Confirmation = question("q"+call, call, `{}`)
		a.Confirmation.Origin, a.Confirmation.ToolDecides = protocol.OriginTool, true
	}
	return a
}

func (l *log) stopped(ev *protocol.Event, want protocol.StopKind) {
	l.t.Helper()
	if ev == nil || ev.Stop == nil || ev.Stop.Kind != want {
		l.t.Fatalf("the event stops with %+v, want %s", ev, want)
	}
}

func (l *log) outcome(ev *protocol.Event, call string, want protocol.Outcome) {
	l.t.Helper()
	for _, a := range ev.Answers {
		if a.Call == call {
			if a.Outcome != want {
				l.t.Fatalf("call %s ended as %s, want %s", call, a.Outcome, want)
			}
			return
		}
	}
	l.t.Fatalf("the event has no answer of call %s: %+v", call, ev.Answers)
}

func TestATurnThatOnlyAsksParksInItsOwnEvent(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.stopped(l.modelled(gated("c1", "c2")), protocol.StopParked)
	l.pending("Index Arm Disarm ")
	if n := len(l.state.Waiting()); n != 2 {
		t.Fatalf("%d calls wait, want 2", n)
	}
	l.state = l.replay()
	l.stopped(l.adopt(), protocol.StopParked)
	if l.state.Barren != 0 {
		t.Errorf("an adoption that found nothing to run was counted")
	}
}

func TestADecisionLetsTheCallRunOnce(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.modelled(gated("c1"))
	if ev := l.adopt(decision("qc1", "ann", true)); ev.Stop != nil {
		t.Fatalf("the session rests with an approved call: %+v", ev.Stop)
	}
	l.pending("Perform:c1 ")
	p := Pending(l.state)[0].(Perform)
	if p.Given == nil || !p.Given.Confirmed || p.Call.Effect != protocol.EffectAtMostOnce || !p.Wakes || p.Round != 0 {
		t.Fatalf("the call goes out as %+v", p)
	}
	for approver, want := range map[string]protocol.Code{"ann": protocol.CodeDecided, "bob": protocol.CodeDecided} {
		if problem, known := l.state.JudgeDecision(decision("qc1", approver, true).Input); !known || problem == nil || problem.Code != want {
			t.Errorf("a second decision of %s is judged %v", approver, problem)
		}
	}
	if problem, _ := l.state.JudgeDecision(decision("qc1", "ann", false).Input); problem == nil || problem.Code != protocol.CodeConflict {
		t.Errorf("a change of mind is judged %v", problem)
	}
	if _, known := l.state.JudgeDecision(decision("other", "ann", true).Input); known {
		t.Error("a confirmation of nobody is known")
	}
	ev := l.say(Answered{result("c1", 0, protocol.OutcomeCompleted, `{"r":1}`)})
	l.outcome(ev, "c1", protocol.OutcomeCompleted)
	l.pending("Ask ")
}

func TestADeniedCallNeverReachesAWorker(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.modelled(gated("c1", "c2"))
	ev := l.adopt(decision("qc1", "ann", false))
	l.outcome(ev, "c1", protocol.OutcomeDenied)
	l.stopped(ev, protocol.StopParked)
	ev = l.adopt(decision("qc2", "ann", false))
	l.outcome(ev, "c2", protocol.OutcomeDenied)
	l.pending("Ask ")
	if problem, _ := l.state.JudgeDecision(decision("qc1", "bob", true).Input); problem == nil || problem.Code != protocol.CodeDecided {
		t.Errorf("an approval after the denial is judged %v", problem)
	}
}

func TestSettledSiblingsAreStoredWithThePark(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	if ev := l.modelled(gated("p1", "c2")); ev.Stop != nil {
		t.Fatal("parked with a call to run")
	}
	l.pending("Perform:p1 ")
	ev := l.answer("p1", "")
	if ev != nil {
		t.Fatalf("a plain answer made an event: %+v", ev)
	}
	ev = l.say(Park{})
	l.stopped(ev, protocol.StopParked)
	l.outcome(ev, "p1", protocol.OutcomeCompleted)
	l.adopt(decision("qc2", "ann", true))
	l.pending("Perform:c2 ")
}

func TestMOfNApproversMustAgreeAndTheRequesterIsNone(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	turn := gated("c1")
	turn.Calls[0].Confirmation.Need, turn.Calls[0].Confirmation.NotRequester = 2, true
	l.modelled(turn)
	if problem, _ := l.state.JudgeDecision(decision("qc1", "me", true).Input); problem == nil || problem.Code != protocol.CodeForbidden {
		t.Errorf("the requester's word is judged %v", problem)
	}
	l.stopped(l.adopt(decision("qc1", "ann", true)), protocol.StopParked)
	if problem, _ := l.state.JudgeDecision(decision("qc1", "ann", true).Input); problem == nil || problem.Code != protocol.CodeDecided {
		t.Errorf("a second vote of one approver is judged %v", problem)
	}
	l.adopt(decision("qc1", "bob", true))
	l.pending("Perform:c1 ")
}

func TestEditedArgumentsNeedADecisionOfTheirOwn(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.modelled(gated("c1"))
	edit := decision("qc1", "ann", true)
	edit.Input.Decision.Args = json.RawMessage(`{"n":2}`)
	edit.Input.Decision.Asks = question("q2", "c1", `{"n":2}`)
	l.stopped(l.adopt(edit), protocol.StopParked)
	l.adopt(decision("q2", "ann", true))
	if p := Pending(l.state)[0].(Perform); string(p.Call.Args) != `{"n":2}` || p.Given.ID != "q2" {
		t.Fatalf("the call goes out as %+v", p)
	}
}

func TestALogThatAsksAmbiguouslyRunsNothing(t *testing.T) { // nobody of ours writes such a log
	for name, tamper := range map[string]func(*protocol.Turn){
		"one id, two calls":    func(t *protocol.Turn) { t.Calls[1].Confirmation = question("qc1", "c2", `{}`) },
		"arguments changed":    func(t *protocol.Turn) { t.Calls[0].Args = json.RawMessage(`{"eur":999}`) },
		"tool changed":         func(t *protocol.Turn) { t.Calls[0].Tool = "other" },
		"another one's expiry": func(t *protocol.Turn) { t.Calls[0].Confirmation.Expires++ },
	} {
		l := newLog(t)
		l.adopt(message("i1"))
		turn := gated("c1", "c2")
		tamper(&turn)
		l.modelled(turn)
		if problem, known := l.state.JudgeDecision(decision("qc1", "ann", true).Input); !known || problem == nil || problem.Code != protocol.CodeDigestMismatch {
			t.Errorf("%s: an approval is judged %v", name, problem)
		}
		if problem, _ := l.state.JudgeDecision(decision("qc1", "ann", false).Input); problem != nil {
			t.Errorf("%s: a denial is judged %v", name, problem)
		}
	}
}

func TestWhatARoundSetsIsThereInTheNext(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.modelled(gated("p1"))
	first := result("p1", 0, protocol.OutcomeAsks, "")
	first.Actions = &protocol.Actions{StateDelta: map[string]json.RawMessage{"days": json.RawMessage("5"), "temp:days": json.RawMessage("6")}}
	l.say(Answered{first})
	l.state = l.replay()
	l.adopt(decision("qp1", "ann", true))
	if v := l.state.View(); string(v["days"]) != "5" || string(v["temp:days"]) != "6" {
		t.Errorf("the next round sees %s", v)
	}
}

func TestTheIDOfACallIsNoConfirmation(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	turn := gated("c1")
	turn.Calls[0].ProviderID = "model-1"
	l.modelled(turn)
	for _, id := range []string{"c1", "model-1"} {
		problem, known := l.state.JudgeDecision(decision(id, "ann", true).Input)
		if !known || problem == nil || problem.Code != protocol.CodeUnknownConfirm || !strings.Contains(problem.Message, "qc1") {
			t.Errorf("%s is judged %v", id, problem)
		}
	}
	if _, known := l.state.JudgeDecision(decision("nobody", "ann", true).Input); known {
		t.Error("an unknown confirmation is known: a newer log may ask it")
	}
}

func TestAToolThatAsksRunsAgainWithTheAnswer(t *testing.T) {
	for _, yes := range []bool{true, false} {
		l := newLog(t)
		l.adopt(message("i1"))
		l.modelled(gated("p1"))
		ev := l.say(Answered{result("p1", 0, protocol.OutcomeAsks, `{"status":"waiting"}`)})
		l.stopped(ev, protocol.StopParked)
		l.adopt(decision("qp1", "ann", yes))
		p := Pending(l.state)[0].(Perform)
		if p.Round != 1 || p.Given == nil || p.Given.Confirmed != yes || p.Sent != nil {
			t.Fatalf("the call goes out as %+v", p)
		}
		second := result("p1", 1, protocol.OutcomeAsks, "")
		second.Confirmation = question("q2", "p1", `{}`)
		l.stopped(l.say(Answered{second}), protocol.StopParked)
		l.adopt(decision("q2", "ann", true))
		if p := Pending(l.state)[0].(Perform); p.Round != 2 {
			t.Fatalf("the second resume is round %d, want 2", p.Round)
		}
		if ev := l.say(Answered{result("p1", 1, protocol.OutcomeCompleted, `{}`)}); ev != nil {
			t.Fatal("an answer of an older round was taken")
		}
		l.say(Answered{result("p1", 2, protocol.OutcomeCompleted, `{}`)})
		l.pending("Ask ")
	}
}

func TestALongCallWithoutAWordParksUntilItsResultComes(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	turn := gated("p1")
	turn.Calls[0].LongRunning, turn.Calls[0].AnswersTo = true, protocol.MailboxWake
	l.modelled(turn)
	l.stopped(l.say(Answered{result("p1", 0, protocol.OutcomePending, "")}), protocol.StopParked)
	final := result("p1", 1, protocol.OutcomeCompleted, `{"done":true}`)
	ev := l.adopt(Arrival{Answer: &final})
	l.outcome(ev, "p1", protocol.OutcomeCompleted)
	l.pending("Ask ")
	if e, ok := l.state.Past.Find("p1"); !ok || e.Code != protocol.CodeAnswered {
		t.Error("a second result of the call finds nothing of its end")
	}
}

func TestALongCallWithATicketAnswersLater(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	turn := gated("p1")
	turn.Calls[0].LongRunning, turn.Calls[0].AnswersTo = true, protocol.MailboxWake
	l.modelled(turn)
	l.say(Answered{result("p1", 0, protocol.OutcomePending, `{"status":"pending"}`)})
	l.pending("Ask ")
	l.stopped(l.modelled(asked()), protocol.StopDone)
	l.pending("Index Arm Disarm ")
	final := result("p1", 1, protocol.OutcomeCompleted, `{"done":true}`)
	if ev := l.adopt(Arrival{Answer: &final}); ev.Stop != nil {
		t.Fatalf("the model is not told: %+v", ev.Stop)
	}
	l.pending("Ask ")
	l.modelled(asked())
	l.pending("Index Disarm ")
	if got := Pending(l.state)[0].(Index).Gone; len(got) != 1 || got[0] != "p1" {
		t.Errorf("PARK loses %v", got)
	}
	l.adopt()
	l.pending("Disarm ")
}

func TestAWaitEndsAtItsInstant(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.modelled(gated("c1"))
	due := l.state.Due()
	if due != 1000+week {
		t.Fatalf("due at %d", due)
	}
	late := decision("qc1", "ann", true)
	late.Input.Sent = due + 1
	if problem, _ := l.state.JudgeDecision(late.Input); problem == nil || problem.Code != protocol.CodeExpired {
		t.Errorf("a decision after the instant is judged %v", problem)
	}
	l.at = due
	if ev := l.adopt(); ev.Stop != nil {
		t.Fatalf("the adoption that the instant woke rests: %+v", ev.Stop)
	}
	expired := result("c1", 0, protocol.OutcomeExpired, `{"error":"nobody decided"}`)
	l.say(Answered{expired})
	l.pending("Ask ")
	if e, _ := l.state.Past.Find("qc1"); e.Code != protocol.CodeExpired {
		t.Errorf("the confirmation is remembered as %+v", e)
	}
}

func TestAMessageToAParkedSessionIsQueued(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.modelled(gated("c1"))
	l.stopped(l.adopt(message("i2")), protocol.StopParked)
	l.adopt(decision("qc1", "ann", true))
	l.pending("Perform:c1 ")
}

func TestCancelEndsWhatWaitsAtOnceAndRevokesWhatRuns(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.modelled(gated("p1", "c2"))
	ev := l.say(Arrive{[]Arrival{cancelled("")}})
	l.outcome(ev, "c2", protocol.OutcomeCancelled)
	l.pending("Revoke ")
	ev = l.say(Answered{result("p1", 0, protocol.OutcomeCancelled, `{"error":"cancelled"}`)})
	l.stopped(ev, protocol.StopCancelled)
	l.pending("Disarm ")
	if ev := l.adopt(cancelled("")); len(ev.Inputs) != 0 {
		t.Errorf("the same cancel was folded twice: %+v", ev.Inputs)
	}
	again := cancelled("")
	again.Input.ID = "again"
	if ev := l.adopt(again); ev.Inputs[0].Refused == nil || ev.Inputs[0].Refused.Code != protocol.CodeNotFound {
		t.Errorf("a cancel of nothing is folded as %+v", ev.Inputs)
	}
}

func TestCancelOfOneCallLeavesTheOthers(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.modelled(gated("p1", "c2"))
	l.say(Arrive{[]Arrival{cancelled("c2")}})
	l.pending("Perform:p1 ")
	l.answer("p1", "")
	l.pending("Ask ")
	if problem, _ := l.state.JudgeDecision(decision("qc2", "ann", true).Input); problem == nil || problem.Code != protocol.CodeCancelled {
		t.Errorf("an approval of a cancelled call is judged %v", problem)
	}
}

func TestTimeParkedIsNotTimeRun(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.modelled(gated("c1"))
	began := l.state.Run.Began
	l.at += 1_000_000
	l.adopt(decision("qc1", "ann", true))
	if moved := l.state.Run.Began - began; moved < 1_000_000 {
		t.Errorf("the run's clock moved by %d ms while it was parked", moved)
	}
}
