package coordinator_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

func TestPanicOfOneSessionIsItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		bad := &moody{}
		broken := f.agent(llmagent.Config{Name: "broken", Model: says("never", 0), Tools: []tool.Tool{bad}})
		bad.armed = true
		sound := f.agent(llmagent.Config{Name: "sound", Model: says("hello", 20*time.Second)})
		f.start("c1", coordinator.Config{Agents: []agent.Agent{broken, sound}})
		f.say("sound", "s1", "hi")
		f.say("broken", "s1", "hi")
		if s := f.rests("sound", "s1", time.Minute); s.Kind != protocol.StopDone || s.Problem != nil {
			t.Errorf("the sound session ended as %+v", s)
		}
		if s := f.rests("broken", "s1", 10*time.Minute); s.Kind != protocol.StopQuarantined {
			t.Errorf("the broken session ended as %+v", s)
		}
		if by := f.adoptions("broken", "s1"); len(by) != 1+fold.MaxBarren+1 { // the first took the input, the last gave up
			t.Errorf("%d adoptions", len(by))
		}
		var letters []protocol.DeadLetter
		f.until(time.Minute, "a dead letter", func() bool {
			for _, m := range f.w.Messages(f.names.DeadLetters()) {
				l, err := strictLetter(m.Data)
				if err != nil {
					t.Fatal(err)
				}
				letters = append(letters, l)
			}
			return len(letters) > 0
		})
		if l := letters[0]; len(letters) != 1 || l.Code != protocol.CodePoison || l.App != "broken" || l.Session != "s1" {
			t.Errorf("%d dead letters: %+v", len(letters), letters)
		}
		id := f.say("broken", "s1", "hello?")
		f.pass(time.Second)
		events := f.log("broken", "s1")
		last := events[len(events)-1]
		if len(last.Inputs) != 1 || last.Inputs[0].ID != id || last.Inputs[0].Refused == nil || last.Inputs[0].Refused.Code != protocol.CodeSessionClosed {
			t.Errorf("an input after the quarantine: %+v", last.Event)
		}
		f.pass(time.Minute)
		if left := f.w.Messages(f.names.Timers()); len(left) != 0 {
			t.Errorf("%d timers are left", len(left))
		}
	})
}

// moody is a tool that panics where nobody expects it: in the session's own loop.
type moody struct{ armed bool }

func (m *moody) Name() string {
	if m.armed {
		panic("a bug of the tool's")
	}
	return "moody"
}

func (*moody) Description() string { return "" }
func (*moody) IsLongRunning() bool { return false }

func TestPanicOfAnInstructionProviderEndsTheRun(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		a := f.agent(llmagent.Config{Name: "helper", Model: says("never", 0), InstructionProvider: func(agent.ReadonlyContext) (string, error) {
			panic("a bug of the agent's")
		}})
		f.start("c1", coordinator.Config{Agents: []agent.Agent{a}})
		f.say("helper", "s1", "hi")
		if s := f.rests("helper", "s1", time.Second); s.Problem == nil || s.Problem.Code != protocol.CodeModelFailed || strings.Contains(s.Problem.Message, "bug") {
			t.Errorf("it ended as %+v", s.Problem)
		}
	})
}

func strictLetter(data []byte) (l protocol.DeadLetter, err error) {
	return l, protocol.Decode(data, &l, protocol.MessageLimits)
}

func TestPanicOfAModelEndsTheRun(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		a := f.agent(llmagent.Config{Name: "helper", Model: &oracle{answer: func(context.Context, *model.LLMRequest) ([]*genai.Part, error) { panic("a bug of the adapter's") }}})
		f.start("c1", coordinator.Config{Agents: []agent.Agent{a}})
		f.say("helper", "s1", "hi")
		if s := f.rests("helper", "s1", time.Second); s.Problem == nil || s.Problem.Code != protocol.CodeModelFailed || strings.Contains(s.Problem.Message, "bug") {
			t.Errorf("it ended as %+v", s.Problem)
		}
	})
}

// fickle panics in the session's loop for as long as it is armed.
type fickle struct{ armed atomic.Bool }

func (f *fickle) Name() string {
	if f.armed.Load() {
		panic("a bug of the tool's")
	}
	return "fickle"
}

func (*fickle) Description() string { return "" }
func (*fickle) IsLongRunning() bool { return false }

func TestPanicGivesTheIntakeItsCreditBack(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		bad := &fickle{}
		a := f.agent(llmagent.Config{Name: "helper", Model: says("hello", 0), Tools: []tool.Tool{bad}})
		bad.armed.Store(true)
		f.start("c1", coordinator.Config{Agents: []agent.Agent{a}})
		for range 1000 { // more than the intake has in hand at once
			f.say("helper", "s1", "hi")
		}
		f.pass(time.Second)
		if f.logs.count("panicked") == 0 {
			t.Fatal("nothing panicked")
		}
		bad.armed.Store(false)
		f.say("helper", "s2", "hi")
		f.rests("helper", "s2", 20*time.Second)
	})
}
