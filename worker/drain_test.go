package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

func TestDrainRefusesNewCallsAndFinishesOldOnes(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		g := newGate("slow", tool.AtMostOnce)
		f.serve(g)
		p := f.start("w1", worker.Config{}, g)
		old, late := f.call(g, "old", `{}`), f.call(g, "late", `{}`)
		f.publish(old)
		p.stop()
		after(time.Second)
		f.publish(late)
		f.wantQueue("slow", 1, 1)
		close(g.open)
		if err := p.drain(); err != nil {
			t.Errorf("Run = %v, want a clean drain", err)
		}
		f.want(old, protocol.OutcomeCompleted, "", "")
		if _, ok := f.result(late); ok {
			t.Error("a draining worker answered a new call")
		}
	})
}

func TestDrainOutOfGraceIsHonest(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		once, again := newGate("once", tool.AtMostOnce), newGate("again", tool.Idempotent)
		f.serve(once, again)
		p := f.start("w1", worker.Config{Grace: 5 * time.Second}, once, again)
		a, b := f.call(once, "a", `{}`), f.call(again, "b", `{}`)
		f.publish(a)
		f.publish(b)
		began := time.Now()
		if err := p.drain(); !errors.Is(err, worker.ErrDrainTimeout) {
			t.Errorf("Run = %v, want ErrDrainTimeout", err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("the drain took %s of a grace of 5s", took)
		}
		r := f.want(a, protocol.OutcomeUnknown, protocol.CodeOutcomeUnknown, "")
		if !strings.Contains(string(r.Value), "may have happened") {
			t.Errorf("an effect that may have happened is told as %s", r.Value)
		}
		if _, ok := f.result(b); ok {
			t.Error("a call that may be repeated was answered instead of given back")
		}
		close(again.open)
		f.start("w2", worker.Config{}, again)
		after(5 * time.Second)
		if r := f.want(b, protocol.OutcomeCompleted, "", ""); r.Worker != "w2" || r.Attempt != 2 {
			t.Errorf("run by %s, attempt %d; want w2, attempt 2", r.Worker, r.Attempt)
		}
	})
}

func TestDrainEndsWithoutABus(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		g := newGate("slow", tool.AtMostOnce)
		f.serve(g)
		down := false
		bus := &flaky{Bus: f.world.Connect("w1"), publish: func(_ natswire.Msg, do func() (natswire.Ack, error)) (natswire.Ack, error) {
			if down {
				return natswire.Ack{}, errLost
			}
			return do()
		}}
		p := f.start("w1", worker.Config{Bus: bus, Grace: time.Second}, g)
		f.publish(f.call(g, "c1", `{}`))
		down = true
		began := time.Now()
		_ = p.drain()
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("the drain took %s", took)
		}
	})
}

func TestCancelReachesTheTool(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		g := newGate("slow", tool.AtMostOnce)
		var cause error
		run := g.run
		g.run = func(ctx tool.Context, args json.RawMessage) (json.RawMessage, error) {
			out, err := run(ctx, args)
			cause = context.Cause(ctx)
			return out, err
		}
		f.serve(g)
		f.start("w1", worker.Config{}, g)
		c, other := f.call(g, "c1", `{}`), f.call(g, "c2", `{}`)
		f.publish(c)
		f.publish(other)
		if err := f.bus.Emit(t.Context(), natswire.Msg{Subject: f.names.CancelSubject("slow", "c1")}); err != nil {
			t.Fatal(err)
		}
		f.want(c, protocol.OutcomeCancelled, protocol.CodeCancelled, "")
		if protocol.CodeOf(cause) != protocol.CodeCancelled {
			t.Errorf("the tool's context ended with %v", cause)
		}
		if _, ok := f.result(other); ok {
			t.Error("another call was cancelled too")
		}
		f.wantQueue("slow", 0, 1)
		close(g.open)
	})
}

func TestDeadlineEndsARunningCall(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		g := newGate("slow", tool.Idempotent)
		f.serve(g)
		f.start("w1", worker.Config{}, g)
		c := f.call(g, "c1", `{}`)
		f.publish(c)
		after(59 * time.Second)
		if _, ok := f.result(c); ok {
			t.Fatal("it ended before its deadline")
		}
		after(2 * time.Second)
		f.want(c, protocol.OutcomeExpired, protocol.CodeExpired, "")
		f.wantQueue("slow", 0, 0)
	})
}

// Of a call past its deadline nobody waits for a worker's word; of one that was not taken in time somebody does.
func TestALateCallIsNotStarted(t *testing.T) {
	for name, tc := range map[string]struct {
		startBy, deadline time.Duration
		effect            tool.Effect
		way               string
		code              protocol.Code
	}{
		"in time":                      {time.Minute, time.Hour, tool.Read, "answered", ""},
		"taken too late":               {-time.Second, time.Hour, tool.Read, "answered", protocol.CodeNoWorker},
		"taken too late, not harmless": {-time.Second, time.Hour, tool.AtMostOnce, "answered", protocol.CodeNoWorker},
		"past its deadline":            {time.Minute, -time.Second, tool.Read, "dropped", ""},
		"without its instant":          {0, 0, tool.Read, "answered", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				runs := 0
				e := &fn{name: "echo", settings: tool.Settings{Effect: tc.effect}, run: func(_ tool.Context, args json.RawMessage) (json.RawMessage, error) {
					runs++
					return args, nil
				}}
				f.serve(e)
				c := f.call(e, "c1", `{}`)
				c.StartBy, c.Deadline = 0, 0
				if tc.startBy != 0 {
					c.StartBy, c.Deadline = time.Now().Add(tc.startBy).UnixMilli(), time.Now().Add(tc.deadline).UnixMilli()
				}
				r := &record{}
				clock := skewed(-time.Hour) // whose own time would say otherwise
				f.start("w1", worker.Config{Clock: clock, Listener: r.events()}, e)
				f.publish(c)
				if got, want := r.ways(), []string{"c1/1 " + tc.way}; !slices.Equal(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
				f.wantQueue("echo", 0, 0)
				if res, _ := f.result(c); res.Code != tc.code || (runs == 0) != (tc.code != "" || tc.way == "dropped") {
					t.Errorf("the tool ran %d times, and the answer is %s: %s", runs, res.Code, res.Value)
				}
				if tc.code != "" && f.claimed(c) != (tc.effect == tool.AtMostOnce) {
					t.Errorf("claimed: %v", f.claimed(c))
				}
			})
		})
	}
}

// skewed is a clock that is wrong.
type skewed time.Duration

func (s skewed) Now() time.Time { return time.Now().Add(time.Duration(s)) }
func (s skewed) After(d time.Duration) (<-chan time.Time, func()) {
	return natswire.SystemClock{}.After(d)
}

func TestQueuedTimeIsJudgedByTheBrokersClock(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		e := echo("echo", tool.Read)
		f.serve(e)
		c := f.call(e, "c1", `{}`)
		f.publish(c)
		after(31 * time.Second) // nobody took it in time, and a new worker sees an old message first
		r := &record{}
		f.start("w1", worker.Config{Clock: skewed(24 * time.Hour), Listener: r.events()}, e)
		after(time.Second)
		if got := r.ways(); !slices.Equal(got, []string{"c1/1 answered"}) {
			t.Errorf("got %v", got)
		}
		f.want(c, protocol.OutcomeExpired, protocol.CodeNoWorker, `{"error":"not executed: no worker took the call in time"}`)
	})
}
