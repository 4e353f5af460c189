package coordinator_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/plugin"
	"github.com/toolfabric/toolfabric/toolkit/session"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/exitlooptool"
)

func word(s string) *genai.Content { return genai.NewContentFromText(s, genai.RoleModel) }

// spoken is what agents said in a session, in order, and by whom.
func (f *fabric) spoken(app, session string) (lines []string) {
	for _, e := range f.log(app, session) {
		if t := e.Turn; t != nil {
			line := string(t.By)
			for _, raw := range [][]byte{t.Content, t.After} {
				if len(raw) > 0 {
					line += " " + string(raw)
				}
			}
			lines = append(lines, strings.NewReplacer(`{"parts":[{"text":"`, "", `"}],"role":"model"}`, "").Replace(line))
		}
	}
	return lines
}

// diary notes what was asked, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// notes is callbacks of all kinds that note who is asked and say nothing.
func (d *diary) agent(cfg llmagent.Config) llmagent.Config {
	for _, n := range []string{"1", "2"} {
		cfg.BeforeAgentCallbacks = append(cfg.BeforeAgentCallbacks, func(agent.Context) (*genai.Content, error) { d.note("agent beforeAgent%s", n); return nil, nil })
		cfg.AfterAgentCallbacks = append(cfg.AfterAgentCallbacks, func(agent.Context) (*genai.Content, error) { d.note("agent afterAgent%s", n); return nil, nil })
		cfg.BeforeModelCallbacks = append(cfg.BeforeModelCallbacks, func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) {
			d.note("agent beforeModel%s", n)
			return nil, nil
		})
		cfg.AfterModelCallbacks = append(cfg.AfterModelCallbacks, func(agent.Context, *model.LLMResponse, error) (*model.LLMResponse, error) {
			d.note("agent afterModel%s", n)
			return nil, nil
		})
		cfg.BeforeToolCallbacks = append(cfg.BeforeToolCallbacks, func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) {
			d.note("agent beforeTool%s", n)
			return nil, nil
		})
		cfg.AfterToolCallbacks = append(cfg.AfterToolCallbacks, func(agent.Context, tool.Tool, map[string]any, map[string]any, error) (map[string]any, error) {
			d.note("agent afterTool%s", n)
			return nil, nil
		})
		cfg.OnToolErrorCallbacks = append(cfg.OnToolErrorCallbacks, func(agent.Context, tool.Tool, map[string]any, error) (map[string]any, error) {
			d.note("agent onToolError%s", n)
			return nil, nil
		})
	}
	return cfg
}

