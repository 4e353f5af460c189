package coordinator_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
)

// treacherous is a bus that panics when something is published on a subject, some times.
type treacherous struct {
	natswire.Bus
	on   string
	left *atomic.Int32
}

func (b treacherous) Publish(ctx context.Context, m natswire.Msg) (natswire.Ack, error) {
	if strings.HasPrefix(m.Subject, b.on) && b.left.Add(-1) >= 0 {
		panic("a bug")
	}
	return b.Bus.Publish(ctx, m)
}

// Send fails where Publish panics, which is what is tried next.
func (b treacherous) Send(m natswire.Msg, done func(natswire.Ack, error)) {
	if strings.HasPrefix(m.Subject, b.on) {
		done(natswire.Ack{}, protocol.Errorf(protocol.CodeUnreachable, "cut off"))
		return
	}
	b.Bus.Send(m, done)
}

// betray has the next n publishes on a subject panic.
func (f *fabric) betray(on string, n int32) {
	left := &atomic.Int32{}
	left.Store(n)
	f.wrap = func(b natswire.Bus) natswire.Bus { return treacherous{b, on, left} }
}

func TestPanicBesideTheLoopCostsItsSessionAnAdoption(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		f.betray(f.names.CallSubject("hash"), 1)
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: calls("hash"), Tools: pools("hash")})}})
		f.beat("w1", declaration("hash", "Hashes."))
		f.pass(0)
		f.say("helper", "s1", "hi")
		f.until(20*time.Second, "the call", func() bool { return len(f.w.Messages(f.names.Calls())) == 1 })
		if by := f.adoptions("helper", "s1"); len(by) != 2 || f.logs.count("panicked") != 1 {
			t.Errorf("adopted by %v, %d panics told", by, f.logs.count("panicked"))
		}
		f.answer("helper", "s1")
		if s := f.rests("helper", "s1", time.Second); s.Kind != protocol.StopDone || s.Problem != nil {
			t.Errorf("it ended as %+v", s)
		}
	})
}

func TestPanicInTheIntakeSettlesNothingAndKeepsItsCredit(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		var armed atomic.Bool
		ids := 0
		f.start("c1", coordinator.Config{NewID: func() string { // asked for by the intake for what cannot be read
			if armed.Load() {
				panic("a bug")
			}
			ids++
			return fmt.Sprint("id-", ids)
		}})
		armed.Store(true)
		const inputs = 300 // more than the intake has in hand at once
		for i := range inputs {
			f.publish(natswire.Msg{Subject: f.names.InputSubject(protocol.CallsApp, "me", fmt.Sprint("s", i)), Data: []byte(`{"v":1,`)})
		}
		f.pass(time.Second)
		if n := f.logs.count("panicked"); n != inputs {
			t.Errorf("%d panics, want one for each of %d inputs", n, inputs)
		}
		if left := f.w.Messages(f.names.Input()); len(left) != inputs {
			t.Errorf("%d inputs are left, want all", len(left))
		}
		armed.Store(false)
		f.pass(6 * time.Second) // they come again
		if left := f.w.Messages(f.names.Input()); len(left) != 0 {
			t.Errorf("%d inputs are left", len(left))
		}
	})
}

func TestPanicOverOneRegistrationLeavesTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		f.betray(f.names.ToolSubject("bad", "*")[:len(f.names.ToolSubject("bad", "*"))-1], 1<<30)
		llm := says("hello", 0)
		f.beat("w1", declaration("bad", "Panics."))
		f.beat("w2", declaration("hash", "Hashes."))
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: llm, Tools: pools("bad", "hash")})}})
		f.say("helper", "s1", "hi")
		f.rests("helper", "s1", time.Second)
		if _, req := llm.requests(); len(req.Config.Tools) != 1 || req.Config.Tools[0].FunctionDeclarations[0].Name != "hash" {
			t.Errorf("offered: %+v", req.Config.Tools)
		}
		if f.logs.count("panicked") == 0 {
			t.Error("nothing panicked")
		}
	})
}
