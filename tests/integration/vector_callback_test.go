package integration

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

// withCallbacks makes an agent of some tools and what change does to it.
func withCallbacks(t *testing.T, name string, llm model.LLM, change func(*llmagent.Config), tools ...string) agent.Agent {
	t.Helper()
	cfg := llmagent.Config{Name: name, Model: llm, Instruction: "Use the tools."}
	for _, tl := range tools {
		cfg.Tools = append(cfg.Tools, tool.Pool(tl))
	}
	change(&cfg)
	a, err := llmagent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestVectorV10ACallbackAsks(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(oneTrip), nil)
	asked := make(chan bool, 10)
	f.coordinate(withCallbacks(t, "v", p.llm, func(cfg *llmagent.Config) {
		cfg.BeforeToolCallbacks = []llmagent.BeforeToolCallback{func(ctx agent.Context, tl tool.Tool, args map[string]any) (map[string]any, error) {
			word := ctx.ToolConfirmation()
			asked <- word != nil
			if word != nil {
				return nil, ctx.State().Set("agreed", word.Payload)
			}
			return map[string]any{"status": "held"}, ctx.RequestConfirmation("may I use "+tl.Name()+"?", map[string]any{"amount": 3})
		}}
	}, "spend"))
	var runs atomic.Int32
	f.work(mapped(t, functiontool.Config{Name: "spend"}, func(ctx tool.Context, _ map[string]any) (map[string]any, error) {
		runs.Add(1)
		agreed, err := ctx.State().Get("agreed")
		return map[string]any{"spent": ctx.ToolConfirmation().Payload, "agreed": agreed}, err
	}))
	r := f.send(t.Context(), "v", "", "go")
	f.untilParked("v", r.Session)
	v10 := []string{
		"user: T(go)", "v: FC(spend)", `v: FR(spend: {"status":"held"}) asks:1 skip`, `v: W(spend, may I use spend?, {"amount":3}) long:1`,
	}
	f.wantStream("v", r.Session, v10...)
	if receive(t, "first question of the callback", asked) {
		t.Error("the callback saw a decision before there was one")
	}
	question := f.open("v", r.Session, 1)[0].Confirmation
	if question.Origin != protocol.OriginCallback || runs.Load() != 0 {
		t.Errorf("the question is of %s; the tool ran %d times", question.Origin, runs.Load())
	}
	f.wantReceipt("v", r.Session, question.ID, "ann", `{"confirmed":true,"payload":{"amount":5}}`, "", "")
	contains(t, "the answer", f.wait(r).Text, "ok")
	if !receive(t, "second question of the callback", asked) || runs.Load() != 1 {
		t.Errorf("the callback did not see the decision, or the tool ran %d times", runs.Load())
	}
	f.wantStream("v", r.Session, append(v10, `user: D({"confirmed":true,"payload":{"amount":5}})`,
		`v: FR(spend: {"agreed":{"amount":5},"spent":{"amount":5}})`, "v: T(ok)")...)
	p.wantCount(2)
}

func TestVectorV10ARefusedCallbackKeepsItsCallFromRunning(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(oneTrip), nil)
	f.coordinate(withCallbacks(t, "v", p.llm, func(cfg *llmagent.Config) {
		cfg.BeforeToolCallbacks = []llmagent.BeforeToolCallback{func(ctx agent.Context, _ tool.Tool, _ map[string]any) (map[string]any, error) {
			if ctx.ToolConfirmation() == nil {
				return nil, ctx.RequestConfirmation("sure?", nil)
			}
			return nil, nil // also for a refusal: nothing runs all the same
		}}
	}, "spend"))
	var runs atomic.Int32
	f.work(mapped(t, functiontool.Config{Name: "spend"}, payloadOf(&runs)))
	r := f.send(t.Context(), "v", "", "go")
	question := f.open("v", r.Session, 1)[0].Confirmation.ID
	f.wantReceipt("v", r.Session, question, "ann", no, "", "")
	contains(t, "the answer", f.wait(r).Text, "ok")
	f.wantStream("v", r.Session, "user: T(go)", "v: FC(spend)", "v: "+asks("spend")+" asks:1 skip", "v: W(spend, sure?) long:1",
		`user: D({"confirmed":false})`, "v: "+rejected("spend"), "v: T(ok)")
	if runs.Load() != 0 {
		t.Errorf("the tool ran %d times", runs.Load())
	}
}

// Whoever asks, the flag, the tool or a function of the arguments: what a callback makes of the error is shown, and the
// question stays.
func TestVectorV11ACallbackSwallowsAQuestion(t *testing.T) {
	t.Parallel()
	for name, tl := range map[string]func(*testing.T) tool.Tool{
		"flag": func(t *testing.T) tool.Tool {
			return mapped(t, functiontool.Config{Name: "gated", RequireConfirmation: true}, func(tool.Context, map[string]any) (map[string]any, error) {
				return map[string]any{"ran": true}, nil
			})
		},
		"provider": func(t *testing.T) tool.Tool {
			return mapped(t, functiontool.Config{Name: "gated", RequireConfirmationProvider: func(map[string]any) bool { return true }}, func(tool.Context, map[string]any) (map[string]any, error) {
				return map[string]any{"ran": true}, nil
			})
		},
		"tool": func(t *testing.T) tool.Tool {
			return mapped(t, functiontool.Config{Name: "gated"}, func(ctx tool.Context, _ map[string]any) (map[string]any, error) {
				if ctx.ToolConfirmation() == nil {
					return nil, errors.Join(ctx.RequestConfirmation(toolconfirmation.Hint("gated"), nil), tool.ErrConfirmationRequired)
				}
				return map[string]any{"ran": true}, nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFabric(t)
			p := provide(t, []byte(oneGated), nil)
			f.coordinate(withCallbacks(t, "v", p.llm, func(cfg *llmagent.Config) {
				cfg.OnToolErrorCallbacks = []llmagent.OnToolErrorCallback{func(_ agent.Context, _ tool.Tool, _ map[string]any, err error) (map[string]any, error) {
					if name != "tool" && !errors.Is(err, tool.ErrConfirmationRequired) {
						t.Errorf("the callback is told %v", err)
					}
					return map[string]any{"swallowed": true}, nil
				}}
			}, "gated"))
			f.work(tl(t))
			r := f.send(t.Context(), "v", "", "go")
			f.untilParked("v", r.Session)
			v11 := []string{"user: T(go)", "v: FC(gated)", `v: FR(gated: {"swallowed":true}) asks:1 skip`, "v: W(gated) long:1"}
			f.wantStream("v", r.Session, v11...)
			p.wantCount(1)
			f.wantReceipt("v", r.Session, f.open("v", r.Session, 1)[0].Confirmation.ID, "ann", yes, "", "")
			contains(t, "the answer", f.wait(r).Text, "ok")
			f.wantStream("v", r.Session, append(v11, `user: D({"confirmed":true})`, `v: FR(gated: {"ran":true})`, "v: T(ok)")...)
		})
	}
}
