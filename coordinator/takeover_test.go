package coordinator_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

func TestWalkRevivesASessionWhoseGuardIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		agents := []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: says("hello", time.Minute), Limits: llmagent.Limits{WallTime: time.Hour}})}
		f.start("c1", coordinator.Config{Agents: agents})
		f.say("helper", "s1", "hi")
		f.pass(time.Second)
		f.w.Kill("c1")
		if err := f.client.Purge(t.Context(), f.names.Input(), f.names.InputFilter("helper"), 0); err != nil {
			t.Fatal(err)
		}
		f.start("c2", coordinator.Config{Agents: agents})
		f.pass(3 * time.Minute)
		if by := f.adoptions("helper", "s1"); len(by) != 1 {
			t.Fatalf("%d adoptions without a guard: the walk has not been", len(by))
		}
		if stop := f.rests("helper", "s1", 20*time.Minute); stop.Kind != protocol.StopDone || stop.Problem != nil {
			t.Errorf("it ended as %+v", stop)
		}
	})
}

func TestOwnerThatLivesIsNotRobbed(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		slow := says("hello", 10*time.Minute)
		agents := []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: slow})}
		f.start("c1", coordinator.Config{Agents: agents})
		f.start("c2", coordinator.Config{Agents: agents})
		f.say("helper", "s1", "hi")
		f.rests("helper", "s1", 11*time.Minute)
		if by := f.adoptions("helper", "s1"); len(by) != 1 {
			t.Errorf("adopted by %v", by)
		}
		if n, _ := slow.requests(); n != 1 {
			t.Errorf("the model was asked %d times", n)
		}
		f.pass(time.Minute)
		if left := f.w.Messages(f.names.Timers()); len(left) != 0 {
			t.Errorf("%d timers are left behind a session at rest", len(left))
		}
	})
}

func TestDeadOwnerIsFollowed(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		agents := []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: says("hello", time.Minute)})}
		first, _ := f.start("c1", coordinator.Config{Agents: agents})
		f.say("helper", "s1", "hi")
		f.pass(time.Second)
		second, _ := f.start("c2", coordinator.Config{Agents: agents})
		f.w.Kill("c1")
		f.until(20*time.Second, "the takeover", func() bool { return len(f.adoptions("helper", "s1")) == 2 })
		f.rests("helper", "s1", 2*time.Minute)
		if by := f.adoptions("helper", "s1"); by[0] != first.ID() || by[1] != second.ID() {
			t.Errorf("adopted by %v", by)
		}
	})
}

func TestDrainHandsOverAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		agents := []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: says("hello", time.Minute)})}
		_, stop := f.start("c1", coordinator.Config{Agents: agents})
		f.say("helper", "s1", "hi")
		f.pass(time.Second)
		second, _ := f.start("c2", coordinator.Config{Agents: agents})
		began := time.Now()
		stop()
		f.until(2*time.Second, "the handover", func() bool { return len(f.adoptions("helper", "s1")) == 2 })
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
		if by := f.adoptions("helper", "s1"); by[1] != second.ID() {
			t.Errorf("adopted by %v", by)
		}
		if s := f.rests("helper", "s1", 2*time.Minute); s.Kind != protocol.StopDone || s.Problem != nil {
			t.Errorf("it ended as %+v", s)
		}
	})
}

// A broker that was restored from an older copy has lost the end of a log.
func TestGuardBeyondTheEndOfTheLogGoesAway(t *testing.T) {
	for name, drained := range map[string]bool{"of a session at rest": false, "of one that waits for an owner": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				agents := []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: says("hello", time.Minute)})}
				_, stop := f.start("c1", coordinator.Config{Agents: agents})
				f.say("helper", "s1", "hi")
				if drained {
					f.pass(time.Second)
					stop()
					for _, m := range f.w.Messages(f.names.Timers()) { // restored without them
						if err := f.client.Remove(t.Context(), f.names.Timers(), m.Seq); err != nil {
							t.Fatal(err)
						}
					}
				} else {
					f.rests("helper", "s1", 2*time.Minute)
				}
				log := f.log("helper", "s1")
				lost := protocol.Guard{Coordinator: "gone", Adoption: "lost", Expected: log[len(log)-1].seq + 10}
				if err := natswire.SetGuard(t.Context(), f.client, f.names, "helper", "s1", time.Now(), lost); err != nil {
					t.Fatal(err)
				}
				f.start("c2", coordinator.Config{Agents: agents})
				f.until(10*time.Minute, "the end of the guard", func() bool { return len(f.w.Messages(f.names.Timers())) == 0 })
				if s := f.rests("helper", "s1", time.Second); s.Kind != protocol.StopDone {
					t.Errorf("it ended as %+v", s)
				}
			})
		})
	}
}

func TestAnswerThatPassedByACutConnectionIsFoundWhenItIsBack(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: calls("hash"), Tools: pools("hash")})}})
		f.beat("w1", declaration("hash", "Hashes."))
		f.pass(0)
		f.say("helper", "s1", "hi")
		f.pass(12 * time.Second) // just after a look at the mailboxes
		f.w.Cut("c1")
		f.answer("helper", "s1")
		f.pass(time.Second)
		f.w.Heal("c1")
		f.rests("helper", "s1", time.Second)
	})
}

// calls is a model that calls a tool once and then says hello.
func calls(tool string) *oracle {
	return &oracle{answer: func(_ context.Context, req *model.LLMRequest) ([]*genai.Part, error) {
		if last := req.Contents[len(req.Contents)-1]; last.Parts[0].FunctionResponse != nil {
			return text("hello"), nil
		}
		return []*genai.Part{{FunctionCall: &genai.FunctionCall{Name: tool, Args: map[string]any{}}}}, nil
	}}
}

