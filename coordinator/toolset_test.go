package coordinator_test

import (
	"errors"
	"log/slog"
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
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// set is a toolset made of functions.
type set struct {
	name string
	list func(agent.ReadonlyContext) ([]tool.Tool, error)
}

func (s set) Name() string                                         { return s.name }
func (s set) Tools(ctx agent.ReadonlyContext) ([]tool.Tool, error) { return s.list(ctx) }

// shaping is a toolset that shapes requests.
type shaping struct {
	set
	shape func(tool.Context, *model.LLMRequest) error
}

func (s shaping) ProcessRequest(ctx tool.Context, req *model.LLMRequest) error {
	return s.shape(ctx, req)
}

// shaper is a tool that only shapes requests.
type shaper struct {
	tool.Tool
	shape func(tool.Context, *model.LLMRequest) error
}

func (s shaper) ProcessRequest(ctx tool.Context, req *model.LLMRequest) error {
	return s.shape(ctx, req)
}

func of(names ...string) func(agent.ReadonlyContext) ([]tool.Tool, error) {
	return func(agent.ReadonlyContext) ([]tool.Tool, error) { return pools(names...), nil }
}

// declared is the names of the tools in a request.
func declared(req *model.LLMRequest) (names []string) {
	for _, t := range req.Config.Tools {
		for _, d := range t.FunctionDeclarations {
			names = append(names, d.Name)
		}
	}
	return names
}

// What a set that is broken takes with it: itself, and nothing else.
func TestToolsetsAreListedForARun(t *testing.T) {
	var hang chan struct{} // of the bubble
	for _, c := range []struct {
		name  string
		sets  []tool.Toolset
		want  []string
		warns []string
	}{
		{name: "the registry knows", sets: []tool.Toolset{set{"s", of("two", "unheard")}}, want: []string{"one", "two"}},
		{name: "filtered", sets: []tool.Toolset{tool.FilterToolset(set{"s", of("two", "three")}, tool.AllowedToolsPredicate([]string{"three"}))}, want: []string{"one", "three"}},
		{name: "an error", sets: []tool.Toolset{set{"broken", func(agent.ReadonlyContext) ([]tool.Tool, error) { return nil, errors.New("down") }}, set{"s", of("two")}},
			want: []string{"one", "two"}, warns: []string{"toolset=broken", "error=down"}},
		{name: "a panic", sets: []tool.Toolset{set{"broken", func(agent.ReadonlyContext) ([]tool.Tool, error) { panic("a bug") }}, set{"s", of("two")}},
			want: []string{"one", "two"}, warns: []string{"toolset=broken", "panicked"}},
		{name: "a nil tool", sets: []tool.Toolset{set{"broken", func(agent.ReadonlyContext) ([]tool.Tool, error) { return []tool.Tool{nil, tool.Pool("two")}, nil }}},
			want: []string{"one", "two"}, warns: []string{"toolset=broken", "lists a nil"}},
		{name: "an illegal name", sets: []tool.Toolset{set{"s", of("not/legal", "two")}}, want: []string{tool.Alias("not/legal"), "one", "two"}},
		{name: "silence", sets: []tool.Toolset{set{"silent", func(agent.ReadonlyContext) ([]tool.Tool, error) { <-hang; return nil, nil }}, set{"s", of("two")}},
			want: []string{"one", "two"}, warns: []string{"toolset=silent", "did not answer within 10s"}},
		{name: "a clash with the agent", sets: []tool.Toolset{set{"greedy", of("one", "two")}}, want: []string{"one", "two"},
			warns: []string{"two tools are named one", "one is of Tools[0] of agent helper, one of toolset greedy"}},
		{name: "a clash of sets", sets: []tool.Toolset{set{"s", of("two")}, set{"late", of("two", "three")}}, want: []string{"one", "three", "two"},
			warns: []string{"two tools are named two", "one is of toolset s, one of toolset late"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				var said strings.Builder
				hang = make(chan struct{})
				defer close(hang)
				o := saysHello()
				f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: o, Tools: pools("one"), Toolsets: c.sets})},
					Logger: slog.New(slog.NewTextHandler(&said, nil))})
				for _, name := range []string{"one", "two", "three", tool.Alias("not/legal")} {
					f.beat("w", declaration(name, "A tool."))
				}
				f.pass(time.Second)
				f.say("helper", "s1", "hi")
				if s := f.rests("helper", "s1", time.Minute); s.Kind != protocol.StopDone || s.Problem != nil {
					t.Fatalf("it ended as %+v", s)
				}
				_, req := o.requests()
				if got := declared(req); !slices.Equal(got, c.want) {
					t.Errorf("declared is %v, want %v", got, c.want)
				}
				for _, w := range c.warns {
					if !strings.Contains(said.String(), w) {
						t.Errorf("the log lacks %q:\n%s", w, said.String())
					}
				}
				if len(c.warns) == 0 && strings.Contains(said.String(), "WARN") {
					t.Errorf("the log warns:\n%s", said.String())
				}
			})
		})
	}
}

