package client

import (
	"encoding/json"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
)

func parked() *protocol.Stop { return &protocol.Stop{Kind: protocol.StopParked} }

// asked is a turn whose calls are those of records, as the model asked for them.
func asked(records ...protocol.Parked) *protocol.Turn {
	t := &protocol.Turn{Agent: "helper", Content: json.RawMessage(`{"role":"model","parts":[]}`)}
	for _, p := range records {
		c := protocol.Call{ID: p.Call, Tool: p.Tool, Args: p.Args, Digest: p.Digest, Effect: p.Effect, Verdict: protocol.VerdictRun, AnswersTo: protocol.MailboxWake}
		if p.Confirmation != nil {
			c.Verdict, c.Confirmation = protocol.VerdictAsk, p.Confirmation
		}
		t.Calls = append(t.Calls, c)
	}
	return t
}

func answer(call string, round int, o protocol.Outcome, q *protocol.Confirmation) []protocol.Answer {
	a := protocol.Answer{Call: call, Round: round, Confirmation: q, Result: protocol.Result{V: protocol.Version, Outcome: o}}
	if !o.Interim() {
		a.Value = json.RawMessage(`{}`)
	}
	return []protocol.Answer{a}
}

func TestWaitTellsWhatAParkedRunWaitsFor(t *testing.T) {
	f := newFabric(t)
	ask, long := question("s1", "c1", "q1", `{"amount":5}`), report("s1", "c2")
	f.append("helper", "s1", protocol.Event{Inputs: folded("in"), Turn: asked(ask, long)})
	f.append("helper", "s1", protocol.Event{Answers: answer("c2", 0, protocol.OutcomePending, nil), Stop: parked()})
	f.park(ask)
	f.park(long)
	out, err := f.Wait(soon(t), "helper", "s1", "in")
	if err != nil || out.Waiting == nil || out.Problem != nil || len(out.Waiting.Calls) != 2 {
		t.Fatalf("%+v, %v", out, err)
	}
	if got := out.Waiting.String(); got != "the session waits for a decision on transfer, the result of report" {
		t.Error(got)
	}
	if p := out.Waiting.Calls[0]; !p.Verified() || p.User != "tester" {
		t.Errorf("%+v", p)
	}

	f.append("helper", "s1", protocol.Event{Inputs: folded("second"), Stop: parked()})
	out, err = f.Wait(soon(t), "helper", "s1", "second")
	if err != nil || out.Waiting == nil || !out.Waiting.Queued {
		t.Fatalf("%+v, %v", out, err)
	}
	if got := out.Waiting.String(); got != "the message is queued; the session waits for a decision on transfer, the result of report" {
		t.Error(got)
	}
}

func TestWaitEndAndFollowGoOnThroughEveryPark(t *testing.T) {
	f := newFabric(t)
	ask := question("s1", "c1", "q1", `{"amount":5}`)
	f.append("helper", "s1", protocol.Event{Inputs: folded("in"), Turn: asked(ask), Stop: parked()})
	f.park(ask)
	ended := make(chan Outcome, 1)
	go func() {
		out, err := f.WaitEnd(soon(t), "helper", "s1", "in")
		if err != nil {
			t.Error(err)
		}
		ended <- out
	}()
	waits := 0
	var out *Outcome
	for u, err := range f.Follow(soon(t), "helper", "s1", "in") {
		if err != nil {
			t.Fatal(err)
		}
		if u.tail {
			t.Error("a sign of our own is yielded")
		}
		if u.Outcome != nil {
			out = u.Outcome
		}
		if u.Waiting == nil {
			continue
		}
		switch waits++; waits {
		case 1: // people agree, the tool runs and asks again
			again := question("s1", "c1", "q2", `{"amount":5}`)
			again.Round = 1
			f.append("helper", "s1", protocol.Event{Inputs: []protocol.FoldedInput{{
				ID: "d1", Kind: protocol.InputDecision, Client: "zoe", Decision: &protocol.FoldedDecision{Confirmation: "q1", Decision: protocol.Decision{Confirmed: true}},
			}}, Stop: parked()}) // with a worker: nobody outside is waited for
			f.append("helper", "s1", protocol.Event{Answers: answer("c1", 0, protocol.OutcomeAsks, again.Confirmation), Stop: parked()})
			f.park(again)
		case 2:
			if q := u.Waiting.Calls[0].Confirmation; q.ID != "q2" {
				t.Errorf("%+v", q)
			}
			f.append("helper", "s1", protocol.Event{Answers: answer("c1", 1, protocol.OutcomeDenied, nil), Turn: says("then not"), Stop: done()})
		}
	}
	if waits != 2 || out == nil || out.Text != "then not" || out.Waiting != nil {
		t.Errorf("%d waits, %+v", waits, out)
	}
	if out := <-ended; out.Text != "then not" {
		t.Errorf("%+v", out)
	}
}

func TestWithoutAnIndexTheLogTellsWhatIsWaitedFor(t *testing.T) {
	f := newFabric(t)
	f.cfg.Clock = shortClock{}
	ask := question("s1", "c1", "q1", `{"amount":5}`)
	f.append("helper", "s1", protocol.Event{Inputs: folded("in"), Turn: asked(ask), Stop: parked()})
	out, err := f.Wait(soon(t), "helper", "s1", "in")
	if err != nil || out.Waiting == nil || len(out.Waiting.Calls) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	if p := out.Waiting.Calls[0]; p.Revision != 0 || !p.Verified() || p.Reply != ask.Reply || p.Until != ask.Until {
		t.Errorf("%+v", p)
	}
}

func TestACancelledRunEndsAsCancelled(t *testing.T) {
	f := newFabric(t)
	f.append("helper", "s1", protocol.Event{Inputs: folded("in"), Turn: asked(report("s1", "c1"))})
	f.append("helper", "s1", protocol.Event{Answers: answer("c1", 0, protocol.OutcomeCancelled, nil), Stop: &protocol.Stop{Kind: protocol.StopCancelled}})
	out, err := f.Wait(soon(t), "helper", "s1", "in")
	if err != nil || out.Problem == nil || out.Problem.Code != protocol.CodeCancelled {
		t.Errorf("%+v, %v", out, err)
	}
	if s, err := f.Find(t.Context(), "s1"); err != nil || s.State != "cancelled" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestAnInterimAnswerIsNoResultOfACall(t *testing.T) {
	f := newFabric(t)
	call := report("s1", "c1")
	f.append(protocol.CallsApp, "s1", protocol.Event{Inputs: folded("in"), Turn: asked(call)})
	f.append(protocol.CallsApp, "s1", protocol.Event{Answers: answer("c1", 0, protocol.OutcomePending, nil)})
	f.append(protocol.CallsApp, "s1", protocol.Event{Answers: answer("c1", 1, protocol.OutcomeCompleted, nil), Stop: done()})
	out, err := f.WaitEnd(soon(t), protocol.CallsApp, "s1", "in")
	if err != nil || out.Result == nil || out.Result.Outcome != protocol.OutcomeCompleted {
		t.Errorf("%+v, %v", out, err)
	}
}
