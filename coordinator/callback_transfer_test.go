package coordinator_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/plugin"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/exitlooptool"
)

// once is a model that makes calls in its first answer and says ok in the others.
func once(calls ...*genai.Part) *oracle {
	asked := false
	return &oracle{answer: func(context.Context, *model.LLMRequest) ([]*genai.Part, error) {
		if asked {
			return text("ok"), nil
		}
		asked = true
		return calls, nil
	}}
}

func toSub() *genai.Part { return calling(llmagent.TransferTool, map[string]any{"agent_name": "sub"}) }

// Whoever speaks has its own callbacks and toolsets, before and behind a transfer, and a run enters each agent once, also when
// another coordinator goes on in the middle.
func TestATransferEntersTheOtherAgent(t *testing.T) {
	for _, killed := range []bool{false, true} {
		inBubble(t, func(t *testing.T, f *fabric) {
			d := &diary{}
			notes := func(cfg llmagent.Config) llmagent.Config {
				cfg.BeforeAgentCallbacks = []agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
					d.note("%s enters", ctx.AgentName())
					return nil, ctx.State().Set("entered", ctx.AgentName())
				}}
				cfg.AfterAgentCallbacks = []agent.AfterAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
					d.note("%s leaves", ctx.AgentName())
					return nil, nil
				}}
				cfg.AfterToolCallbacks = afters{func(ctx agent.Context, tl tool.Tool, _, _ map[string]any, _ error) (map[string]any, error) {
					d.note("%s of %s", tl.Name(), ctx.AgentName())
					return nil, nil
				}}
				return cfg
			}
			o := caller("two")
			sub := f.agent(notes(llmagent.Config{Name: "sub", Model: o, Toolsets: []tool.Toolset{set{"s", of("two")}}}))
			a := []agent.Agent{f.agent(notes(llmagent.Config{Name: "root", Model: handsOver("sub"), Toolsets: []tool.Toolset{set{"s", of("one")}}, SubAgents: []agent.Agent{sub}}))}
			p, err := plugin.New(plugin.Config{Name: "p", BeforeRunCallback: func(agent.InvocationContext) (*genai.Content, error) { d.note("run"); return nil, nil }})
			if err != nil {
				t.Fatal(err)
			}
			cfg := coordinator.Config{Agents: a, Plugins: []*plugin.Plugin{p}}
			f.start("c1", cfg)
			f.beat("w", declaration("one", "A tool."))
			decl := declaration("two", "A tool.")
			decl.Confirm = killed
			f.pool(decl, func(protocol.Envelope) protocol.Result { return object(`{"n":1}`) })
			f.say("root", "s1", "hi")
			f.rests("root", "s1", time.Minute)
			if killed {
				f.w.Kill("c1")
				f.start("c2", cfg)
				f.decide("root", "s1", f.question("root", "s1").ID, `{"confirmed":true}`)
				f.until(time.Minute, "the end", func() bool { return f.done("root", "s1") })
			}
			want := []string{"run", "root enters", "transfer_to_agent of root", "sub enters", "two of sub", "sub leaves"}
			if killed { // the placeholder of the question
				want = []string{"run", "root enters", "transfer_to_agent of root", "sub enters", "two of sub", "two of sub", "sub leaves"}
			}
			if got := d.read(); !slices.Equal(got, want) {
				t.Errorf("asked %v, want %v", got, want)
			}
			if got := f.speakers("root", "s1"); got != "root root sub sub sub" {
				t.Errorf("turns of %s", got)
			}
			_, req := o.requests()
			if got := declared(req); !slices.Equal(got, []string{llmagent.TransferTool, "two"}) {
				t.Errorf("sub's model may call %v", got)
			}
		})
	}
}

