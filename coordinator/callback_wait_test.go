package coordinator_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/coordinator/policy"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/plugin"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// done reports whether the newest run of a session has ended for good.
func (f *fabric) done(app, session string) bool {
	s := f.stopped(app, session)
	return s != nil && s.Kind == protocol.StopDone
}

// A result that comes when its run has long ended wakes the session, is shown to callbacks, and then begins a run.
func TestALateResultIsShownToCallbacks(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		o := caller("slow")
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: o, Tools: pools("slow"),
			AfterToolCallbacks: afters{func(_ agent.Context, tl tool.Tool, _, result map[string]any, err error) (map[string]any, error) {
				return map[string]any{"saw": result, "of": tl.Name()}, err
			}}})}})
		d := declaration("slow", "Takes its time.")
		d.LongRunning = true
		p := f.pool(d, func(protocol.Envelope) protocol.Result {
			return protocol.Result{Outcome: protocol.OutcomePending, Value: []byte(`{"ticket":1}`)}
		})
		f.say("helper", "s1", "hi")
		f.until(time.Minute, "the end of the first run", func() bool { return f.done("helper", "s1") })
		if got := o.told(t); !slices.Equal(got, []string{`slow{"of":"slow","saw":{"ticket":1}}`}) {
			t.Errorf("the model is told %v", got)
		}
		env := p.taken()[0]
		data, _ := protocol.Encode(protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeCompleted, Value: []byte(`{"bill":2}`)})
		f.publish(natswire.Msg{Subject: f.names.WakeSubject("helper", "slow", "s1", env.Call, 1), Data: data})
		f.until(time.Minute, "the second run", func() bool { n, _ := o.requests(); return n == 3 && f.done("helper", "s1") })
		if got := o.told(t); !slices.Equal(got, []string{`slow{"of":"slow","saw":{"bill":2}}`}) {
			t.Errorf("the model is told %v", got)
		}
		f.pass(time.Minute)
		if left := f.w.Messages(f.names.Timers()); len(left) != 0 {
			t.Errorf("%d timers are left", len(left))
		}
	})
}

// Callbacks hear of the end of a wait as of any error; what people were asked stays undecided.
func TestAnExpiredQuestionIsShownToCallbacks(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		o := caller("echo")
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: o, Tools: pools("echo"),
			OnToolErrorCallbacks: onFails{func(_ agent.Context, _ tool.Tool, _ map[string]any, err error) (map[string]any, error) {
				if errors.Is(err, tool.ErrConfirmationRequired) {
					return nil, nil
				}
				return map[string]any{"code": string(protocol.CodeOf(err))}, nil
			}}})}})
		d := declaration("echo", "Says it again.")
		d.Confirm, d.ParkTimeout = true, 60_000
		p := f.pool(d, func(protocol.Envelope) protocol.Result { return object(`{"n":1}`) })
		f.say("helper", "s1", "hi")
		f.until(5*time.Minute, "the end", func() bool { return f.done("helper", "s1") })
		if got := o.told(t); len(p.taken()) != 0 || !slices.Equal(got, []string{`echo{"code":"expired"}`}) {
			t.Errorf("the model is told %v", got)
		}
		if got := f.answers("helper", "s1"); !strings.HasPrefix(got[len(got)-1], "expired ") {
			t.Errorf("recorded is %q", got)
		}
	})
}

// Of several who must agree, the last one's word is what callbacks are asked about.
func TestCallbacksAreAskedWhenTheLastOneAgrees(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		two, err := policy.Compile([]policy.Rule{{Name: "two", When: "true", Need: 2}})
		if err != nil {
			t.Fatal(err)
		}
		d := &diary{}
		f.start("c1", coordinator.Config{Policy: two, Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: caller("echo"), Tools: pools("echo"),
			BeforeToolCallbacks: befores{func(ctx agent.Context, _ tool.Tool, _ map[string]any) (map[string]any, error) {
				d.note("asked %t", ctx.ToolConfirmation() != nil)
				return nil, nil
			}}})}})
		p := f.pool(declaration("echo", "Says it again."), func(protocol.Envelope) protocol.Result { return object(`{"n":1}`) })
		f.say("helper", "s1", "hi")
		f.rests("helper", "s1", time.Minute)
		q := f.question("helper", "s1").ID
		for i, approver := range []string{"ann", "ben"} {
			f.publish(natswire.Msg{Subject: f.names.ApprovalSubject("helper", "s1", q, approver), Data: []byte(`{"confirmed":true}`)})
			f.pass(5 * time.Second)
			if got := len(d.read()); got != 1+i {
				t.Errorf("after %d agreements: %v", i+1, d.read())
			}
		}
		f.until(time.Minute, "the end", func() bool { return f.done("helper", "s1") })
		if got := d.read(); len(p.taken()) != 1 || !slices.Equal(got, []string{"asked false", "asked true"}) {
			t.Errorf("the pool ran %d calls; asked: %v", len(p.taken()), got)
		}
	})
}