func (d *diary) plugin(t *testing.T, name string) *plugin.Plugin {
	p, err := plugin.New(plugin.Config{
		Name: name,
		OnUserMessageCallback: func(agent.InvocationContext, *genai.Content) (*genai.Content, error) {
			d.note("%s onUser", name)
			return nil, nil
		},
		BeforeRunCallback:   func(agent.InvocationContext) (*genai.Content, error) { d.note("%s beforeRun", name); return nil, nil },
		AfterRunCallback:    func(agent.InvocationContext) { d.note("%s afterRun", name) },
		BeforeAgentCallback: func(agent.Context) (*genai.Content, error) { d.note("%s beforeAgent", name); return nil, nil },
		AfterAgentCallback:  func(agent.Context) (*genai.Content, error) { d.note("%s afterAgent", name); return nil, nil },
		BeforeModelCallback: func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) {
			d.note("%s beforeModel", name)
			return nil, nil
		},
		AfterModelCallback: func(agent.Context, *model.LLMResponse, error) (*model.LLMResponse, error) {
			d.note("%s afterModel", name)
			return nil, nil
		},
		OnModelErrorCallback: func(agent.Context, *model.LLMRequest, error) (*model.LLMResponse, error) {
			d.note("%s onModelError", name)
			return nil, nil
		},
		BeforeToolCallback: func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) {
			d.note("%s beforeTool", name)
			return nil, nil
		},
		AfterToolCallback: func(agent.Context, tool.Tool, map[string]any, map[string]any, error) (map[string]any, error) {
			d.note("%s afterTool", name)
			return nil, nil
		},
		OnToolErrorCallback: func(agent.Context, tool.Tool, map[string]any, error) (map[string]any, error) {
			d.note("%s onToolError", name)
			return nil, nil
		},
		CloseFunc: func() error { d.note("%s closes", name); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCallbacksAreAskedInADKsOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		d := &diary{}
		o := caller("echo")
		a := f.agent(d.agent(llmagent.Config{Name: "helper", Model: o, Tools: pools("echo")}))
		_, stop := f.start("c1", coordinator.Config{Agents: []agent.Agent{a}, Plugins: []*plugin.Plugin{d.plugin(t, "p"), d.plugin(t, "q")}})
		f.pool(declaration("echo", "Says it again."), func(protocol.Envelope) protocol.Result {
			return protocol.Result{Outcome: protocol.OutcomeFailed, Value: protocol.ErrorValue("no")}
		})
		f.say("helper", "s1", "hi")
		f.rests("helper", "s1", time.Minute)
		f.pass(time.Second)
		stop()
		step := func(name string) []string {
			return []string{"p " + name, "q " + name, "agent " + name + "1", "agent " + name + "2"}
		}
		want := slices.Concat([]string{"p onUser", "q onUser", "p beforeRun", "q beforeRun"}, step("beforeAgent"),
			step("beforeModel"), step("afterModel"), step("beforeTool"), step("onToolError"), step("afterTool"),
			step("beforeModel"), step("afterModel"), step("afterAgent"), []string{"p afterRun", "q afterRun", "p closes", "q closes"})
		if diff := cmp.Diff(want, d.read()); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
		if got := o.told(t); !slices.Equal(got, []string{`echo{"error":"no"}`}) {
			t.Errorf("the model is told %v", got)
		}
	})
}

