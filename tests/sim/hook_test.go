package sim_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/sim"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/plugin"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// onlookers are callbacks of every kind that look on for a while and change nothing: all that holds of a run without them
// holds of one with them.
type onlookers struct {
	f    *fabric
	life string
	bus  *sim.Bus

	mu   sync.Mutex
	seen map[string]int
}

// look takes a while, which depends on what it looks at and how often this process did.
func (o *onlookers) look(ctx agent.Context, at string) error {
	return o.pause(ctx, fmt.Sprint(at, " of ", ctx.AgentName(), " in ", ctx.SessionID(), " ", ctx.FunctionCallID()))
}

func (o *onlookers) pause(ctx context.Context, at string) error {
	o.mu.Lock()
	o.seen[at]++
	chance := o.f.chance(fmt.Sprint(o.life, " looks at ", at, " ", o.seen[at]))
	o.mu.Unlock()
	if chance.IntN(2) == 0 {
		return nil
	}
	return natswire.Sleep(ctx, o.bus.Clock(), time.Duration(chance.ExpFloat64()*float64(300*time.Millisecond)))
}

func (o *onlookers) watch(cfg *llmagent.Config) {
	cfg.BeforeAgentCallbacks = []agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
		if err := o.look(ctx, "the beginning"); err != nil {
			return nil, err
		}
		return nil, ctx.State().Set("temp:entered", ctx.AgentName())
	}}
	cfg.AfterAgentCallbacks = []agent.AfterAgentCallback{func(ctx agent.Context) (*genai.Content, error) { return nil, o.look(ctx, "the end") }}
	cfg.BeforeModelCallbacks = []llmagent.BeforeModelCallback{func(ctx agent.Context, _ *model.LLMRequest) (*model.LLMResponse, error) {
		return nil, o.look(ctx, "a request")
	}}
	cfg.AfterModelCallbacks = []llmagent.AfterModelCallback{func(ctx agent.Context, _ *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		return nil, o.look(ctx, "an answer")
	}}
	cfg.OnModelErrorCallbacks = []llmagent.OnModelErrorCallback{func(ctx agent.Context, _ *model.LLMRequest, _ error) (*model.LLMResponse, error) {
		return nil, o.look(ctx, "a model's error")
	}}
	cfg.BeforeToolCallbacks = []llmagent.BeforeToolCallback{func(ctx agent.Context, _ tool.Tool, _ map[string]any) (map[string]any, error) {
		return nil, o.look(ctx, "a call")
	}}
	cfg.AfterToolCallbacks = []llmagent.AfterToolCallback{func(ctx agent.Context, _ tool.Tool, _, _ map[string]any, _ error) (map[string]any, error) {
		return nil, o.look(ctx, "a result")
	}}
	cfg.OnToolErrorCallbacks = []llmagent.OnToolErrorCallback{func(ctx agent.Context, _ tool.Tool, _ map[string]any, _ error) (map[string]any, error) {
		return nil, o.look(ctx, "a call's error")
	}}
}

func (o *onlookers) plugin() (*plugin.Plugin, error) {
	return plugin.New(plugin.Config{
		Name: "onlooker",
		OnUserMessageCallback: func(ctx agent.InvocationContext, _ *genai.Content) (*genai.Content, error) {
			return nil, o.pause(ctx, "a message in "+ctx.SessionID())
		},
		BeforeRunCallback: func(ctx agent.InvocationContext) (*genai.Content, error) {
			return nil, o.pause(ctx, "a run in "+ctx.SessionID())
		},
		AfterRunCallback: func(agent.InvocationContext) {},
	})
}
