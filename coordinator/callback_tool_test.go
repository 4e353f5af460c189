package coordinator_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

type (
	befores = []llmagent.BeforeToolCallback
	afters  = []llmagent.AfterToolCallback
	onFails = []llmagent.OnToolErrorCallback
)

// What tool callbacks make of one call: how it is judged, what is recorded, what the model is told.
func TestToolCallbacks(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name  string
		call  string // what the model asks for
		cfg   llmagent.Config
		runs  protocol.Result // of the pool
		ran   string          // arguments that the pool got; empty when it got none
		log   []string
		tells string
	}{
		{
			name: "nothing said changes nothing", call: `echo {"n":1}`,
			cfg: llmagent.Config{
				BeforeToolCallbacks: befores{func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) { return nil, nil }},
				AfterToolCallbacks: afters{func(agent.Context, tool.Tool, map[string]any, map[string]any, error) (map[string]any, error) {
					return nil, nil
				}},
			},
			runs: object(`{"big":12345678901234567890}`), ran: `{"n":1}`,
			log:   []string{`run echo{"n":1}`, `completed {"big":12345678901234567890}`},
			tells: `echo{"big":12345678901234567890}`,
		},
		{
			name: "a result is the call's answer, and afterTool still runs", call: `echo {"n":1}`,
			cfg: llmagent.Config{
				BeforeToolCallbacks: befores{
					func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) { return nil, nil },
					func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) {
						return map[string]any{"cached": true}, nil
					},
					func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) {
						return nil, errors.New("not asked any more")
					},
				},
				AfterToolCallbacks: afters{func(_ agent.Context, _ tool.Tool, _, result map[string]any, err error) (map[string]any, error) {
					result["seen"] = err == nil
					return result, nil
				}},
			},
			log:   []string{`answer echo{"n":1} completed {"cached":true,"seen":true}`},
			tells: `echo{"cached":true,"seen":true}`,
		},
		{
			name: "to return the arguments is to answer with them (H73)", call: `echo {"n":1}`,
			cfg: llmagent.Config{
				BeforeToolCallbacks: befores{func(_ agent.Context, _ tool.Tool, args map[string]any) (map[string]any, error) { return args, nil }},
			},
			log:   []string{`answer echo{"n":1} completed {"n":1}`},
			tells: `echo{"n":1}`,
		},
		{
			name: "an error goes to onToolError, whose result clears it", call: `echo {"n":1}`,
			cfg: llmagent.Config{
				BeforeToolCallbacks: befores{func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) { return nil, boom }},
				OnToolErrorCallbacks: onFails{func(_ agent.Context, _ tool.Tool, _ map[string]any, err error) (map[string]any, error) {
					return map[string]any{"instead": errors.Is(err, boom)}, nil
				}},
				AfterToolCallbacks: afters{func(_ agent.Context, _ tool.Tool, _, result map[string]any, err error) (map[string]any, error) {
					return map[string]any{"after": result["instead"], "error": err}, nil
				}},
			},
			log:   []string{`answer echo{"n":1} completed {"after":true,"error":null}`},
			tells: `echo{"result":{"after":true,"error":null}}`,
		},
		{
			name: "an error that stays fails the call", call: `echo {"n":1}`,
			cfg: llmagent.Config{
				BeforeToolCallbacks: befores{func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) { return nil, boom }},
				OnToolErrorCallbacks: onFails{
					func(agent.Context, tool.Tool, map[string]any, error) (map[string]any, error) { return nil, nil },
					func(agent.Context, tool.Tool, map[string]any, error) (map[string]any, error) {
						return nil, errors.New("worse")
					},
				},
			},
			log:   []string{`answer echo{"n":1} failed {"error":"worse"}`},
			tells: `echo{"error":"worse"}`,
		},
		{
			name: "arguments that were changed are checked, recorded and run", call: `echo {"n":1}`,
			cfg: llmagent.Config{BeforeToolCallbacks: befores{func(_ agent.Context, _ tool.Tool, args map[string]any) (map[string]any, error) {
				args["n"] = args["n"].(float64) + 1
				return nil, nil
			}}},
			runs: object(`{"ok":1}`), ran: `{"n":2}`,
			log:   []string{`run echo{"n":2}`, `completed {"ok":1}`},
			tells: `echo{"ok":1}`,
		},
		{
			name: "arguments that do not fit are refused, and that is shown to callbacks", call: `echo {"n":1}`,
			cfg: llmagent.Config{
				BeforeToolCallbacks: befores{func(_ agent.Context, _ tool.Tool, args map[string]any) (map[string]any, error) {
					args["n"] = "two"
					return nil, nil
				}},
				OnToolErrorCallbacks: onFails{func(_ agent.Context, _ tool.Tool, args map[string]any, err error) (map[string]any, error) {
					return map[string]any{"refused": string(protocol.CodeOf(err)), "n": args["n"]}, nil
				}},
			},
			log:   []string{`answer echo{"n":"two"} completed {"n":"two","refused":"schema_violation"}`},
			tells: `echo{"n":"two","refused":"schema_violation"}`,
		},
		{
			name: "of a tool that does not exist only onToolError is told", call: `ghost {"n":1}`,
			cfg: llmagent.Config{
				BeforeToolCallbacks: befores{func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) { return nil, boom }},
				OnToolErrorCallbacks: onFails{func(_ agent.Context, tl tool.Tool, _ map[string]any, err error) (map[string]any, error) {
					return map[string]any{"no": tl.Name(), "code": string(protocol.CodeOf(err))}, nil
				}},
				AfterToolCallbacks: afters{func(agent.Context, tool.Tool, map[string]any, map[string]any, error) (map[string]any, error) {
					return nil, boom
				}},
			},
			log:   []string{`answer ghost{"n":1} completed {"code":"unknown_tool","no":"ghost"}`},
			tells: `ghost{"code":"unknown_tool","no":"ghost"}`,
		},
		{
			name: "a result is replaced", call: `echo {"n":1}`,
			cfg: llmagent.Config{AfterToolCallbacks: afters{
				func(agent.Context, tool.Tool, map[string]any, map[string]any, error) (map[string]any, error) {
					return nil, nil
				},
				func(_ agent.Context, _ tool.Tool, args, result map[string]any, _ error) (map[string]any, error) {
					return map[string]any{"sum": args["n"].(float64) + result["n"].(float64)}, nil
				},
			}},
			runs: object(`{"n":2}`), ran: `{"n":1}`,
			log:   []string{`run echo{"n":1}`, `completed {"sum":3}`},
			tells: `echo{"sum":3}`,
		},
		{
			name: "a tool's error is swallowed", call: `echo {"n":1}`,
			cfg: llmagent.Config{OnToolErrorCallbacks: onFails{func(_ agent.Context, _ tool.Tool, _ map[string]any, err error) (map[string]any, error) {
				return map[string]any{"was": err.Error()}, nil
			}}},
			runs: protocol.Result{Outcome: protocol.OutcomeFailed, Value: protocol.ErrorValue("no such order")}, ran: `{"n":1}`,
			log:   []string{`run echo{"n":1}`, `completed {"was":"no such order"}`},
			tells: `echo{"was":"no such order"}`,
		},
		{
			name: "an outcome that nobody knows stays unknown, whatever is shown for it", call: `echo {"n":1}`,
			cfg: llmagent.Config{OnToolErrorCallbacks: onFails{func(_ agent.Context, _ tool.Tool, _ map[string]any, err error) (map[string]any, error) {
				return map[string]any{"code": string(protocol.CodeOf(err))}, nil
			}}},
			runs: protocol.Result{Outcome: protocol.OutcomeUnknown, Code: protocol.CodeOutcomeUnknown, Value: protocol.ErrorValue("who knows")}, ran: `{"n":1}`,
			log:   []string{`run echo{"n":1}`, `outcome_unknown {"code":"outcome_unknown"}`},
			tells: `echo{"code":"outcome_unknown"}`,
		},
		{
			name: "a result becomes an error", call: `echo {"n":1}`,
			cfg: llmagent.Config{AfterToolCallbacks: afters{func(agent.Context, tool.Tool, map[string]any, map[string]any, error) (map[string]any, error) {
				return nil, errors.New("not for models")
			}}},
			runs: object(`{"secret":2}`), ran: `{"n":1}`,
			log:   []string{`run echo{"n":1}`, `failed {"error":"not for models"}`},
			tells: `echo{"error":"not for models"}`,
		},
		{
			name: "a panic before the call is its error, and it does not run", call: `echo {"n":1}`,
			cfg:   llmagent.Config{BeforeToolCallbacks: befores{func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) { panic("a secret") }}},
			log:   []string{`answer echo{"n":1} failed {"error":"BeforeToolCallbacks[0] of agent helper panicked"}`},
			tells: `echo{"error":"BeforeToolCallbacks[0] of agent helper panicked"}`,
		},
		{
			name: "a panic after the call is its error", call: `echo {"n":1}`,
			cfg: llmagent.Config{AfterToolCallbacks: afters{func(agent.Context, tool.Tool, map[string]any, map[string]any, error) (map[string]any, error) {
				panic("a secret")
			}}},
			runs: object(`{"n":2}`), ran: `{"n":1}`,
			log:   []string{`run echo{"n":1}`, `failed {"error":"AfterToolCallbacks[0] of agent helper panicked"}`},
			tells: `echo{"error":"AfterToolCallbacks[0] of agent helper panicked"}`,
		},
		{
			name: "a panic about an error is the error", call: `echo {"n":1}`,
			cfg: llmagent.Config{OnToolErrorCallbacks: onFails{func(agent.Context, tool.Tool, map[string]any, error) (map[string]any, error) {
				panic("a secret")
			}}},
			runs: protocol.Result{Outcome: protocol.OutcomeFailed, Value: protocol.ErrorValue("no")}, ran: `{"n":1}`,
			log:   []string{`run echo{"n":1}`, `failed {"error":"OnToolErrorCallbacks[0] of agent helper panicked"}`},
			tells: `echo{"error":"OnToolErrorCallbacks[0] of agent helper panicked"}`,
		},
		{
			name: "what cannot be written is the call's error", call: `echo {"n":1}`,
			cfg: llmagent.Config{BeforeToolCallbacks: befores{func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) {
				return map[string]any{"f": func() {}}, nil
			}}},
			log:   []string{`answer echo{"n":1} failed {"error":"the answer cannot be written as JSON: /f: a func() is no JSON value"}`},
			tells: `echo{"error":"the answer cannot be written as JSON: /f: a func() is no JSON value"}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				o := caller(c.call)
				c.cfg.Name, c.cfg.Model, c.cfg.Tools = "helper", o, pools("echo")
				f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(c.cfg)}})
				d := declaration("echo", "Says it again.")
				d.Parameters = []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
				p := f.pool(d, func(protocol.Envelope) protocol.Result { return c.runs })
				f.say("helper", "s1", "hi")
				if s := f.rests("helper", "s1", time.Minute); s.Kind != protocol.StopDone || s.Problem != nil {
					t.Fatalf("it ended as %+v %+v", s, s.Problem)
				}
				ran := ""
				for _, env := range p.taken() {
					ran += string(env.Args)
				}
				if ran != c.ran {
					t.Errorf("the pool ran %q, want %q", ran, c.ran)
				}
				if d := cmp.Diff(c.log, f.answers("helper", "s1")); d != "" {
					t.Errorf("the log (-want +got):\n%s", d)
				}
				if got := strings.Join(o.told(t), "\n"); got != c.tells {
					t.Errorf("the model is told\n%s\nwant\n%s", got, c.tells)
				}
				if strings.Contains(c.name, "panic") && f.logs.count("panicked") == 0 {
					t.Error("the coordinator's log has no stack")
				}
			})
		})
	}
}

func TestStateOfCallbacksIsRecordedWithTheirStep(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		var saw []string
		look := func(ctx agent.Context, key string) {
			v, err := ctx.State().Get(key)
			saw = append(saw, fmt.Sprintf("%s=%v %t", key, v, err == nil))
		}
		a := f.agent(llmagent.Config{
			Name: "helper", Model: caller("echo"), Tools: pools("echo"),
			BeforeToolCallbacks: befores{func(ctx agent.Context, _ tool.Tool, _ map[string]any) (map[string]any, error) {
				look(ctx, "before")
				return nil, ctx.State().Set("before", 7)
			}},
			AfterToolCallbacks: afters{func(ctx agent.Context, _ tool.Tool, _, _ map[string]any, _ error) (map[string]any, error) {
				look(ctx, "before")
				ctx.Actions().StateDelta["after"] = []int{1}
				return nil, nil
			}},
		})
		_ = a
		f.start("c1", coordinator.Config{Agents: []agent.Agent{a}})
		p := f.pool(declaration("echo", "Says it again."), func(protocol.Envelope) protocol.Result { return object(`{"n":1}`) })
		f.say("helper", "s1", "hi")
		f.rests("helper", "s1", time.Minute)
		if got := string(p.taken()[0].State["before"]); got != "7" {
			t.Errorf("the call travels with before=%s", got)
		}
		if d := cmp.Diff(map[string]string{"before": "7", "after": "[1]"}, f.set("helper", "s1")); d != "" {
			t.Errorf("the log sets (-want +got):\n%s", d)
		}
		if want := []string{"before=<nil> false", "before=7 true"}; !slices.Equal(saw, want) {
			t.Errorf("callbacks saw %q, want %q", saw, want)
		}
	})
}

// A coordinator that dies while its callbacks look at an answer has recorded nothing: the next one asks its own.
func TestAnAnswerThatCallbacksWereLookingAtIsShownAgain(t *testing.T) {
	for _, waking := range []bool{false, true} {
		t.Run(fmt.Sprintf("waking=%t", waking), func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				hung := make(chan struct{}, 10)
				after := func(block bool) afters {
					return afters{func(ctx agent.Context, _ tool.Tool, _, result map[string]any, _ error) (map[string]any, error) {
						if block {
							hung <- struct{}{}
							<-ctx.Done()
							return nil, ctx.Err()
						}
						return map[string]any{"second": result["n"]}, nil
					}}
				}
				o := caller("echo")
				cfg := llmagent.Config{Name: "helper", Model: o, Tools: pools("echo")}
				cfg.AfterToolCallbacks = after(true)
				f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(cfg)}})
				d := declaration("echo", "Says it again.")
				d.LongRunning = waking
				p := f.pool(d, func(protocol.Envelope) protocol.Result { return object(`{"n":1}`) })
				f.say("helper", "s1", "hi")
				<-hung
				f.w.Kill("c1")
				cfg.AfterToolCallbacks = after(false)
				f.start("c2", coordinator.Config{Agents: []agent.Agent{f.agent(cfg)}})
				if s := f.rests("helper", "s1", 2*time.Minute); s.Kind != protocol.StopDone || s.Problem != nil {
					t.Fatalf("it ended as %+v", s)
				}
				if got := o.told(t); len(p.taken()) != 1 || !slices.Equal(got, []string{`echo{"second":1}`}) {
					t.Errorf("the pool ran %d calls, the model is told %v", len(p.taken()), got)
				}
			})
		})
	}
}

// A callback that does not end fails its call, and holds up neither the session nor a drain.
func TestACallbackThatHangsFailsItsCall(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		release := make(chan struct{})
		o := caller("echo")
		_, stop := f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: o, Tools: pools("echo"),
			AfterToolCallbacks: afters{func(agent.Context, tool.Tool, map[string]any, map[string]any, error) (map[string]any, error) {
				<-release
				return nil, nil
			}}})}})
		f.pool(declaration("echo", "Says it again."), func(protocol.Envelope) protocol.Result { return object(`{"n":1}`) })
		f.say("helper", "s1", "hi")
		if s := f.rests("helper", "s1", 2*time.Minute); s.Kind != protocol.StopDone || s.Problem != nil {
			t.Errorf("it ended as %+v", s)
		}
		if got := o.told(t); !slices.Equal(got, []string{`echo{"error":"a callback did not end within 1m0s"}`}) {
			t.Errorf("the model is told %v", got)
		}
		stop()
		close(release)
	})
}

// Whether people agree or not, before-tool callbacks hear of it, and what they say is in the event of the decision.
func TestBeforeToolIsAskedAgainWhenPeopleHaveDecided(t *testing.T) {
	type said struct {
		result map[string]any
		again  bool
		err    error
	}
	for _, c := range []struct {
		name   string
		flag   bool // the tool's declaration asks, not the callback
		yes    bool
		says   said
		ran    int
		want   string // the answer in the decision's event; empty for none
		tells  string
		parked bool
	}{
		{name: "nothing: it runs", yes: true, ran: 1, tells: `echo{"n":1}`},
		{name: "nothing about a flag: it runs", flag: true, yes: true, ran: 1, tells: `echo{"n":1}`},
		{name: "a result: nobody runs it", yes: true, says: said{result: map[string]any{"kept": true}}, want: `completed {"kept":true}`, tells: `echo{"kept":true}`},
		{name: "an error: nobody runs it", yes: true, says: said{err: errors.New("too late")}, want: `failed {"error":"too late"}`, tells: `echo{"error":"too late"}`},
		{name: "another question: it waits again", yes: true, says: said{again: true, result: map[string]any{"still": "held"}}, want: `asks {"still":"held"}`, parked: true},
		{name: "denied, nothing: it is rejected", want: `denied {"error":"error tool \"echo\" call is rejected"}`, tells: `echo{"error":"error tool \"echo\" call is rejected"}`},
		{name: "denied, a result: it is shown", says: said{result: map[string]any{"sorry": true}}, want: `denied {"sorry":true}`, tells: `echo{"sorry":true}`},
		{name: "denied by a flag, another question: there is none", flag: true, says: said{again: true}, want: `denied {"error":"error tool \"echo\" call is rejected"}`, tells: `echo{"error":"error tool \"echo\" call is rejected"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				o := caller(`echo {"n":1}`)
				f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: o, Tools: pools("echo"),
					BeforeToolCallbacks: befores{func(ctx agent.Context, _ tool.Tool, args map[string]any) (map[string]any, error) {
						word := ctx.ToolConfirmation()
						if word == nil {
							if c.flag {
								return nil, nil
							}
							return map[string]any{"status": "held"}, ctx.RequestConfirmation("sure?", nil)
						}
						args["n"] = 99 // what people agreed to runs, and nothing else
						if word.Confirmed != c.yes {
							t.Errorf("the callback sees %+v", word)
						}
						if err := ctx.State().Set("word", word.Confirmed); err != nil {
							t.Error(err)
						}
						if c.says.again {
							if err := ctx.RequestConfirmation("really?", nil); (err == nil) != c.yes {
								t.Errorf("it may ask again: %v", err)
							}
						}
						return c.says.result, c.says.err
					}}})}})
				d := declaration("echo", "Says it again.")
				d.Confirm = c.flag
				p := f.pool(d, func(protocol.Envelope) protocol.Result { return object(`{"n":1}`) })
				f.say("helper", "s1", "hi")
				if s := f.rests("helper", "s1", time.Minute); s.Kind != protocol.StopParked {
					t.Fatalf("it ended as %+v", s)
				}
				q := f.question("helper", "s1")
				f.decide("helper", "s1", q.ID, fmt.Sprintf(`{"confirmed":%t}`, c.yes))
				f.until(time.Minute, "an end", func() bool {
					s := f.stopped("helper", "s1")
					return s != nil && (s.Kind == protocol.StopDone || c.parked && f.question("helper", "s1").ID != q.ID)
				})
				got := ""
				for _, e := range f.log("helper", "s1") {
					if len(e.Inputs) > 0 && e.Inputs[0].Kind == protocol.InputDecision {
						for _, a := range e.Answers {
							got += string(a.Outcome) + " " + string(a.Value)
						}
					}
				}
				if got != c.want || len(p.taken()) != c.ran {
					t.Errorf("the decision's event has %q, want %q; the pool ran %d calls", got, c.want, len(p.taken()))
				}
				if f.set("helper", "s1")["word"] != fmt.Sprint(c.yes) {
					t.Error("the state that the callback set is not in the log")
				}
				for _, env := range p.taken() {
					if string(env.Args) != `{"n":1}` || env.Confirmation == nil || !env.Confirmation.Confirmed {
						t.Errorf("the pool got %s %+v", env.Args, env.Confirmation)
					}
				}
				if told := strings.Join(o.told(t), "\n"); told != c.tells {
					t.Errorf("the model is told %q, want %q", told, c.tells)
				}
			})
		})
	}
}