// What agent callbacks make of a run.
func TestAgentCallbacks(t *testing.T) {
	says := func(s string) func(agent.Context) (*genai.Content, error) {
		return func(agent.Context) (*genai.Content, error) { return word(s), nil }
	}
	sets := func(key string) func(agent.Context) (*genai.Content, error) {
		return func(ctx agent.Context) (*genai.Content, error) { return nil, ctx.State().Set(key, "yes") }
	}
	fails := func(agent.Context) (*genai.Content, error) { return nil, errors.New("no") }
	panics := func(agent.Context) (*genai.Content, error) { panic("a secret") }
	never := func(agent.Context) (*genai.Content, error) { return nil, errors.New("not asked") }
	for _, c := range []struct {
		name     string
		cfg      llmagent.Config
		plugin   plugin.Config
		spoken   []string
		problem  string
		requests int
		set      map[string]string
	}{
		{name: "a content before ends the run", cfg: llmagent.Config{BeforeAgentCallbacks: []agent.BeforeAgentCallback{says("closed"), never}, AfterAgentCallbacks: []agent.AfterAgentCallback{never}},
			spoken: []string{"before_agent closed"}},
		{name: "a plugin's content ends the run", plugin: plugin.Config{BeforeRunCallback: func(agent.InvocationContext) (*genai.Content, error) { return word("no runs"), nil }, BeforeAgentCallback: never},
			spoken: []string{"before_agent no runs"}},
		{name: "state before is an event, and the instruction sees it", cfg: llmagent.Config{BeforeAgentCallbacks: []agent.BeforeAgentCallback{sets("polite")}, Instruction: "Polite: {polite}."},
			spoken: []string{"", " hello"}, requests: 1, set: map[string]string{"polite": `"yes"`}},
		{name: "a content after is said behind the answer", cfg: llmagent.Config{AfterAgentCallbacks: []agent.AfterAgentCallback{says("bye"), never}, OutputKey: "out"},
			spoken: []string{" hello bye"}, requests: 1, set: map[string]string{"out": `"hello"`}},
		{name: "state after is recorded", cfg: llmagent.Config{AfterAgentCallbacks: []agent.AfterAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
			v, err := ctx.State().Get("out")
			return nil, errors.Join(err, ctx.State().Set("copy", v))
		}}, OutputKey: "out"}, spoken: []string{" hello"}, requests: 1, set: map[string]string{"out": `"hello"`, "copy": `"hello"`}},
		{name: "an error before", cfg: llmagent.Config{BeforeAgentCallbacks: []agent.BeforeAgentCallback{fails}}, problem: "BeforeAgentCallbacks[0] of agent helper failed: no"},
		{name: "a panic before", cfg: llmagent.Config{BeforeAgentCallbacks: []agent.BeforeAgentCallback{panics}}, problem: "BeforeAgentCallbacks[0] of agent helper panicked; the coordinator's log has the stack"},
		{name: "an error after", cfg: llmagent.Config{AfterAgentCallbacks: []agent.AfterAgentCallback{fails}}, requests: 1, problem: "AfterAgentCallbacks[0] of agent helper failed: no"},
		{name: "a panic after", cfg: llmagent.Config{AfterAgentCallbacks: []agent.AfterAgentCallback{panics}}, requests: 1, problem: "AfterAgentCallbacks[0] of agent helper panicked; the coordinator's log has the stack"},
		{name: "a panic of a plugin", plugin: plugin.Config{BeforeRunCallback: panics}, problem: "BeforeRunCallback of plugin p panicked; the coordinator's log has the stack"},
		{name: "function calls are the model's", cfg: llmagent.Config{BeforeAgentCallbacks: []agent.BeforeAgentCallback{func(agent.Context) (*genai.Content, error) {
			return genai.NewContentFromFunctionCall("echo", nil, genai.RoleModel), nil
		}}}, problem: "BeforeAgentCallbacks[0] of agent helper failed: what it says needs text or data, and no function calls or responses"},
		{name: "there is nothing to ask about", cfg: llmagent.Config{BeforeAgentCallbacks: []agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
			return nil, ctx.RequestConfirmation("sure?", nil)
		}}}, problem: "there is no call to ask about: a confirmation is asked for by a tool or a BeforeToolCallback"},
		{name: "there is no such service", cfg: llmagent.Config{BeforeAgentCallbacks: []agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
			_, err := ctx.Artifacts().Load(ctx, "x")
			return nil, err
		}}}, problem: "artifacts: no such service is connected to this coordinator"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				o := saysHello()
				c.cfg.Name, c.cfg.Model, c.plugin.Name = "helper", o, "p"
				p, err := plugin.New(c.plugin)
				if err != nil {
					t.Fatal(err)
				}
				f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(c.cfg)}, Plugins: []*plugin.Plugin{p}})
				f.say("helper", "s1", "hi")
				s := f.rests("helper", "s1", time.Minute)
				problem := ""
				if s.Problem != nil {
					problem = s.Problem.Message
				}
				n, req := o.requests()
				if s.Kind != protocol.StopDone || problem != c.problem || n != c.requests {
					t.Fatalf("it ended as %s with %q, want %q; %d requests", s.Kind, problem, c.problem, n)
				}
				if diff := cmp.Diff(c.spoken, f.spoken("helper", "s1")); diff != "" {
					t.Errorf("said (-want +got):\n%s", diff)
				}
				if got := f.set("helper", "s1"); len(c.set)+len(got) > 0 && !cmp.Equal(c.set, got) {
					t.Errorf("set is %v, want %v", got, c.set)
				}
				if c.cfg.Instruction != "" && !strings.Contains(req.Config.SystemInstruction.Parts[0].Text, "Polite: yes.") {
					t.Errorf("the model is told %q", req.Config.SystemInstruction.Parts[0].Text)
				}
			})
		})
	}
}

func saysHello() *oracle { return says("hello", 0) }

