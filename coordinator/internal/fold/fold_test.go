package fold

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolfabric/toolfabric/protocol"
)

// log is a session whose events are appended as Step proposes them.
type log struct {
	t      *testing.T
	state  State
	events []protocol.Event
	ids    int
	at     int64
}

func newLog(t *testing.T) *log {
	return &log{t: t, state: State{App: "app", Session: "s"}, at: 1000}
}

// say steps and appends; it returns the event, nil when there was none.
func (l *log) say(in Input) *protocol.Event {
	l.t.Helper()
	l.ids++
	l.at += 10
	next, ev := Step(l.state, in, Stamp{ID: func() string { return fmt.Sprint("e", l.ids) }, At: l.at})
	l.state = next
	if ev == nil {
		return nil
	}
	l.append(*ev)
	return ev
}

func (l *log) append(ev protocol.Event) {
	l.t.Helper()
	data, err := protocol.Encode(ev) // what is folded is what the log gives back
	if err != nil {
		l.t.Fatal(err)
	}
	if ev, err = protocol.DecodeEvent(data); err != nil {
		l.t.Fatal(err)
	}
	if l.state, err = Fold(l.state, l.state.Seq+1, ev); err != nil {
		l.t.Fatal(err)
	}
	l.events = append(l.events, ev)
}

// replay folds the log anew.
func (l *log) replay() State {
	l.t.Helper()
	s := State{App: "app", Session: "s"}
	for i, ev := range l.events {
		var err error
		if s, err = Fold(s, uint64(i+1), ev); err != nil {
			l.t.Fatal(err)
		}
	}
	return s
}

func message(id string) Arrival {
	return Arrival{Input: protocol.FoldedInput{ID: id, Kind: protocol.InputMessage, Client: "me", Content: json.RawMessage(`{"role":"user","parts":[{"text":"x"}]}`)}}
}

func (l *log) adopt(arrivals ...Arrival) *protocol.Event {
	l.t.Helper()
	return l.say(Adopt{Coordinator: "c", Adoption: fmt.Sprint("a", l.ids), Arrivals: arrivals})
}

func asked(calls ...string) protocol.Turn {
	t := protocol.Turn{Content: json.RawMessage(`{"role":"model"}`)}
	for _, id := range calls {
		t.Calls = append(t.Calls, protocol.Call{ID: id, Tool: "t", Args: json.RawMessage(`{}`), Verdict: protocol.VerdictRun})
	}
	return t
}

func (l *log) modelled(t protocol.Turn) *protocol.Event {
	t.RequestSeq = l.state.Seq
	return l.say(Modelled{Turn: t})
}

