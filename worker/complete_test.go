package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/worker"
)

// ordering is a long-running tool that hands its handle out.
func ordering(t *testing.T, ticket map[string]any) (tool.Tool, chan string) {
	t.Helper()
	handles := make(chan string, 8)
	o, err := functiontool.New(functiontool.Config{Name: "order", Description: "Orders a thing.", IsLongRunning: true, Effect: tool.AtMostOnce},
		func(ctx tool.Context, in struct {
			What string `json:"what"`
		}) (map[string]any, error) {
			if in.What == "nothing" {
				return nil, errors.New("nothing to order")
			}
			handles <- ctx.ResultHandle()
			return ticket, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return o, handles
}

// wake is what stands in a mailbox that wakes its session.
func (l *live) wake(h protocol.Handle) protocol.Result {
	l.t.Helper()
	stored, err := l.bus.Last(l.t.Context(), l.names.Wake(), l.names.WakeSubject(h.App, h.Tool, h.Session, h.Call, h.Round))
	if err != nil {
		l.t.Fatal(err)
	}
	r, err := protocol.DecodeResult(stored.Data)
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

func TestLiveLongRunningCallIsFinishedByAnotherProcess(t *testing.T) {
	l := goLive(t)
	o, handles := ordering(t, map[string]any{"ticket": "T-7"})
	l.consumer("order", 30*time.Second)
	p := l.start("w1", "", worker.Config{}, o)
	c := l.call(o, "c1", `{"what":"book"}`)
	c.AnswersTo = protocol.MailboxWake
	l.send(c)
	handle := receive(t, handles)
	if a := receive(t, l.done); a.call != "c1" || a.round != 0 || a.Outcome != protocol.OutcomePending || string(a.Value) != `{"ticket":"T-7"}` {
		t.Fatalf("the first answer is %+v, %s", a, a.Value)
	}
	if r := l.wake(protocol.Handle{App: "app", Tool: "order", Session: "s", Call: "c1"}); r.Outcome != protocol.OutcomePending {
		t.Errorf("in the mailbox: %+v", r)
	}
	if err := p.drain(); err != nil {
		t.Fatal(err)
	}

	other := l.server.Connect(t, "") // as after a restart: nothing but the handle is left
	next, err := worker.Interim(t.Context(), other, l.names, handle, map[string]any{"status": "packed"}, 40)
	if err != nil {
		t.Fatal(err)
	}
	if a := receive(t, l.done); a.round != 1 || a.Outcome != protocol.OutcomePending || string(a.Value) != `{"percent":40,"status":"packed"}` {
		t.Errorf("the interim answer is %+v, %s", a, a.Value)
	}
	if err := worker.Complete(t.Context(), other, l.names, next, map[string]any{"shipped": true}); err != nil {
		t.Fatal(err)
	}
	if a := receive(t, l.done); a.round != 2 || a.Outcome != protocol.OutcomeCompleted || string(a.Value) != `{"shipped":true}` {
		t.Errorf("the result is %+v, %s", a, a.Value)
	}

	for _, err := range []error{
		worker.Complete(t.Context(), other, l.names, next, map[string]any{"shipped": false}),
		worker.Fail(t.Context(), other, l.names, handle, errors.New("lost")),
	} {
		if protocol.CodeOf(err) != protocol.CodeAnswered || !strings.Contains(err.Error(), "c1") {
			t.Errorf("a second answer: %v", err)
		}
	}
	again, err := worker.Interim(t.Context(), other, l.names, handle, nil, 50)
	if protocol.CodeOf(err) != protocol.CodeAnswered || again != next {
		t.Errorf("an interim answer to a used round: %q, %v", again, err)
	}
	if r := l.wake(protocol.Handle{App: "app", Tool: "order", Session: "s", Call: "c1", Round: 2}); string(r.Value) != `{"shipped":true}` {
		t.Errorf("the first answer did not stay: %s", r.Value)
	}
}

func TestLiveLongRunningCallThatSaysNothingOrFails(t *testing.T) {
	l := goLive(t)
	o, handles := ordering(t, nil)
	l.consumer("order", 30*time.Second)
	l.start("w1", "", worker.Config{}, o)
	quiet := l.call(o, "c1", `{"what":"book"}`)
	quiet.AnswersTo = protocol.MailboxWake
	l.send(quiet)
	if a := receive(t, l.done); a.Outcome != protocol.OutcomePending || a.Value != nil {
		t.Errorf("got %+v, %s", a, a.Value)
	}
	if err := worker.Fail(t.Context(), l.bus, l.names, receive(t, handles), errors.New("sold out")); err != nil {
		t.Fatal(err)
	}
	if a := receive(t, l.done); a.round != 1 || a.Outcome != protocol.OutcomeFailed || string(a.Value) != `{"error":"sold out"}` {
		t.Errorf("got %+v, %s", a, a.Value)
	}
	bad := l.call(o, "c2", `{"what":"nothing"}`)
	bad.AnswersTo = protocol.MailboxWake
	l.send(bad)
	if a := receive(t, l.done); a.call != "c2" || a.Outcome != protocol.OutcomeFailed || string(a.Value) != `{"error":"nothing to order"}` {
		t.Errorf("got %+v, %s", a, a.Value)
	}
}

// A plain publish on the wake subject that the handle is the tail of is a result as good as any.
func TestLiveResultIsAPublishToo(t *testing.T) {
	l := goLive(t)
	h := protocol.Handle{App: "app", Tool: "order", Session: "s", Call: "c1", Round: 1}
	if _, err := l.bus.Publish(t.Context(), natswire.Msg{Subject: "tf.wake." + h.String(), Data: []byte(`{"v":1,"outcome":"completed","value":{"shipped":true}}`)}); err != nil {
		t.Fatal(err)
	}
	if a := receive(t, l.done); a.round != 1 || a.Outcome != protocol.OutcomeCompleted {
		t.Errorf("got %+v", a)
	}
	if err := worker.Complete(t.Context(), l.bus, l.names, h.String(), nil); protocol.CodeOf(err) != protocol.CodeAnswered {
		t.Errorf("got %v", err)
	}
}

func TestHandlesAndValuesAreChecked(t *testing.T) {
	n := names(t)
	bus := &recording{}
	good := protocol.Handle{App: "app", Tool: "order", Session: "s", Call: "c1", Round: 1}.String()
	for name, c := range map[string]struct {
		err  error
		code protocol.Code
	}{
		"no handle":        {worker.Complete(t.Context(), bus, n, "c1", 1), protocol.CodeBadID},
		"the tool's round": {worker.Complete(t.Context(), bus, n, "app.order.s.c1.0", 1), protocol.CodeBadID},
		"no JSON":          {worker.Complete(t.Context(), bus, n, good, math.NaN()), protocol.CodeBadMessage},
		"too large":        {worker.Complete(t.Context(), bus, n, good, strings.Repeat("x", protocol.MaxInlineResult)), protocol.CodeTooLarge},
		"unreachable":      {worker.Complete(t.Context(), &flaky{Bus: bus, publish: func(natswire.Msg, func() (natswire.Ack, error)) (natswire.Ack, error) { return natswire.Ack{}, errLost }}, n, good, 1), protocol.CodeUnreachable},
	} {
		if protocol.CodeOf(c.err) != c.code {
			t.Errorf("%s: %v, want %s", name, c.err, c.code)
		}
	}
	if len(bus.sent) != 0 {
		t.Errorf("published %s", bus.sent)
	}
}

// recording is a bus that takes everything.
type recording struct {
	natswire.Bus
	sent []json.RawMessage
}

func (r *recording) Publish(_ context.Context, m natswire.Msg) (natswire.Ack, error) {
	r.sent = append(r.sent, m.Data)
	return natswire.Ack{}, nil
}

func TestInterimStatus(t *testing.T) {
	for want, c := range map[string]struct {
		status  any
		percent float64
	}{
		`{"v":1,"outcome":"pending"}`:                                          {nil, 0},
		`{"v":1,"outcome":"pending","value":{"percent":12.5}}`:                 {nil, 12.5},
		`{"v":1,"outcome":"pending","value":{"percent":100}}`:                  {nil, 250},
		`{"v":1,"outcome":"pending","value":{"result":"packing"}}`:             {"packing", math.NaN()},
		`{"v":1,"outcome":"pending","value":{"percent":1,"result":"packing"}}`: {"packing", 1},
		`{"v":1,"outcome":"pending","value":{"at":"dock","percent":99}}`:       {map[string]any{"at": "dock", "percent": 1}, 99},
		`{"v":1,"outcome":"pending","value":{"n":9007199254740993,"percent":2}}`: {struct {
			N int64 `json:"n"`
		}{9007199254740993}, 2},
	} {
		bus := &recording{}
		next, err := worker.Interim(t.Context(), bus, names(t), "app.order.s.c1.4", c.status, c.percent)
		if err != nil || next != "app.order.s.c1.5" || len(bus.sent) != 1 || string(bus.sent[0]) != want {
			t.Errorf("%v, %v: sent %s, then %s, %v; want %s", c.status, c.percent, bus.sent, next, err, want)
		}
	}
}
