package integration

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

// fragile is a connection that dies just before it would store something on a subject of some kind.
type fragile struct {
	*natswire.Conn
	kind string // such as ".claim."
	once sync.Once
	dead chan struct{}
}

func (f *fabric) fragile(kind string) *fragile {
	return &fragile{Conn: f.server.Dial(f.t, natswire.Config{}), kind: kind, dead: make(chan struct{})}
}

func (b *fragile) Publish(ctx context.Context, m natswire.Msg) (natswire.Ack, error) {
	if strings.Contains(m.Subject, b.kind) {
		b.once.Do(func() {
			b.Conn.Close()
			close(b.dead)
		})
	}
	return b.Conn.Publish(ctx, m)
}

// called makes a client's call in the background.
func (f *fabric) called(name, args string) <-chan ended {
	done := make(chan ended, 1)
	f.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(f.t.Context()), patience)
		defer cancel()
		r, err := f.client.Call(ctx, name, json.RawMessage(args))
		done <- ended{r, err}
	})
	return done
}

type ended struct {
	protocol.Result
	err error
}

func TestCallOfADeadWorkerRunsOnAnother(t *testing.T) {
	for _, c := range []struct {
		name   string
		effect tool.Effect
		kind   string // where the worker dies
		runs   int    // of the tool on the worker that dies
	}{
		{"at most once, before the claim", tool.AtMostOnce, ".claim.", 0},
		{"idempotent, before the result", tool.Idempotent, ".result.", 1},
		{"read, before the result", tool.Read, ".result.", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFabric(t)
			f.coordinate()
			first, second := answering("work", `{"by":1}`, c.effect), answering("work", `{"by":2}`, c.effect)
			conn := f.fragile(c.kind)
			f.workOn(conn.Conn, conn, worker.Events{}, first)
			done := f.called("work", `{}`)
			receive(t, "death of the worker", conn.dead)
			f.work(second)
			end := receive(t, "end of the call", done)
			if end.err != nil || end.Outcome != protocol.OutcomeCompleted || string(end.Value) != `{"by":2}` {
				t.Errorf("the call ended with %s %s, %v", end.Outcome, end.Value, end.err)
			}
			if end.Attempt < 2 {
				t.Errorf("the result is of attempt %d, want a later one", end.Attempt)
			}
			first.wantRuns(t, c.runs)
			second.wantRuns(t, 1)
			for _, r := range first.ran() {
				if r.call != second.ran()[0].call {
					t.Errorf("the attempts have the keys %s and %s", r.call, second.ran()[0].call)
				}
			}
		})
	}
}

func TestCallThatMayHaveRunIsNeverRunAgain(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	f.lease = time.Second
	f.coordinate()
	settings := tool.Settings{Effect: tool.AtMostOnce, Timeout: 2 * time.Second}
	first, second := gated("pay", `{"by":1}`, settings), answering("pay", `{"by":2}`, tool.AtMostOnce)
	second.settings = settings
	doomed := f.work(first)
	done := f.called("pay", `{}`)
	receive(t, "start of the call", first.started)
	doomed.die()
	dropped := make(chan worker.Settlement, 10)
	conn := f.server.Dial(t, natswire.Config{})
	f.workOn(conn, conn, worker.Events{Settled: func(_ worker.Attempt, s worker.Settlement) { dropped <- s }}, second)
	if s := receive(t, "second delivery", dropped); s.Way != worker.Dropped {
		t.Errorf("the second delivery was %s, want dropped", s.Way)
	}
	end := receive(t, "end of the call", done)
	if end.err != nil || end.Outcome != protocol.OutcomeUnknown || end.Code != protocol.CodeOutcomeUnknown {
		t.Errorf("the call ended with %s %s %s, %v; want outcome_unknown", end.Outcome, end.Code, end.Value, end.err)
	}
	first.wantRuns(t, 1)
	second.wantRuns(t, 0)
}

func TestLateResultOfACutOffWorkerIsRefused(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	f.coordinate()
	settings := tool.Settings{Effect: tool.Idempotent}
	slow, quick := gated("work", `{"by":"slow"}`, settings), answering("work", `{"by":"quick"}`, tool.Idempotent)
	settled := make(chan worker.Settlement, 10)
	proxy := natstest.StartProxy(t, f.server)
	conn := f.server.Dial(t, natswire.Config{URL: proxy.URL()})
	f.workOn(conn, conn, worker.Events{Settled: func(_ worker.Attempt, s worker.Settlement) { settled <- s }}, slow)
	done := f.called("work", `{}`)
	receive(t, "start of the call", slow.started)
	proxy.Cut()
	f.work(quick)
	end := receive(t, "end of the call", done)
	if end.err != nil || string(end.Value) != `{"by":"quick"}` {
		t.Errorf("the call ended with %s, %v", end.Value, end.err)
	}
	slow.open()
	proxy.Heal()
	if s := receive(t, "settlement of the late result", settled); s.Way != worker.Refused {
		t.Errorf("the late result was %s, want refused", s.Way)
	}
}

func TestCallThatNobodyTakesIsNotExecuted(t *testing.T) {
	for _, effect := range []tool.Effect{tool.AtMostOnce, tool.Idempotent} {
		t.Run(string(effect), func(t *testing.T) {
			t.Parallel()
			f := newFabric(t)
			p := provide(t, []byte(twoSteps), nil)
			f.coordinate(newAgent(t, "app", p.llm, "slow"))
			s := answering("slow", `{}`, effect)
			s.settings.QueueTimeout = time.Second
			gone := f.work(s)
			gone.stop()
			out := f.ask("app", "", "go")
			contains(t, "the answer", out.Text, "finished")
			a := firstAnswer(f.log("app", out.Session), 0)
			if a.Code != protocol.CodeNoWorker || a.Outcome != protocol.OutcomeExpired {
				t.Errorf("the call ended as %s with code %s, want expired and no_worker", a.Outcome, a.Code)
			}
			text, _ := p.response(2, 0)["error"].(string)
			contains(t, "the response", text, "not executed")
			f.eventually("empty queue", func() bool { return f.queued("slow") == 0 })
			again := answering("slow", `{}`, effect)
			f.work(again)
			if r, err := f.call("slow", `{}`); err != nil || r.Outcome != protocol.OutcomeCompleted {
				t.Errorf("the call after it ended with %+v, %v", r, err)
			}
			s.wantRuns(t, 0)
			again.wantRuns(t, 1)
		})
	}
}

func TestToolThatNeverRegisteredIsUnknown(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(twoSteps), nil)
	f.coordinate(newAgent(t, "app", p.llm, "slow"))
	out := f.ask("app", "", "go")
	contains(t, "the answer", out.Text, "finished")
	if c := turns(f.log("app", out.Session))[0].Calls[0]; c.Refusal == nil || c.Refusal.Code != protocol.CodeUnknownTool {
		t.Errorf("the call was not refused as one of an unknown tool: %+v", c)
	}
	p.wantCount(2)
}