// One run lists a set once; a set that failed is asked again for the next turn.
func TestASetIsListedOnceForARun(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		asked, failed := 0, 0
		sound := set{"sound", func(ctx agent.ReadonlyContext) ([]tool.Tool, error) {
			asked++
			if ctx.SessionID() != "s1" || ctx.UserContent().Parts[0].Text != "hi" {
				t.Errorf("it is asked in session %s", ctx.SessionID())
			}
			return pools("echo"), nil
		}}
		shaky := set{"shaky", func(agent.ReadonlyContext) ([]tool.Tool, error) {
			if failed++; failed == 1 {
				return nil, errors.New("down")
			}
			return pools("late"), nil
		}}
		o := caller("echo")
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: o, Toolsets: []tool.Toolset{sound, shaky}})}})
		f.beat("w", declaration("late", "A tool."))
		f.pool(declaration("echo", "Says it again."), func(protocol.Envelope) protocol.Result { return object(`{"n":1}`) })
		f.say("helper", "s1", "hi")
		f.rests("helper", "s1", time.Minute)
		_, req := o.requests()
		if got := declared(req); asked != 1 || failed != 2 || !slices.Equal(got, []string{"echo", "late"}) {
			t.Errorf("the sets were asked %d and %d times; the second request declares %v", asked, failed, got)
		}
	})
}

func TestToolsAndThenToolsetsShapeRequests(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		var order []string
		adds := func(name string) func(tool.Context, *model.LLMRequest) error {
			return func(ctx tool.Context, req *model.LLMRequest) error {
				order = append(order, name)
				req.Contents[0].Parts = append(req.Contents[0].Parts, &genai.Part{Text: name})
				return ctx.State().Set("by", name)
			}
		}
		o := saysHello()
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: o,
			Tools: []tool.Tool{shaper{tool.Pool("only_shapes"), adds("tool")}, tool.Pool("one")},
			Toolsets: []tool.Toolset{shaping{set{"s", func(agent.ReadonlyContext) ([]tool.Tool, error) {
				return []tool.Tool{shaper{tool.Pool("also_shapes"), adds("listed")}}, nil
			}}, adds("set")}, shaping{set{"lists nothing", func(agent.ReadonlyContext) ([]tool.Tool, error) { return nil, nil }}, adds("set without tools")}},
			BeforeModelCallbacks: []llmagent.BeforeModelCallback{func(_ agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
				order = append(order, "callback")
				if req.Tools["one"] == nil {
					t.Error("the callback does not see the agent's tools")
				}
				return nil, nil
			}},
		})}})
		for _, name := range []string{"one", "only_shapes", "also_shapes"} {
			f.beat("w", declaration(name, "A tool."))
		}
		f.pass(time.Second)
		f.say("helper", "s1", "hi")
		f.rests("helper", "s1", time.Minute)
		if want := []string{"tool", "listed", "set", "set without tools", "callback"}; !slices.Equal(order, want) {
			t.Errorf("asked in the order %v, want %v", order, want)
		}
		_, req := o.requests()
		if got := declared(req); !slices.Equal(got, []string{"one"}) || len(req.Contents[0].Parts) != 5 {
			t.Errorf("declared is %v, the message has %d parts", got, len(req.Contents[0].Parts))
		}
		if got := f.set("helper", "s1")["by"]; got != `"set without tools"` {
			t.Errorf("by is %s", got)
		}
	})
}

func TestShapingThatFailsEndsTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		shape   func(tool.Context, *model.LLMRequest) error
		problem string
	}{
		"error": {func(tool.Context, *model.LLMRequest) error { return errors.New("no examples") }, "ProcessRequest of tool few_shot failed: no examples"},
		"panic": {func(tool.Context, *model.LLMRequest) error { panic("a secret") }, "ProcessRequest of tool few_shot panicked; the coordinator's log has the stack"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				o := saysHello()
				f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "helper", Model: o, Tools: []tool.Tool{shaper{tool.Pool("few_shot"), c.shape}}})}})
				f.say("helper", "s1", "hi")
				s := f.rests("helper", "s1", time.Minute)
				if n, _ := o.requests(); s.Problem == nil || s.Problem.Message != c.problem || n != 0 {
					t.Errorf("it ended as %+v after %d requests", s.Problem, n)
				}
			})
		})
	}
}