func (l *log) answer(call, delta string) *protocol.Event {
	r := protocol.Result{V: 1, Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{"r":1}`)}
	if delta != "" {
		r.Actions = &protocol.Actions{StateDelta: map[string]json.RawMessage{"k": json.RawMessage(delta)}}
	}
	return l.say(Answered{protocol.Answer{Call: call, Seq: 7, Result: r}})
}

func kinds(effects []Effect) string {
	out := ""
	for _, e := range effects {
		out += reflect.TypeOf(e).Name()
		if p, ok := e.(Perform); ok {
			out += ":" + p.Call.ID
			if p.Sent != nil {
				out += "!"
			}
		}
		out += " "
	}
	return out
}

func (l *log) pending(want string) {
	l.t.Helper()
	if got := kinds(Pending(l.state)); got != want {
		l.t.Fatalf("pending is %q, want %q", got, want)
	}
}

func TestARunGoesFromInputToAnswer(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.pending("Ask ")
	l.modelled(asked("c1", "c2"))
	l.pending("Perform:c1 Perform:c2 ")
	if l.answer("c2", "") != nil {
		t.Fatal("an answer that is durable elsewhere was appended by itself")
	}
	l.pending("Perform:c1 ")
	l.answer("c1", "")
	l.pending("Ask ")
	ev := l.modelled(asked())
	if len(ev.Answers) != 2 || ev.Answers[0].Call != "c1" || ev.Answers[1].Call != "c2" {
		t.Fatalf("the last event carries %+v, want the answers in call order", ev.Answers)
	}
	if ev.Stop == nil || ev.Stop.Kind != protocol.StopDone {
		t.Fatalf("the run has not ended: %+v", ev.Stop)
	}
	l.pending("Disarm ")
	if len(l.events) != 3 {
		t.Fatalf("a run of one round of calls took %d events, want 3", len(l.events))
	}
}

func TestInputsAreFoldedOnce(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"), message("i1"), message("i2"))
	if n := len(l.events[0].Inputs); n != 2 {
		t.Fatalf("%d inputs were folded, want 2", n)
	}
	if ev := l.say(Arrive{[]Arrival{message("i2")}}); ev != nil {
		t.Fatalf("a known input was folded again: %+v", ev)
	}
}

func TestInputsOfOneEventAreBounded(t *testing.T) {
	l := newLog(t)
	var all []Arrival
	for i := range 5 {
		a := message(fmt.Sprint("i", i))
		a.Input.Content = json.RawMessage(fmt.Sprintf(`{"role":"user","parts":[{"text":"%0*d"}]}`, MaxInputs*2/5, i))
		all = append(all, a)
	}
	huge := message("huge")
	huge.Input.Content = json.RawMessage(fmt.Sprintf(`{"role":"user","parts":[{"text":"%0*d"}]}`, MaxInputs, 0))
	if ev := l.adopt(all...); len(ev.Inputs) != 2 {
		t.Fatalf("the first event took %d inputs, want the two that fit", len(ev.Inputs))
	}
	for _, want := range []int{2, 1, 1} {
		ev := l.say(Arrive{append(all, huge)})
		if len(ev.Inputs) < want {
			t.Fatalf("an event took %d inputs, want at least %d", len(ev.Inputs), want)
		}
		if l.state.Seen.Has("huge") {
			if in := ev.Inputs[len(ev.Inputs)-1]; in.Refused == nil || in.Refused.Code != protocol.CodeTooLarge || in.Content != nil {
				t.Errorf("an input that fits no event was folded as %.200v", in)
			}
			return
		}
	}
	t.Error("the last input was never folded")
}

func TestAnInputDuringTheAnswerGetsItsOwnTurn(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	before := l.state.Seq
	l.say(Arrive{[]Arrival{message("i2")}})
	turn := asked()
	turn.RequestSeq = before
	if ev := l.say(Modelled{Turn: turn}); ev.Stop != nil {
		t.Fatal("the run ended without an answer to the late input")
	}
	l.pending("Ask ")
	if ev := l.modelled(asked()); ev.Stop == nil {
		t.Fatal("the run goes on for ever")
	}
}

func TestARefusedCallIsAnsweredByItsTurn(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	turn := asked("c1", "c2")
	turn.Calls[0].Verdict = protocol.VerdictRefuse
	turn.Calls[0].Refusal = &protocol.Result{V: 1, Outcome: protocol.OutcomeFailed, Value: protocol.ErrorValue("no")}
	l.modelled(turn)
	l.pending("Perform:c2 ")
	turn.Calls[1].ID, turn.Calls[1].Verdict, turn.Calls[1].Refusal = "c4", protocol.VerdictRefuse, turn.Calls[0].Refusal
	turn.Calls[0].ID = "c3"
	l.answer("c2", "")
	l.modelled(turn)
	l.pending("Ask ")
}

func TestStateOfATurnIsMergedInCallOrder(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.modelled(asked("c1", "c2"))
	l.answer("c2", `"second"`)
	l.answer("c1", `"first"`)
	if got := string(l.state.View()["k"]); got != `"second"` {
		t.Fatalf("the view has %s, want the later call's value", got)
	}
	l.modelled(asked())
	if got := string(l.state.Values["k"]); got != `"second"` {
		t.Fatalf("the state has %s, want the later call's value", got)
	}
}

func TestTempStateLastsAsLongAsTheRun(t *testing.T) {
	l := newLog(t)
	m := message("i1")
	m.Input.StateDelta = map[string]json.RawMessage{"temp:x": json.RawMessage(`1`), "y": json.RawMessage(`2`)}
	l.adopt(m)
	if v := l.state.View(); len(v) != 2 {
		t.Fatalf("the run sees %v", v)
	}
	l.modelled(asked())
	if v := l.state.View(); len(v) != 1 || string(v["y"]) != "2" {
		t.Fatalf("after the run the state is %v", v)
	}
}

func TestADrainedSessionGoesOnWhereItStood(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.modelled(asked("c1", "c2", "c3"))
	l.answer("c2", "")
	l.say(Drain{Dispatched: map[string]protocol.Dispatch{"c1": {Seq: 7}}})
	l.pending("Rouse ")
	l.state = l.replay() // another process
	l.adopt()
	l.pending("Perform:c1! Perform:c3 ")
	if l.state.Barren != 1 {
		t.Fatalf("%d barren adoptions, want 1", l.state.Barren)
	}
}

func TestASessionThatKillsItsOwnersIsQuarantined(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	for range MaxBarren {
		if ev := l.adopt(); ev.Stop != nil {
			t.Fatalf("quarantined after %d adoptions", l.state.Barren)
		}
	}
	if ev := l.adopt(); ev.Stop == nil || ev.Stop.Kind != protocol.StopQuarantined {
		t.Fatalf("adoption %d does not quarantine: %+v", l.state.Barren, ev.Stop)
	}
	l.pending("Report Disarm ")
	ev := l.adopt(message("i2"))
	if ev.Adopt != nil || ev.Inputs[0].Refused == nil || ev.Inputs[0].Refused.Code != protocol.CodeSessionClosed {
		t.Fatalf("a quarantined session took an input: %+v", ev)
	}
}

func TestAnAdoptionWithNothingToDoStopsAtOnce(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.modelled(asked())
	for range 2 * MaxBarren {
		if ev := l.adopt(); ev.Stop == nil || ev.Stop.Kind != protocol.StopDone {
			t.Fatalf("it goes on: %+v", ev.Stop)
		}
		l.pending("Disarm ")
	}
}

func TestDeletionWithdrawsOpenCalls(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.modelled(asked("c1"))
	l.say(Arrive{[]Arrival{{Input: protocol.FoldedInput{ID: "d", Kind: protocol.InputDelete}}, message("i9")}})
	l.pending("Withdraw Erase Disarm ")
	if n := len(l.events[len(l.events)-1].Inputs); n != 1 {
		t.Fatalf("%d inputs were folded with the deletion, want it alone", n)
	}
}

func TestAClientsCallIsARunOfItsOwn(t *testing.T) {
	l := newLog(t)
	l.state.App = protocol.CallsApp
	turn := asked("c1")
	turn.Content = nil
	l.adopt(Arrival{Input: protocol.FoldedInput{ID: "i", Kind: protocol.InputCall, Call: &protocol.ClientCall{Tool: "t"}}, Turn: &turn})
	l.pending("Perform:c1 ")
	if ev := l.answer("c1", ""); ev == nil || ev.Stop == nil || len(ev.Answers) != 1 {
		t.Fatalf("the call's answer does not end the run: %+v", ev)
	}
	l.pending("Disarm ")
}

func TestTheFirstAnswerOfACallStands(t *testing.T) {
	l := newLog(t)
	l.adopt(message("i1"))
	l.modelled(asked("c1"))
	l.answer("c1", `"a"`)
	l.answer("c1", `"b"`)
	l.answer("other", `"c"`)
	ev := l.modelled(asked())
	if len(ev.Answers) != 1 || string(ev.Answers[0].Actions.StateDelta["k"]) != `"a"` {
		t.Fatalf("answers are %+v", ev.Answers)
	}
}

// TestReplayAndSnapshotsGiveTheSameState drives sessions at random: the state is a function of the log, with and without
// snapshots, epochs only grow, and every call ends once.
func TestReplayAndSnapshotsGiveTheSameState(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 0))
		l := newLog(t)
		calls := 0
		for i := range 400 {
			if !l.state.Owned() {
				l.adopt(message(fmt.Sprint("i", i)))
			}
			open := l.state.Open()
			switch k := r.IntN(10); {
			case k == 0:
				l.say(Arrive{[]Arrival{message(fmt.Sprint("i", r.IntN(i+1)))}})
			case k == 1:
				l.say(Drain{})
			case k == 2:
				l.adopt()
			case k == 3:
				l.say(Snapshot{})
			case len(open) > 0:
				l.answer(open[r.IntN(len(open))].ID, fmt.Sprint(i))
			default:
				var ids []string
				for range r.IntN(4) {
					calls++
					ids = append(ids, fmt.Sprint("c", calls))
				}
				l.modelled(asked(ids...))
			}
		}
		live := l.state
		live.arrived, live.trace = nil, ""
		again := l.replay()
		again.trace = ""
		a, _ := json.Marshal(live)
		b, _ := json.Marshal(again)
		if d := cmp.Diff(string(a), string(b)); d != "" || live.Seq != again.Seq {
			t.Fatalf("seed %d: replay differs (-live +replay):\n%s", seed, d)
		}
		answers, epoch := map[string]int{}, uint64(0)
		for _, ev := range l.events {
			if ev.Epoch < epoch {
				t.Fatalf("seed %d: epoch fell from %d to %d", seed, epoch, ev.Epoch)
			}
			epoch = ev.Epoch
			for _, ans := range ev.Answers {
				if answers[ans.Call]++; answers[ans.Call] > 1 {
					t.Fatalf("seed %d: call %s was answered twice", seed, ans.Call)
				}
			}
		}
	}
}
