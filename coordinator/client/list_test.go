package client

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

func TestSessionsAreListedLatestFirst(t *testing.T) {
	f := newFabric(t)
	problem := &protocol.Problem{Code: protocol.CodeLimit, Message: "too many"}
	f.append("helper", "old", protocol.Event{Stop: done()})
	f.append("helper", "failed", protocol.Event{Stop: &protocol.Stop{Kind: protocol.StopDone, Problem: problem}})
	f.append("helper", "gone", protocol.Event{Stop: &protocol.Stop{Kind: protocol.StopDeleted}})
	f.append("other", "alien", protocol.Event{Adopt: &protocol.Adopt{Coordinator: "c"}})
	f.append("helper", "new", protocol.Event{Turn: says("x")})

	list, err := f.Sessions(t.Context(), "helper")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range list {
		got = append(got, s.ID+" "+s.State)
	}
	want := []string{"new running", "failed failed", "old done"}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%v, want %v", got, want)
	}
	if all, err := f.Sessions(t.Context(), ""); err != nil || len(all) != 4 {
		t.Errorf("%d sessions of all apps, %v", len(all), err)
	}
	if s, err := f.Find(t.Context(), "alien"); err != nil || s.App != "other" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, id := range []string{"gone", "never"} {
		_, err := f.Find(t.Context(), id)
		wantCode(t, err, protocol.CodeUnknownSession)
	}
}

func TestDeleteWaitsForTheEnd(t *testing.T) {
	f := newFabric(t)
	f.serve("helper")
	wantCode(t, f.Delete(t.Context(), "helper", "s1"), protocol.CodeUnknownSession)
	f.append("helper", "s1", protocol.Event{Turn: says("x"), Stop: done()})
	deleted := make(chan error, 1)
	go func() { deleted <- f.Delete(soon(t), "helper", "s1") }()
	subject := f.conn.Names().InputSubject("helper", "tester", "s1")
	for { // the input is stored before Delete waits
		if _, err := f.conn.Last(t.Context(), f.conn.Names().Input(), subject); err == nil {
			break
		}
		select {
		case err := <-deleted:
			t.Fatalf("ended before the session did: %v", err)
		default:
		}
	}
	f.append("helper", "s1", protocol.Event{Stop: &protocol.Stop{Kind: protocol.StopDeleted}})
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	if in := f.inputs("helper")[0]; in.Kind != protocol.InputDelete {
		t.Errorf("%+v", in)
	}
}

func TestTheNewestDeclarationOfAToolIsOffered(t *testing.T) {
	f := newFabric(t)
	f.accept("hash", "old")
	digest := f.accept("hash", "new")
	f.accept("sum", "other")
	tools, err := f.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(tools) != 2 || tools[0].Name != "hash" || tools[0].Digest != digest || tools[0].Declaration.Description != "new" || tools[1].Name != "sum" {
		t.Errorf("%+v", tools)
	}
	if age := time.Since(tools[0].AcceptedAt); age < -time.Minute || age > time.Minute {
		t.Errorf("accepted %s ago", age)
	}
	if err := f.Forget(t.Context(), "hash"); err != nil {
		t.Fatal(err)
	}
	_, err = f.Tool(t.Context(), "hash")
	wantCode(t, err, protocol.CodeUnknownTool)
	wantCode(t, f.Forget(t.Context(), "hash"), protocol.CodeUnknownTool)
	if one, err := f.Tool(t.Context(), "sum"); err != nil || one.Name != "sum" {
		t.Errorf("%+v, %v", one, err)
	}
	f.accept("hash", "again")
	if _, err := f.Tool(t.Context(), "hash"); err != nil {
		t.Errorf("a forgotten tool that is accepted again: %v", err)
	}
}

func TestAPoolCountsItsWorkersAndItsBacklog(t *testing.T) {
	f := newFabric(t)
	n := f.conn.Names()
	f.accept("idle", "nobody serves it")
	f.register("w1", "hash", 4, 1, false)
	f.register("w2", "hash", 2, 2, true)
	f.publish(natswire.Msg{Subject: n.RegistrationSubject("hash", "liar"), Data: encode(t, protocol.Registration{
		V: protocol.Version, Worker: "w9", Declaration: declaration("hash", "d"), Slots: 100,
	})})
	if err := f.conn.EnsureConsumer(t.Context(), natswire.Consumer{
		Stream: n.Calls(), Durable: "hash", Filter: n.CallSubject("hash"), AckWait: time.Minute, MaxDeliver: 5, MaxAckPending: -1,
	}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		f.publish(natswire.Msg{Subject: n.CallSubject("hash"), Data: []byte("{}")})
	}
	taken := make(chan natswire.Delivery, 1)
	puller, err := f.conn.Pull(t.Context(), n.Calls(), "hash", natswire.PullEvents{Deliver: func(d natswire.Delivery) { taken <- d }, Lost: func(error) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer puller.Close()
	puller.Want(1)
	<-taken

	var p Pool
	for ctx := soon(t); p.Pending != 2; { // the server counts what is pending a moment later
		pools, err := f.Pools(ctx)
		if err != nil {
			t.Fatalf("%v; the last count was %+v", err, p)
		}
		if len(pools) != 2 || pools[0].Tool != "hash" || pools[1].Tool != "idle" {
			t.Fatalf("%+v", pools)
		}
		p = pools[0]
	}
	if len(p.Workers) != 2 || p.Slots != 4 || p.Active != 3 || p.Pending != 2 || p.InFlight != 1 {
		t.Errorf("%+v", p)
	}
	if one, err := f.Pool(t.Context(), "idle"); err != nil || len(one.Workers) != 0 || one.Workers == nil {
		t.Errorf("%+v, %v", one, err)
	}
	_, err = f.Pool(t.Context(), "never")
	wantCode(t, err, protocol.CodeUnknownTool)
}

func TestTraceReadsResultsThatNoEventHasYet(t *testing.T) {
	f := newFabric(t)
	n := f.conn.Names()
	f.append("helper", "s1", protocol.Event{
		Adopt: &protocol.Adopt{Coordinator: "co"}, Inputs: folded("in"),
		Turn: &protocol.Turn{Agent: "helper", Model: "m", Content: json.RawMessage(`{"role":"model","parts":[]}`), Calls: []protocol.Call{{ID: "c1", Tool: "hash", Verdict: protocol.VerdictRun}}},
	})
	f.publish(natswire.Msg{Subject: n.ResultSubject("hash", "s1", "c1", 0), Data: encode(t, protocol.Result{
		V: protocol.Version, Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{}`), Worker: "w1", Started: 5, Ended: 9,
	})})
	roots, err := f.Trace(t.Context(), "helper", "s1")
	if err != nil {
		t.Fatal(err)
	}
	call := roots[0].Children[1]
	if call.Name != "execute_tool hash" || call.Status != "ok" || len(call.Children) != 1 || call.Children[0].Process != "w1" {
		t.Errorf("%+v", call)
	}
	events, err := f.Events(t.Context(), "helper", "s1")
	if err != nil || len(events) != 2 {
		t.Errorf("%d events, %v", len(events), err)
	}
	_, err = f.Trace(t.Context(), "helper", "never")
	wantCode(t, err, protocol.CodeUnknownSession)
}