// A coordinator that dies while its callbacks look at a decision has recorded nothing of it.
func TestADecisionThatCallbacksWereLookingAtIsShownAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		hung := make(chan struct{}, 10)
		before := func(block bool) befores {
			return befores{func(ctx agent.Context, _ tool.Tool, _ map[string]any) (map[string]any, error) {
				switch {
				case ctx.ToolConfirmation() == nil:
					return nil, ctx.RequestConfirmation("sure?", nil)
				case block:
					hung <- struct{}{}
					<-ctx.Done()
				}
				return map[string]any{"second": true}, nil
			}}
		}
		o := caller("echo")
		cfg := llmagent.Config{Name: "helper", Model: o, Tools: pools("echo"), BeforeToolCallbacks: before(true)}
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(cfg)}})
		p := f.pool(declaration("echo", "Says it again."), func(protocol.Envelope) protocol.Result { return object(`{"n":1}`) })
		f.say("helper", "s1", "hi")
		f.rests("helper", "s1", time.Minute)
		f.decide("helper", "s1", f.question("helper", "s1").ID, `{"confirmed":true}`)
		<-hung
		f.w.Kill("c1")
		cfg.BeforeToolCallbacks = before(false)
		f.start("c2", coordinator.Config{Agents: []agent.Agent{f.agent(cfg)}})
		f.until(2*time.Minute, "the end of the run", func() bool {
			s := f.stopped("helper", "s1")
			return s != nil && s.Kind == protocol.StopDone
		})
		if got := o.told(t); len(p.taken()) != 0 || !slices.Equal(got, []string{`echo{"second":true}`}) {
			t.Errorf("the pool ran %d calls, the model is told %v", len(p.taken()), got)
		}
	})
}