// Somebody who cancels does not wait for callbacks.
func TestACancelDoesNotWaitForCallbacks(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		looking := make(chan struct{}, 1)
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: caller("echo"), Tools: pools("echo"),
			AfterToolCallbacks: afters{func(ctx agent.Context, _ tool.Tool, _, _ map[string]any, _ error) (map[string]any, error) {
				looking <- struct{}{}
				<-ctx.Done()
				return nil, nil
			}}})}})
		f.pool(declaration("echo", "Says it again."), func(protocol.Envelope) protocol.Result { return object(`{"n":1}`) })
		f.say("helper", "s1", "hi")
		<-looking
		began := time.Now()
		data, _ := protocol.Encode(protocol.Input{V: protocol.Version, ID: "stop", Kind: protocol.InputCancel})
		f.publish(natswire.Msg{Subject: f.names.InputSubject("helper", "me", "s1"), Data: data})
		s := f.rests("helper", "s1", time.Minute)
		if took := time.Since(began); s.Kind != protocol.StopCancelled || took > 10*time.Second {
			t.Errorf("it ended as %s after %s", s.Kind, took)
		}
	})
}

// A message that plugins were looking at when their coordinator died is looked at again, and folded once.
func TestAMessageThatPluginsWereLookingAtIsShownAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		looking := make(chan struct{}, 10)
		made := func(name string, block bool) []*plugin.Plugin {
			p, err := plugin.New(plugin.Config{Name: "p", OnUserMessageCallback: func(ctx agent.InvocationContext, _ *genai.Content) (*genai.Content, error) {
				if block {
					looking <- struct{}{}
					<-ctx.Done()
				}
				return genai.NewContentFromText("for "+name, genai.RoleUser), nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			return []*plugin.Plugin{p}
		}
		o := saysHello()
		a := []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: o})}
		f.start("c1", coordinator.Config{Agents: a, Plugins: made("c1", true)})
		f.say("helper", "s1", "hi")
		<-looking
		f.w.Kill("c1")
		f.start("c2", coordinator.Config{Agents: a, Plugins: made("c2", false)})
		f.until(2*time.Minute, "the end", func() bool { return f.done("helper", "s1") })
		var folded []string
		for _, e := range f.log("helper", "s1") {
			for _, in := range e.Inputs {
				folded = append(folded, string(in.Content))
			}
		}
		if _, req := o.requests(); len(folded) != 1 || req.Contents[0].Parts[0].Text != "for c2" {
			t.Errorf("folded is %v", folded)
		}
		f.pass(time.Minute)
		if left := f.w.Messages(f.names.Timers()); len(left) != 0 {
			t.Errorf("%d timers are left", len(left))
		}
	})
}

// A coordinator that drains while callbacks look at something leaves it to the next one at once.
func TestADrainDoesNotWaitForCallbacks(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		looking := make(chan struct{}, 10)
		cfg := llmagent.Config{Name: "helper", Model: caller("echo"), Tools: pools("echo"),
			AfterToolCallbacks: afters{func(ctx agent.Context, _ tool.Tool, _, _ map[string]any, _ error) (map[string]any, error) {
				looking <- struct{}{}
				<-ctx.Done()
				return nil, nil
			}}}
		_, stop := f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(cfg)}})
		f.pool(declaration("echo", "Says it again."), func(protocol.Envelope) protocol.Result { return object(`{"n":1}`) })
		f.say("helper", "s1", "hi")
		<-looking
		cfg.AfterToolCallbacks = nil
		f.start("c2", coordinator.Config{Agents: []agent.Agent{f.agent(cfg)}})
		began := time.Now()
		stop()
		f.until(time.Minute, "the end", func() bool { return f.done("helper", "s1") })
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it went on after %s", took)
		}
	})
}

// Two answers of one turn are looked at side by side; the second question of a callback is another round.
func TestACallbackMayAskAgainAndAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		o, asked := caller("echo"), 0
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: o, Tools: pools("echo"),
			BeforeToolCallbacks: befores{func(ctx agent.Context, _ tool.Tool, _ map[string]any) (map[string]any, error) {
				if asked++; asked <= 3 {
					return nil, ctx.RequestConfirmation(fmt.Sprint("sure? ", asked), nil)
				}
				return nil, nil
			}}})}})
		p := f.pool(declaration("echo", "Says it again."), func(protocol.Envelope) protocol.Result { return object(`{"n":1}`) })
		f.say("helper", "s1", "hi")
		var hints []string
		seen := map[string]bool{}
		for range 3 {
			f.until(time.Minute, "a question", func() bool {
				s := f.stopped("helper", "s1")
				return s != nil && s.Kind == protocol.StopParked && !seen[f.question("helper", "s1").ID]
			})
			q := f.question("helper", "s1")
			seen[q.ID] = true
			hints = append(hints, q.Hint)
			f.decide("helper", "s1", q.ID, `{"confirmed":true}`)
		}
		f.until(time.Minute, "the end", func() bool { return f.done("helper", "s1") })
		calls := p.taken()
		if len(calls) != 1 || calls[0].Round != 2 || !slices.Equal(hints, []string{"sure? 1", "sure? 2", "sure? 3"}) {
			t.Errorf("asked %q; the pool ran %+v", hints, calls)
		}
	})
}