// The callbacks before an agent are asked once for a run, also when it parks or goes on elsewhere, and again for the next run.
func TestARunEntersItsAgentOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		d := &diary{}
		cfg := llmagent.Config{Name: "helper", Model: caller("echo"), Tools: pools("echo"),
			BeforeAgentCallbacks: []agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
				d.note("enters %s", ctx.UserContent().Parts[0].Text)
				return nil, nil
			}}}
		a := []agent.Agent{f.agent(cfg)}
		f.start("c1", coordinator.Config{Agents: a})
		decl := declaration("echo", "Says it again.")
		decl.Confirm = true
		f.pool(decl, func(protocol.Envelope) protocol.Result { return object(`{"n":1}`) })
		f.say("helper", "s1", "one")
		f.rests("helper", "s1", time.Minute)
		f.w.Kill("c1")
		f.start("c2", coordinator.Config{Agents: a})
		f.decide("helper", "s1", f.question("helper", "s1").ID, `{"confirmed":true}`)
		f.until(time.Minute, "the end", func() bool { s := f.stopped("helper", "s1"); return s != nil && s.Kind == protocol.StopDone })
		f.say("helper", "s1", "two")
		f.until(time.Minute, "another entry", func() bool { return len(d.read()) > 1 })
		if got := d.read(); !slices.Equal(got, []string{"enters one", "enters two"}) {
			t.Errorf("asked: %v", got)
		}
	})
}

// A coordinator that dies between its callbacks and the append has said nothing.
func TestCallbacksOfADeadCoordinatorCountForNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		asked := make(chan struct{}, 10)
		cfg := llmagent.Config{Name: "helper", Model: saysHello()}
		cfg.BeforeModelCallbacks = []llmagent.BeforeModelCallback{func(ctx agent.Context, _ *model.LLMRequest) (*model.LLMResponse, error) {
			asked <- struct{}{}
			<-ctx.Done()
			return answering("of the first"), ctx.State().Set("who", "first")
		}}
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(cfg)}})
		f.say("helper", "s1", "hi")
		<-asked
		f.w.Kill("c1")
		cfg.BeforeModelCallbacks = []llmagent.BeforeModelCallback{func(ctx agent.Context, _ *model.LLMRequest) (*model.LLMResponse, error) {
			return answering("of the second"), ctx.State().Set("who", "second")
		}}
		f.start("c2", coordinator.Config{Agents: []agent.Agent{f.agent(cfg)}})
		f.rests("helper", "s1", time.Minute)
		if got, who := f.spoken("helper", "s1"), f.set("helper", "s1")["who"]; !slices.Equal(got, []string{"before_model of the second"}) || who != `"second"` {
			t.Errorf("said %v, set by %s", got, who)
		}
	})
}

func TestAPluginChangesAndRefusesMessages(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		o := saysHello()
		p, err := plugin.New(plugin.Config{Name: "p", OnUserMessageCallback: func(_ agent.InvocationContext, c *genai.Content) (*genai.Content, error) {
			switch text := c.Parts[0].Text; text {
			case "panic":
				panic("a secret")
			case "secret":
				return nil, errors.New("no secrets")
			default:
				c.Parts[0].Text = "scribbled"
				return genai.NewContentFromText(strings.ToUpper(text), genai.RoleUser), nil
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: o})}, Plugins: []*plugin.Plugin{p}})
		last := func() protocol.FoldedInput {
			var in protocol.FoldedInput
			for _, e := range f.log("helper", "s1") {
				for _, i := range e.Inputs {
					in = i
				}
			}
			return in
		}
		for _, c := range []struct{ says, content, problem string }{
			{"hi", `{"parts":[{"text":"HI"}],"role":"user"}`, ""},
			{"secret", "", "OnUserMessageCallback of plugin p failed: no secrets"},
			{"panic", "", "OnUserMessageCallback of plugin p panicked; the coordinator's log has the stack"},
			{"more", `{"parts":[{"text":"MORE"}],"role":"user"}`, ""},
		} {
			id := f.say("helper", "s1", c.says)
			f.until(time.Minute, "the fold of "+c.says, func() bool { return last().ID == id })
			f.rests("helper", "s1", time.Minute)
			in := last()
			problem := ""
			if in.Refused != nil {
				problem = in.Refused.Message
			}
			if string(in.Content) != c.content || problem != c.problem {
				t.Errorf("%s: folded as %s, refused for %q", c.says, in.Content, problem)
			}
		}
		if n, req := o.requests(); n != 2 || req.Contents[2].Parts[0].Text != "MORE" {
			t.Errorf("%d requests", n)
		}
		f.pass(time.Minute)
		if left := f.w.Messages(f.names.Timers()); len(left) != 0 {
			t.Errorf("%d timers are left", len(left))
		}
	})
}

