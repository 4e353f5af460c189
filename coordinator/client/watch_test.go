package client

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

func TestWatchYieldsEveryEventInOrder(t *testing.T) {
	f := newFabric(t)
	const before, after = pageSize + 10, 20 // more than a page is there when it begins
	for range before {
		f.append("helper", "s1", protocol.Event{Turn: says("x")})
	}
	f.append("helper", "s2", protocol.Event{Turn: says("another session")})
	var seen int
	var last uint64
	for u, err := range f.Watch(soon(t), "helper", "s1", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if u.Entry == nil {
			t.Fatalf("unexpected %+v", u)
		}
		if u.Entry.Seq <= last {
			t.Fatalf("sequence %d after %d", u.Entry.Seq, last)
		}
		last = u.Entry.Seq
		if seen++; seen == before {
			for range after {
				f.append("helper", "s1", protocol.Event{Turn: says("y")})
			}
		}
		if seen == before+after {
			break
		}
	}
	if seen != before+after {
		t.Fatalf("%d events, want %d", seen, before+after)
	}
}

func TestWatchCarriesTokensProgressAndResults(t *testing.T) {
	f := newFabric(t)
	n := f.conn.Names()
	f.append("helper", "s1", protocol.Event{Epoch: 7, Turn: says("x")})
	var token *Token
	var progress *Progress
	var result *Done
	for u, err := range f.Watch(soon(t), "helper", "s1", 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case u.Entry != nil: // it listens by now
			for subject, body := range map[string]any{
				n.TokenSubject("s1", epoch(7)):        protocol.Token{Turn: 1, Text: "hel"},
				n.ProgressSubject("hash", "s1", "c1"): protocol.Progress{Worker: "w1", Percent: 40},
			} {
				if err := f.conn.Emit(t.Context(), natswire.Msg{Subject: subject, Data: encode(t, body)}); err != nil {
					t.Fatal(err)
				}
			}
			f.publish(natswire.Msg{Subject: n.ResultSubject("hash", "s1", "c1", 0), Data: encode(t, protocol.Result{
				V: protocol.Version, Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{"result":1}`),
			})})
		case u.Token != nil:
			token = u.Token
		case u.Progress != nil:
			progress = u.Progress
		case u.Done != nil:
			result = u.Done
		}
		if token != nil && progress != nil && result != nil {
			break
		}
	}
	if token.Epoch != "7" || token.Text != "hel" {
		t.Errorf("token %+v", token)
	}
	if progress.Tool != "hash" || progress.Call != "c1" || progress.Percent != 40 {
		t.Errorf("progress %+v", progress)
	}
	if result.Tool != "hash" || result.Call != "c1" || string(result.Value) != `{"result":1}` {
		t.Errorf("result %+v", result)
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	f := newFabric(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f.append("helper", "s1", protocol.Event{Turn: says("x")})
	var ended error
	for _, err := range f.Watch(ctx, "helper", "s1", 0) {
		cancel()
		ended = err
	}
	wantCode(t, ended, protocol.CodeCancelled)
}

func TestWaitEndsWithTheRunThatTookTheInput(t *testing.T) {
	problem := &protocol.Problem{Code: protocol.CodeModelFailed, Message: "the model could not be asked"}
	for _, c := range []struct {
		name   string
		events []protocol.Event
		want   Outcome
	}{
		{"answered", []protocol.Event{
			{Inputs: folded("other"), Turn: says("not this"), Stop: done()},
			{Inputs: folded("in")}, {Turn: says("yes"), Stop: done()},
			{Inputs: folded("later"), Turn: says("not this either"), Stop: done()},
		}, Outcome{Text: "yes"}},
		{"in one event", []protocol.Event{{Inputs: folded("in"), Turn: says("yes"), Stop: done()}}, Outcome{Text: "yes"}},
		{"across a drain", []protocol.Event{
			{Inputs: folded("in"), Stop: &protocol.Stop{Kind: protocol.StopDrained}}, {Turn: says("yes"), Stop: done()},
		}, Outcome{Text: "yes"}},
		{"failed", []protocol.Event{{Inputs: folded("in")}, {Stop: &protocol.Stop{Kind: protocol.StopDone, Problem: problem}}}, Outcome{Problem: problem}},
		{"refused", []protocol.Event{{Inputs: []protocol.FoldedInput{{ID: "in", Refused: problem}}}}, Outcome{Problem: problem, Refused: true}},
		{"deleted", []protocol.Event{{Stop: &protocol.Stop{Kind: protocol.StopDeleted}}}, Outcome{Problem: &protocol.Problem{Code: protocol.CodeSessionClosed}}},
		{"quarantined", []protocol.Event{{Inputs: folded("in")}, {Stop: &protocol.Stop{Kind: protocol.StopQuarantined}}}, Outcome{Problem: &protocol.Problem{Code: protocol.CodeSessionClosed}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFabric(t)
			for _, ev := range c.events {
				f.append("helper", "s1", ev)
			}
			got, err := f.Wait(soon(t), "helper", "s1", "in")
			if err != nil {
				t.Fatal(err)
			}
			if got.Text != c.want.Text || got.Refused != c.want.Refused || protocol.CodeOf(got.Err()) != protocol.CodeOf(c.want.Err()) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestFollowYieldsOnlyItsRun(t *testing.T) {
	f := newFabric(t)
	f.append("helper", "s1", protocol.Event{Inputs: folded("other"), Turn: says("not this"), Stop: done()})
	f.append("helper", "s1", protocol.Event{Inputs: folded("in")})
	f.append("helper", "s1", protocol.Event{Turn: says("yes"), Stop: done()})
	var entries, outcomes int
	for u, err := range f.Follow(soon(t), "helper", "s1", "in") {
		if err != nil {
			t.Fatal(err)
		}
		if u.Entry != nil {
			entries++
		}
		if u.Outcome != nil {
			outcomes++
		}
	}
	if entries != 2 || outcomes != 1 {
		t.Errorf("%d entries and %d outcomes", entries, outcomes)
	}
}

func TestWaitOutlivesARestartOfTheServer(t *testing.T) {
	server := natstest.Start(t)
	conn := server.Connect(t, "")
	c, err := New(Config{Bus: conn, Names: conn.Names()})
	if err != nil {
		t.Fatal(err)
	}
	f := &fabric{t: t, conn: conn, Client: c}
	f.append("helper", "s1", protocol.Event{Inputs: folded("in")})
	var got *Outcome
	restarted := false
	for u, err := range c.Follow(soon(t), "helper", "s1", "in") {
		if err != nil && protocol.CodeOf(err) != protocol.CodeUnreachable {
			t.Fatal(err)
		}
		if u.Entry != nil && !restarted {
			restarted = true
			server.Stop(t)
			server.Restart(t)
			other := server.Dial(t, natswire.Config{})
			(&fabric{t: t, conn: other}).append("helper", "s1", protocol.Event{Turn: says("yes"), Stop: done()})
		}
		if u.Outcome != nil {
			got = u.Outcome
		}
	}
	if got == nil || got.Text != "yes" {
		t.Errorf("%+v", got)
	}
}
