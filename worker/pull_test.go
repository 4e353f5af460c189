package worker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

func (f *fabric) publishMany(t tool.Tool, prefix string, n int) {
	f.t.Helper()
	for i := range n {
		f.publish(f.call(t, fmt.Sprint(prefix, i), `{}`))
	}
}

func TestWorkerHoldsOnlyWhatItRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		g := newGate("slow", tool.Read)
		f.serve(g)
		f.publishMany(g, "early", 3) // before the worker is there
		f.start("w1", worker.Config{Slots: 2}, g)
		f.publishMany(g, "late", 3)
		f.wantQueue("slow", 4, 2)
		second := f.start("w2", worker.Config{Slots: 1}, g)
		f.wantQueue("slow", 3, 3)
		close(g.open)
		f.wantQueue("slow", 0, 0)
		if g.starts() != 6 {
			t.Errorf("6 calls were started %d times", g.starts())
		}
		if err := second.drain(); err != nil {
			t.Error(err)
		}
	})
}

func TestToolSlotsCapOneTool(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		a, b := newGate("a", tool.Read), newGate("b", tool.Read)
		f.serve(a, b)
		f.start("w1", worker.Config{Slots: 6, ToolSlots: map[string]int{"a": 2}}, a, b)
		f.publishMany(a, "a", 9)
		f.publishMany(b, "b", 9)
		after(time.Second)
		f.wantQueue("a", 7, 2)
		f.wantQueue("b", 5, 4)
	})
}

func TestIdleToolLendsItsSlotsAndGetsThemBack(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		a, b := newGate("a", tool.Read), newGate("b", tool.Read)
		f.serve(a, b)
		f.start("w1", worker.Config{Slots: 6}, a, b)
		f.publishMany(a, "a", 20)
		after(time.Second)
		if n := f.queue("a").AckPending; n != 5 {
			t.Fatalf("the busy tool has %d of 6 slots, want all but one", n)
		}
		f.publishMany(b, "b", 20)
		f.wantQueue("b", 19, 1) // at once: the slot was kept for it
		if held := f.queue("a").AckPending + f.queue("b").AckPending; held != 6 {
			t.Errorf("6 slots hold %d calls", held)
		}
		// As calls of a end, their slots go to b until both have as many.
		for range 2 {
			a.open <- struct{}{}
		}
		after(time.Second)
		if na, nb := f.queue("a").AckPending, f.queue("b").AckPending; na != 3 || nb != 3 {
			t.Errorf("two tools with a backlog share 6 slots as %d and %d", na, nb)
		}
	})
}

// A worker of many tools, as one that hosts an MCP server, runs many calls of one of them at once while the others are idle.
func TestManyToolsGetSlotsEnoughByThemselves(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		busy := newGate("busy", tool.Read)
		tools := []tool.Tool{busy}
		for i := range 4 * runtime.GOMAXPROCS(0) {
			tools = append(tools, echo(fmt.Sprint("idle", i), tool.Read))
		}
		f.serve(tools...)
		f.start("w1", worker.Config{}, tools...)
		n := len(tools)
		f.publishMany(busy, "c", n)
		after(time.Second)
		f.wantQueue("busy", 0, n)
		c := f.call(tools[n-1], "other", `{}`)
		f.publish(c)
		f.want(c, "completed", "", "") // at once: a slot was kept for it
	})
}

func TestFewerSlotsThanToolsTakeTurns(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		tools := make([]tool.Tool, 5)
		for i := range tools {
			tools[i] = echo(fmt.Sprint("t", i), tool.Read)
		}
		f.serve(tools...)
		f.start("w1", worker.Config{Slots: 1}, tools...)
		after(time.Second)
		for round := range 3 {
			for i, e := range tools {
				c := f.call(e, fmt.Sprintf("c%d-%d", round, i), `{}`)
				f.publish(c)
				after(time.Second)
				f.want(c, "completed", "", "")
			}
		}
	})
}

func TestOneSlotRunsOneCallWhateverTheTool(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		a, b, c := newGate("a", tool.Read), newGate("b", tool.Read), newGate("c", tool.Read)
		f.serve(a, b, c)
		f.start("w1", worker.Config{Slots: 1}, a, b, c)
		for _, g := range []*gate{a, b, c} {
			f.publishMany(g, g.name, 2)
		}
		for done := range 6 {
			after(time.Second)
			running := a.starts() + b.starts() + c.starts() - done
			if running != 1 {
				t.Fatalf("after %d calls %d run at once", done, running)
			}
			select {
			case a.open <- struct{}{}:
			case b.open <- struct{}{}:
			case c.open <- struct{}{}:
			}
		}
		f.wantQueue("a", 0, 0)
		f.wantQueue("b", 0, 0)
		f.wantQueue("c", 0, 0)
	})
}

func TestWorkerWaitsForItsConsumerAndSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		e := echo("echo", tool.Read)
		r := &record{}
		f.start("w1", worker.Config{Listener: r.events()}, e)
		c := f.call(e, "c1", `{}`)
		f.publish(c)
		if !slices.Contains(r.told(), "waiting echo not_found") {
			t.Fatalf("told %v", r.told())
		}
		after(3 * time.Second)
		f.serve(e)
		after(6 * time.Second)
		f.want(c, "completed", "", "")
	})
}

func TestDeletedConsumerIsOpenedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		e := echo("echo", tool.Read)
		r := &record{}
		f.serve(e)
		f.start("w1", worker.Config{Listener: r.events()}, e)
		if err := f.bus.DeleteConsumer(t.Context(), f.names.Calls(), "echo"); err != nil {
			t.Fatal(err)
		}
		after(0)
		c := f.call(e, "c1", `{}`)
		f.publish(c)
		after(time.Second)
		f.serve(e)
		after(6 * time.Second)
		f.want(c, "completed", "", "")
		if told := r.told(); !slices.Contains(told, "lost echo consumer_gone") || told[len(told)-1] != "serving echo" {
			t.Errorf("told %v", told)
		}
	})
}

func TestRedeliveryOfARunningCallOnlySwapsItsHandle(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		g := newGate("slow", tool.AtMostOnce)
		f.serve(g)
		var first natswire.Delivery
		var pass func(natswire.Delivery)
		bus := &flaky{Bus: f.world.Connect("w1"), deliver: func(d natswire.Delivery, p func(natswire.Delivery)) {
			first, pass = d, p
			p(d)
		}}
		f.start("w1", worker.Config{Bus: bus}, g)
		c := f.call(g, "c1", `{}`)
		f.publish(c)
		second := &handle{}
		again := first
		again.Attempt, again.Acker = 2, second
		pass(again)
		after(time.Second)
		if g.starts() != 1 {
			t.Fatalf("one call runs %d times", g.starts())
		}
		close(g.open)
		f.want(c, "completed", "", "")
		if second.acks != 1 {
			t.Errorf("the newest handle was acked %d times", second.acks)
		}
		f.wantQueue("slow", 0, 1) // the old handle was left alone
	})
}

func TestCallPublishedTwiceRunsOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		g := newGate("slow", tool.Idempotent)
		f.serve(g)
		f.start("w1", worker.Config{}, g)
		c := f.call(g, "c1", `{}`)
		f.publish(c)
		f.publish(c)
		if g.starts() != 1 {
			t.Fatalf("it was started %d times", g.starts())
		}
		close(g.open)
		f.want(c, "completed", "", "")
		f.wantQueue("slow", 0, 0)
	})
}

func TestLongCallKeepsItsLease(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		g := newGate("slow", tool.Idempotent)
		f.consumer("slow", 3*time.Second, 5)
		f.start("w1", worker.Config{}, g)
		f.start("w2", worker.Config{}, g)
		c := f.call(g, "c1", `{}`)
		f.publish(c)
		after(30 * time.Second)
		if g.starts() != 1 {
			t.Fatalf("a call ten times as long as its lease was started %d times", g.starts())
		}
		close(g.open)
		if r := f.want(c, "completed", "", ""); r.Attempt != 1 {
			t.Errorf("attempt %d", r.Attempt)
		}
	})
}

// A process that was stopped beyond its lease does not speak for the call that another one holds by now.
func TestPausedWorkerLeavesTheLeaseToOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		g := newGate("slow", tool.Idempotent)
		g.run = func(ctx tool.Context, _ json.RawMessage) (json.RawMessage, error) {
			<-g.open
			return nil, tool.Retryable(errors.New("busy"))
		}
		f.consumer("slow", 3*time.Second, 5)
		mine, clock, r := &handle{}, &leaping{}, &record{}
		bus := &flaky{Bus: f.world.Connect("w1"), deliver: func(d natswire.Delivery, p func(natswire.Delivery)) {
			if d.Attempt == 1 {
				d.Acker = mine
			}
			p(d)
		}}
		f.start("w1", worker.Config{Bus: bus, Clock: clock, Slots: 1, Listener: r.events()}, g)
		f.publish(f.call(g, "c1", `{}`))
		after(2500 * time.Millisecond)
		if mine.beats != 2 {
			t.Fatalf("%d heartbeats before the pause", mine.beats)
		}
		clock.leap(10 * time.Second)
		after(5 * time.Second)
		close(g.open)
		after(time.Second)
		if mine.beats != 2 || mine.naks != 0 || !slices.Contains(r.ways(), "c1/1 returned") {
			t.Errorf("after the pause: %d heartbeats, %d naks, %v", mine.beats-2, mine.naks, r.ways())
		}
	})
}

// leaping is a clock that goes on while its process does not.
type leaping struct{ ahead atomic.Int64 }

func (c *leaping) leap(d time.Duration) { c.ahead.Add(int64(d)) }
func (c *leaping) Now() time.Time       { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *leaping) After(d time.Duration) (<-chan time.Time, func()) {
	return natswire.SystemClock{}.After(d)
}

// handle counts what is done to a delivery that only the test knows.
type handle struct {
	acks, naks, beats int
}

func (h *handle) Ack()              { h.acks++ }
func (h *handle) Nak(time.Duration) { h.naks++ }
func (h *handle) InProgress()       { h.beats++ }
func (h *handle) Term(string)       {}