func TestPluginsThatCannotHoldAreRefused(t *testing.T) {
	made := func(cfg plugin.Config) *plugin.Plugin {
		p, err := plugin.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, c := range map[string]struct {
		plugins []*plugin.Plugin
		code    protocol.Code
		says    string
	}{
		"nil":       {[]*plugin.Plugin{nil}, protocol.CodeUsage, "nil"},
		"duplicate": {[]*plugin.Plugin{made(plugin.Config{Name: "p"}), made(plugin.Config{Name: "p"})}, protocol.CodeUsage, `"p"`},
		"events": {[]*plugin.Plugin{made(plugin.Config{Name: "p", OnEventCallback: func(agent.InvocationContext, *session.Event) (*session.Event, error) { return nil, nil }})},
			protocol.CodeUnsupported, "projection"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				_, err := coordinator.New(coordinator.Config{Bus: f.client, Names: f.names, Plugins: c.plugins})
				if protocol.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// Calls may end a run: one that its turn answers, and one of a worker that wants no summary. The agent is left all the same.
func TestAnAgentIsLeftWhenCallsEndTheRun(t *testing.T) {
	bye := func(ctx agent.Context) (*genai.Content, error) {
		return genai.NewContentFromText("bye", genai.RoleModel), ctx.State().Set("left", ctx.AgentName())
	}
	calls := func(name string) string {
		return ` {"parts":[{"functionCall":{"name":"` + name + `"}}],"role":"model"}`
	}
	for _, c := range []struct {
		name    string
		call    *genai.Part
		after   agent.AfterAgentCallback
		spoken  []string
		problem string
		set     string
	}{
		{name: "exit_loop", call: calling(exitlooptool.Name, nil), after: bye, spoken: []string{calls(exitlooptool.Name), "after_agent bye"}, set: `"helper"`},
		{name: "a tool", call: calling("quiet", nil), after: bye, spoken: []string{calls("quiet"), "after_agent bye"}, set: `"helper"`},
		{name: "nothing said", call: calling("quiet", nil), after: func(agent.Context) (*genai.Content, error) { return nil, nil }, spoken: []string{calls("quiet")}},
		{name: "an error", call: calling(exitlooptool.Name, nil), after: func(agent.Context) (*genai.Content, error) { return nil, errors.New("no") }, spoken: []string{calls(exitlooptool.Name)}, problem: "AfterAgentCallbacks[0] of agent helper failed: no"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				exit, err := exitlooptool.New()
				if err != nil {
					t.Fatal(err)
				}
				asked := 0
				o := once(c.call)
				f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: o, Tools: append(pools("quiet"), exit),
					AfterAgentCallbacks: []agent.AfterAgentCallback{func(ctx agent.Context) (*genai.Content, error) { asked++; return c.after(ctx) }}})}})
				f.pool(declaration("quiet", "Says nothing."), func(protocol.Envelope) protocol.Result {
					r := object(`{"n":1}`)
					r.Actions = &protocol.Actions{SkipSummarization: true}
					return r
				})
				f.say("helper", "s1", "hi")
				s := f.rests("helper", "s1", time.Minute)
				problem := ""
				if s.Problem != nil {
					problem = s.Problem.Message
				}
				if n, _ := o.requests(); n != 1 || asked != 1 || s.Kind != protocol.StopDone || problem != c.problem {
					t.Errorf("%d requests, asked %d times; it ended as %s with %q", n, asked, s.Kind, problem)
				}
				if diff := cmp.Diff(c.spoken, f.spoken("helper", "s1")); diff != "" {
					t.Errorf("said (-want +got):\n%s", diff)
				}
				if got := f.set("helper", "s1")["left"]; got != c.set {
					t.Errorf("left is %q, want %q", got, c.set)
				}
			})
		})
	}
}