// What callbacks want of a call that its turn answers.
func TestCallbacksAndCallsThatNeedNoWorker(t *testing.T) {
	for _, c := range []struct {
		name     string
		before   func(agent.Context) (map[string]any, error)
		after    func(agent.Context) (map[string]any, error)
		call     *genai.Part
		speakers string
		told     string // in the newest request of root's model
	}{
		{name: "nobody is asked to agree, and nobody agreed", call: toSub(), speakers: "root root", told: "not executed",
			before: func(ctx agent.Context) (map[string]any, error) { return nil, ctx.RequestConfirmation("sure?", nil) }},
		{name: "nor with a result", call: calling(exitlooptool.Name, nil), speakers: "root root", told: "not executed",
			before: func(ctx agent.Context) (map[string]any, error) {
				return map[string]any{"status": "asked"}, ctx.RequestConfirmation("sure?", nil)
			}},
		{name: "an answer in the place of a transfer", call: toSub(), speakers: "root root", told: "stay",
			before: func(agent.Context) (map[string]any, error) { return map[string]any{"do": "stay"}, nil }},
		{name: "a transfer by a callback", call: calling("one", nil), speakers: "root sub",
			before: func(ctx agent.Context) (map[string]any, error) {
				ctx.Actions().TransferToAgent = "sub"
				return map[string]any{"to": "sub"}, nil
			}},
		{name: "a transfer to nobody before", call: calling("one", nil), speakers: "root root", told: `nobody is named \"ghost\" to transfer to`,
			before: func(ctx agent.Context) (map[string]any, error) {
				ctx.Actions().TransferToAgent = "ghost"
				return map[string]any{"to": "ghost"}, nil
			}},
		{name: "a transfer to nobody behind an answer", call: calling("one", nil), speakers: "root root", told: `nobody is named \"ghost\" to transfer to`,
			before: func(agent.Context) (map[string]any, error) { return map[string]any{"n": 1}, nil },
			after: func(ctx agent.Context) (map[string]any, error) {
				ctx.Actions().TransferToAgent = "ghost"
				return nil, nil
			}},
		{name: "a transfer goes before the end", call: calling(exitlooptool.Name, nil), speakers: "root sub",
			before: func(ctx agent.Context) (map[string]any, error) {
				ctx.Actions().TransferToAgent = "sub"
				return nil, nil
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				o := once(c.call)
				exit, _ := exitlooptool.New()
				cfg := llmagent.Config{Name: "root", Model: o, Tools: []tool.Tool{exit, tool.Pool("one")},
					SubAgents: []agent.Agent{f.agent(llmagent.Config{Name: "sub", Model: says("of sub", 0)})}}
				cfg.BeforeToolCallbacks = []llmagent.BeforeToolCallback{func(ctx agent.Context, _ tool.Tool, _ map[string]any) (map[string]any, error) { return c.before(ctx) }}
				if c.after != nil {
					cfg.AfterToolCallbacks = afters{func(ctx agent.Context, _ tool.Tool, _, _ map[string]any, _ error) (map[string]any, error) {
						return c.after(ctx)
					}}
				}
				f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(cfg)}})
				f.beat("w", declaration("one", "A tool."))
				f.pass(time.Second)
				f.say("root", "s1", "hi")
				if s := f.rests("root", "s1", time.Minute); s.Kind != protocol.StopDone || s.Problem != nil {
					t.Errorf("it ended as %+v", s)
				}
				if got := f.speakers("root", "s1"); got != c.speakers {
					t.Errorf("who spoke: %s, want %s", got, c.speakers)
				}
				if got := strings.Join(o.told(t), " "); !strings.Contains(got, c.told) {
					t.Errorf("root's model is told %s, want %s", got, c.told)
				}
				if f.logs.count("not among the app's any more") != 0 {
					t.Error("the run was handed to nobody")
				}
			})
		})
	}
}

// exit_loop needs no worker wherever an agent has it from.
func TestAToolsetOffersExitLoop(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		exit, _ := exitlooptool.New()
		o := once(calling(exitlooptool.Name, nil))
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "root", Model: o,
			Toolsets: []tool.Toolset{set{"s", func(agent.ReadonlyContext) ([]tool.Tool, error) { return []tool.Tool{exit}, nil }}}})}})
		f.say("root", "s1", "hi")
		s := f.rests("root", "s1", time.Minute)
		n, req := o.requests()
		if got := declared(req); n != 1 || s.Problem != nil || !slices.Equal(got, []string{exitlooptool.Name}) {
			t.Errorf("%d requests, the last one declares %v; it ended as %+v", n, got, s)
		}
	})
}

// described is a pool whose declaration here says something of its own.
type described struct {
	tool.Tool
	says string
}

func (d described) Description() string { return d.says }

// A call that outlives a transfer is shown to its own agent's callbacks with that agent's tool.
func TestACallThatOutlivesATransferKeepsItsTool(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		d := &diary{}
		sub := f.agent(llmagent.Config{Name: "sub", Model: says("done", 30*time.Second), Toolsets: []tool.Toolset{set{"s", func(agent.ReadonlyContext) ([]tool.Tool, error) {
			return []tool.Tool{described{tool.Pool("slow"), "of sub"}}, nil
		}}}})
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "root", Model: once(calling("slow", nil), toSub()), SubAgents: []agent.Agent{sub},
			Tools: []tool.Tool{described{tool.Pool("slow"), "of root"}},
			AfterToolCallbacks: afters{func(ctx agent.Context, tl tool.Tool, _, _ map[string]any, _ error) (map[string]any, error) {
				if tl.Name() == "slow" {
					d.note("%s for %s", tl.Description(), ctx.AgentName())
				}
				return nil, nil
			}}})}})
		decl := declaration("slow", "Takes its time.")
		decl.LongRunning = true
		p := f.pool(decl, func(protocol.Envelope) protocol.Result {
			return protocol.Result{Outcome: protocol.OutcomePending, Value: []byte(`{"ticket":1}`)}
		})
		f.say("root", "s1", "hi")
		f.pass(5 * time.Second) // sub is asked
		data, _ := protocol.Encode(protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeCompleted, Value: []byte(`{"bill":2}`)})
		f.publish(msg{Subject: f.names.WakeSubject("root", "slow", "s1", p.taken()[0].Call, 1), Data: data})
		f.until(2*time.Minute, "the end", func() bool { return f.done("root", "s1") })
		if got := d.read(); !slices.Equal(got, []string{"of root for root", "of root for root"}) {
			t.Errorf("shown: %v", got)
		}
	})
}

