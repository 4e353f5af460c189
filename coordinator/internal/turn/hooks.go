package turn

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/plugin"
)

// Hooks are the callbacks that are asked for an agent, those of plugins before its own. A nil *Hooks has none.
type Hooks struct {
	userMessage   []hook[plugin.OnUserMessageCallback]
	beforeRun     []hook[plugin.BeforeRunCallback]
	afterRun      []hook[plugin.AfterRunCallback]
	beforeAgent   []hook[agent.BeforeAgentCallback]
	afterAgent    []hook[agent.AfterAgentCallback]
	beforeModel   []hook[llmagent.BeforeModelCallback]
	afterModel    []hook[llmagent.AfterModelCallback]
	onModelError  []hook[llmagent.OnModelErrorCallback]
	beforeTool    []hook[llmagent.BeforeToolCallback]
	afterTool     []hook[llmagent.AfterToolCallback]
	onToolError   []hook[llmagent.OnToolErrorCallback]
	shapesRequest bool // a tool or a toolset is a RequestProcessor, or may be one
}

// hook is a callback and what it is called in logs and problems.
type hook[F any] struct {
	name string
	call F
}

// NewHooks collects the callbacks of a, nil for an agent that is not known here, and of plugins; nil when there are none.
func NewHooks(a *llmagent.LLMAgent, plugins []*plugin.Plugin) *Hooks {
	cfg := llmagent.Config{}
	if a != nil {
		cfg = a.Config()
	}
	h := &Hooks{
		userMessage:  gather(plugins, (*plugin.Plugin).OnUserMessageCallback, "OnUserMessageCallback", "", nil),
		beforeRun:    gather(plugins, (*plugin.Plugin).BeforeRunCallback, "BeforeRunCallback", "", nil),
		afterRun:     gather(plugins, (*plugin.Plugin).AfterRunCallback, "AfterRunCallback", "", nil),
		beforeAgent:  gather(plugins, (*plugin.Plugin).BeforeAgentCallback, "BeforeAgentCallback", cfg.Name, cfg.BeforeAgentCallbacks),
		afterAgent:   gather(plugins, (*plugin.Plugin).AfterAgentCallback, "AfterAgentCallback", cfg.Name, cfg.AfterAgentCallbacks),
		beforeModel:  gather(plugins, (*plugin.Plugin).BeforeModelCallback, "BeforeModelCallback", cfg.Name, cfg.BeforeModelCallbacks),
		afterModel:   gather(plugins, (*plugin.Plugin).AfterModelCallback, "AfterModelCallback", cfg.Name, cfg.AfterModelCallbacks),
		onModelError: gather(plugins, (*plugin.Plugin).OnModelErrorCallback, "OnModelErrorCallback", cfg.Name, cfg.OnModelErrorCallbacks),
		beforeTool:   gather(plugins, (*plugin.Plugin).BeforeToolCallback, "BeforeToolCallback", cfg.Name, cfg.BeforeToolCallbacks),
		afterTool:    gather(plugins, (*plugin.Plugin).AfterToolCallback, "AfterToolCallback", cfg.Name, cfg.AfterToolCallbacks),
		onToolError:  gather(plugins, (*plugin.Plugin).OnToolErrorCallback, "OnToolErrorCallback", cfg.Name, cfg.OnToolErrorCallbacks),
	}
	h.shapesRequest = len(cfg.Toolsets) > 0 || slices.ContainsFunc(cfg.Tools, processes)
	if reflect.DeepEqual(h, &Hooks{}) {
		return nil
	}
	return h
}

// gather lists callbacks of one kind in the order in which they are asked.
func gather[F any](plugins []*plugin.Plugin, of func(*plugin.Plugin) F, kind, owner string, own []F) []hook[F] {
	var all []hook[F]
	for _, p := range plugins {
		if f := of(p); !reflect.ValueOf(f).IsNil() {
			all = append(all, hook[F]{kind + " of plugin " + p.Name(), f})
		}
	}
	for i, f := range own {
		all = append(all, hook[F]{fmt.Sprintf("%ss[%d] of agent %s", kind, i, owner), f})
	}
	return all
}

// Messages reports whether a user's message is shown to somebody before it is part of the session.
func (h *Hooks) Messages() bool { return h != nil && len(h.userMessage) > 0 }

// Enters reports whether somebody is asked before a run goes into the agent.
func (h *Hooks) Enters() bool { return h != nil && len(h.beforeRun)+len(h.beforeAgent) > 0 }

// Leaves reports whether somebody is asked when a run is at the agent's end.
func (h *Hooks) Leaves() bool { return h != nil && len(h.afterAgent) > 0 }

// Ends reports whether somebody is told of a run's end.
func (h *Hooks) Ends() bool { return h != nil && len(h.afterRun) > 0 }

// Answers reports whether a call's answer is shown to somebody before it counts.
func (h *Hooks) Answers() bool { return h != nil && len(h.afterTool)+len(h.onToolError) > 0 }

// Decisions reports whether somebody has a say in what becomes of a call before it runs: when it is judged, and again when
// people have decided about it.
func (h *Hooks) Decisions() bool { return h != nil && (len(h.beforeTool) > 0 || h.Answers()) }

// Withholds reports whether an answer of the model may still change when all of it is there.
func (h *Hooks) Withholds() bool { return h != nil && len(h.afterModel) > 0 }
