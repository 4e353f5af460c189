package coordinator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
)

func TestAnInputGuardsItsRun(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		agents := []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: says("hello", time.Minute)})}
		f.start("c1", coordinator.Config{Agents: agents})
		f.start("c2", coordinator.Config{Agents: agents})
		f.say("helper", "s1", "hi")
		f.pass(40 * time.Second) // it came again by now, to either
		if log := f.log("helper", "s1"); log[0].Adopt == nil || log[0].Adopt.Guard != log[0].Inputs[0].Seq || log[0].Adopt.Guard == 0 {
			t.Errorf("the adoption %+v does not name the input %+v", log[0].Adopt, log[0].Inputs[0])
		}
		if n := len(f.w.Messages(f.names.Input())); n != 1 {
			t.Errorf("INPUT holds %d messages while the run goes on, want the one that guards it", n)
		}
		if n := len(f.w.Messages(f.names.Timers())); n != 0 {
			t.Errorf("%d timers are set beside it", n)
		}
		f.rests("helper", "s1", time.Minute)
		f.until(time.Second, "the end of the guard", func() bool { return len(f.w.Messages(f.names.Input())) == 0 })
		if by := f.adoptions("helper", "s1"); len(by) != 1 {
			t.Errorf("adopted by %v", by)
		}
	})
}

func TestALargeInputDoesNotWaitForItsRun(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		agents := []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: says("hello", time.Minute)})}
		f.start("c1", coordinator.Config{Agents: agents})
		f.say("helper", "s1", strings.Repeat("long ", 20_000))
		f.pass(time.Second)
		if in, timers := len(f.w.Messages(f.names.Input())), len(f.w.Messages(f.names.Timers())); in != 0 || timers != 1 {
			t.Errorf("%d messages in INPUT and %d timers guard the run, want a timer", in, timers)
		}
		f.rests("helper", "s1", 2*time.Minute)
	})
}
