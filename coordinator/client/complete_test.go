package client

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

func TestTheFirstResultFromOutsideCounts(t *testing.T) {
	f := newFabric(t)
	p := f.park(report("s1", "c1"))
	if _, err := f.Complete(t.Context(), p, protocol.Result{Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(` [1, 2] `)}); err != nil {
		t.Fatal(err)
	}
	_, err := f.Complete(t.Context(), p, protocol.Result{Outcome: protocol.OutcomeFailed, Value: protocol.ErrorValue("x")})
	wantCode(t, err, protocol.CodeAnswered)
	s, err := f.conn.Last(t.Context(), f.conn.Names().Wake(), p.Reply)
	if err != nil {
		t.Fatal(err)
	}
	r, err := protocol.DecodeResult(s.Data)
	if err != nil || string(r.Value) != `{"result":[1,2]}` || r.Worker != "tester" || r.Outcome != protocol.OutcomeCompleted {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestAnInterimResultNeedsNoValueAndAFinalOneDoes(t *testing.T) {
	f := newFabric(t)
	pending := f.park(report("s1", "c1"))
	if _, err := f.Complete(t.Context(), pending, protocol.Result{Outcome: protocol.OutcomePending}); err != nil {
		t.Error(err)
	}
	final := f.park(report("s1", "c2"))
	big := json.RawMessage(`"` + strings.Repeat("x", protocol.MaxInlineResult) + `"`)
	running := final
	running.Round = 0
	for name, c := range map[string]struct {
		p    Parked
		r    protocol.Result
		code protocol.Code
	}{
		"no value":              {final, protocol.Result{Outcome: protocol.OutcomeCompleted}, protocol.CodeBadMessage},
		"no JSON":               {final, protocol.Result{Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{"a":1,"a":2}`)}, protocol.CodeBadMessage},
		"too large":             {final, protocol.Result{Outcome: protocol.OutcomeCompleted, Value: big}, protocol.CodeTooLarge},
		"an outcome of ours":    {final, protocol.Result{Outcome: protocol.OutcomeDenied, Value: json.RawMessage(`{}`)}, protocol.CodeBadMessage},
		"a call that is run":    {running, protocol.Result{Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{}`)}, protocol.CodeBadMessage},
		"a call that was asked": {Parked{Parked: question("s1", "c3", "q3", `{}`)}, protocol.Result{Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{}`)}, protocol.CodeBadMessage},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Complete(t.Context(), c.p, c.r)
			wantCode(t, err, c.code)
		})
	}
}

func TestProgressFromOutsideReachesWhoeverWatches(t *testing.T) {
	f := newFabric(t)
	p := f.park(report("s1", "c1"))
	heard := make(chan natswire.Msg, 1)
	stop, err := f.conn.Subscribe(f.conn.Names().ProgressSubject("*", "s1", "*"), func(m natswire.Msg) { heard <- m })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := f.ReportProgress(t.Context(), p, protocol.Progress{Percent: 40, Message: "printing"}); err != nil {
		t.Fatal(err)
	}
	var got protocol.Progress
	if err := json.Unmarshal((<-heard).Data, &got); err != nil || got.Percent != 40 || got.Worker != "tester" {
		t.Errorf("%+v, %v", got, err)
	}
	wantCode(t, f.ReportProgress(t.Context(), p, protocol.Progress{Percent: 101}), protocol.CodeBadMessage)
}

func TestCancelReturnsWhenTheLogHasTakenItUp(t *testing.T) {
	f := newFabric(t)
	f.serve("helper")
	wantCode(t, f.Cancel(t.Context(), "helper", "s1", ""), protocol.CodeUnknownSession)
	f.append("helper", "s1", protocol.Event{Turn: says("x"), Stop: &protocol.Stop{Kind: protocol.StopParked}})
	for _, c := range []struct {
		call    string
		refused *protocol.Problem
		code    protocol.Code
	}{
		{"", nil, ""}, {"c1", nil, ""},
		{"c2", &protocol.Problem{Code: protocol.CodeNotFound, Message: "no such call"}, protocol.CodeNotFound},
	} {
		before := 0
		if _, err := f.conn.Last(t.Context(), f.conn.Names().Input(), f.conn.Names().InputSubject("helper", "tester", "s1")); err == nil {
			before = len(f.inputs("helper"))
		}
		ended := make(chan error, 1)
		go func() { ended <- f.Cancel(soon(t), "helper", "s1", c.call) }()
		for len(f.inputs("helper")) == before {
			select {
			case err := <-ended:
				t.Fatalf("ended before the log took it up: %v", err)
			default:
			}
		}
		in := f.inputs("helper")[before]
		if in.Kind != protocol.InputCancel || in.Target != c.call {
			t.Errorf("%+v", in)
		}
		f.append("helper", "s1", protocol.Event{Inputs: []protocol.FoldedInput{{ID: in.ID, Kind: in.Kind, Client: "tester", Target: in.Target, Refused: c.refused}}})
		wantCode(t, <-ended, c.code)
	}
}