// answer stores a result for the only call of a session, as its worker does.
func (f *fabric) answer(app, session string) {
	f.Helper()
	for _, e := range f.log(app, session) {
		if e.Turn != nil && len(e.Turn.Calls) > 0 {
			c := e.Turn.Calls[0]
			r := protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeCompleted, Value: []byte(`{"n":1}`), Worker: "w1", Attempt: 1}
			if _, err := natswire.StoreResult(f.Context(), f.client, f.names, c.Tool, session, c.ID, 0, nil, r); err != nil {
				f.Fatal(err)
			}
			return
		}
	}
	f.Fatal("the session has no call")
}

// deaf is a model that does not notice that its context ended, until the test lets go of it.
func deaf(t *testing.T) *oracle {
	gone := make(chan struct{})
	t.Cleanup(func() { close(gone) })
	return &oracle{answer: func(context.Context, *model.LLMRequest) ([]*genai.Part, error) {
		<-gone
		return nil, errors.New("let go")
	}}
}

func TestModelThatNeverAnswersIsEndedByTheWallTime(t *testing.T) {
	for name, llm := range map[string]func(*testing.T) *oracle{
		"it ends with its context": func(*testing.T) *oracle { return says("never", 24*time.Hour) },
		"it is deaf":               deaf,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				a := f.agent(llmagent.Config{Name: "helper", Model: llm(t), Limits: llmagent.Limits{WallTime: 5 * time.Minute}})
				_, stop := f.start("c1", coordinator.Config{Agents: []agent.Agent{a}})
				f.say("helper", "s1", "hi")
				f.pass(4 * time.Minute)
				if s := f.stopped("helper", "s1"); s != nil {
					t.Fatalf("it ended early: %+v", s)
				}
				if s := f.rests("helper", "s1", 2*time.Minute); s.Problem == nil || s.Problem.Code != protocol.CodeLimit {
					t.Errorf("it ended as %+v", s)
				}
				stop()
			})
		})
	}
}

func TestDrainDoesNotWaitForAModelThatIsDeaf(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		a := f.agent(llmagent.Config{Name: "helper", Model: deaf(t)})
		_, stop := f.start("c1", coordinator.Config{Agents: []agent.Agent{a}})
		f.say("helper", "s1", "hi")
		f.pass(time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
		if s := f.stopped("helper", "s1"); s == nil || s.Kind != protocol.StopDrained {
			t.Errorf("it ended as %+v", s)
		}
	})
}

func TestInputsThatWaitAreFoldedInTheOrderTheyWereSent(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		agents := []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: says("hello", time.Second)})}
		_, stop := f.start("c1", coordinator.Config{Agents: agents})
		stop()
		var sent []string
		for range 50 {
			sent = append(sent, f.say("helper", "s1", "hi"))
		}
		f.start("c2", coordinator.Config{Agents: agents})
		f.rests("helper", "s1", time.Minute)
		var folded []string
		for _, e := range f.log("helper", "s1") {
			for _, in := range e.Inputs {
				folded = append(folded, in.ID)
			}
		}
		if !slices.Equal(folded, sent) {
			t.Errorf("sent %v\nfolded %v", sent, folded)
		}
	})
}

func TestDrainedSessionIsNotTakenUpAgainByWhoLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		busy := make(chan struct{}) // keeps the owner's loop from its inbox until the test lets it go
		agents := []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: says("hello", 10*time.Second),
			InstructionProvider: func(agent.ReadonlyContext) (string, error) { <-busy; return "Help.", nil }})}
		_, stop := f.start("c1", coordinator.Config{Agents: agents})
		f.say("helper", "s1", "hi")
		f.pass(time.Second)
		second, _ := f.start("c2", coordinator.Config{Agents: agents})
		var drained sync.WaitGroup
		began := time.Now()
		drained.Go(stop)
		synctest.Wait()
		f.say("helper", "s1", "and") // passed on to the owner, which has been told to leave
		synctest.Wait()
		close(busy)
		drained.Wait()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the drain took %s", took)
		}
		f.rests("helper", "s1", time.Minute)
		if by := f.adoptions("helper", "s1"); len(by) != 2 || by[1] != second.ID() {
			t.Errorf("adopted by %v, the second is %s", by, second.ID())
		}
	})
}

func TestDeletedSessionTakesItsQueuedCallsBack(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: calls("hash"), Tools: pools("hash")})}})
		f.beat("w1", declaration("hash", "Hashes.")) // may be repeated: no claim keeps it from being run
		f.pass(0)
		f.say("helper", "s1", "hi")
		f.say("helper", "s2", "hi")
		f.pass(time.Second)
		if queued := f.w.Messages(f.names.Calls()); len(queued) != 2 {
			t.Fatalf("%d calls are queued", len(queued))
		}
		data, _ := protocol.Encode(protocol.Input{V: protocol.Version, ID: "delete", Kind: protocol.InputDelete})
		f.publish(natswire.Msg{Subject: f.names.InputSubject("helper", "me", "s1"), Data: data})
		f.pass(time.Second)
		if s := f.stopped("helper", "s1"); s == nil || s.Kind != protocol.StopDeleted {
			t.Fatalf("it ended as %+v", s)
		}
		if queued := f.w.Messages(f.names.Calls()); len(queued) != 1 {
			t.Errorf("%d calls are queued, want that of the other session", len(queued))
		}
	})
}