// What callbacks say and set before an agent may be too much for one event: the run fails, and nobody tries again for ever.
func TestAnEntryThatIsTooLargeFailsTheRun(t *testing.T) {
	for name, says := range map[string]string{"said": strings.Repeat("x", 250<<10), "set beside it": strings.Repeat("x", 200<<10)} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				sub := f.agent(llmagent.Config{Name: "sub", Model: saysHello(), BeforeAgentCallbacks: []agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
					return word(says), ctx.State().Set("much", strings.Repeat("y", 250<<10))
				}}})
				f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "root", Model: once(calling("big", nil), toSub()), Tools: pools("big"), SubAgents: []agent.Agent{sub}})}})
				f.pool(declaration("big", "Big."), func(protocol.Envelope) protocol.Result {
					return object(`{"r":"` + strings.Repeat("z", 100<<10) + `"}`)
				})
				f.say("root", "s1", "hi")
				s := f.rests("root", "s1", 5*time.Minute)
				if s.Kind != protocol.StopDone || s.Problem == nil || s.Problem.Code != protocol.CodeTooLarge {
					t.Errorf("it ended as %+v", s)
				}
			})
		})
	}
}

// Plugins hear of the end of runs, and of nothing else.
func TestTheEndOfNoRunIsToldToNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		d := &diary{}
		p, err := plugin.New(plugin.Config{Name: "p",
			OnUserMessageCallback: func(_ agent.InvocationContext, c *genai.Content) (*genai.Content, error) {
				if c.Parts[0].Text == "no" {
					return nil, context.Canceled
				}
				return nil, nil
			},
			AfterRunCallback: func(agent.InvocationContext) { d.note("run ended") }})
		if err != nil {
			t.Fatal(err)
		}
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "root", Model: saysHello()})}, Plugins: []*plugin.Plugin{p}})
		f.say("root", "s1", "no")
		f.rests("root", "s1", time.Minute)
		f.pass(time.Second)
		if got := d.read(); len(got) != 0 {
			t.Errorf("told %v of a message that was refused", got)
		}
		f.say("root", "s1", "hi")
		f.pass(time.Second)
		f.rests("root", "s1", time.Minute)
		f.pass(time.Second)
		if got := d.read(); len(got) != 1 {
			t.Errorf("told %v of one run", got)
		}
	})
}

// Plugins are asked for all agents, also about the call of one that a newer coordinator does not have any more.
func TestPluginsAreAskedForAnAgentThatIsGone(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		p, err := plugin.New(plugin.Config{Name: "p", AfterToolCallback: func(ctx agent.Context, tl tool.Tool, _, _ map[string]any, _ error) (map[string]any, error) {
			return map[string]any{"hidden": tl.Name() + " of " + ctx.AgentName()}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		sub := f.agent(llmagent.Config{Name: "sub", Model: caller("slow"), Tools: pools("slow")})
		_, stop := f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "root", Model: handsOver("sub"), SubAgents: []agent.Agent{sub}})}, Plugins: []*plugin.Plugin{p}})
		answer := make(chan struct{})
		f.pool(declaration("slow", "Takes its time."), func(protocol.Envelope) protocol.Result {
			<-answer
			return object(`{"secret":1}`)
		})
		f.say("root", "s1", "hi")
		f.until(time.Second, "the call", func() bool { return f.speakers("root", "s1") == "root sub" })
		stop()
		f.start("c2", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "root", Model: saysHello()})}, Plugins: []*plugin.Plugin{p}})
		close(answer)
		f.until(time.Minute, "the end", func() bool { return f.done("root", "s1") })
		if got := strings.Join(f.answers("root", "s1"), " "); strings.Contains(got, "secret") || !strings.Contains(got, `{"hidden":"slow of sub"}`) {
			t.Errorf("the log has %s", got)
		}
	})
}
