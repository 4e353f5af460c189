package coordinator

import (
	"context"
	"encoding/json"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/coordinator/internal/turn"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/plugin"
)

// callbackTime is how long callbacks may take over one step that no model request is part of. One that takes longer has
// failed, and is left behind.
const callbackTime = time.Minute

func checkPlugins(plugins []*plugin.Plugin) error {
	seen := map[string]bool{}
	for _, p := range plugins {
		switch {
		case p == nil:
			return protocol.Errorf(protocol.CodeUsage, "coordinator: a plugin is nil")
		case seen[p.Name()]:
			return protocol.Errorf(protocol.CodeUsage, "coordinator: two plugins are named %q: a plugin is asked once", p.Name())
		case p.OnEventCallback() != nil:
			return protocol.Errorf(protocol.CodeUnsupported, "plugin %q: events are a projection of the session's log that nobody can change, so OnEventCallback would not hold; change a step with OnUserMessageCallback, AfterModelCallback or AfterToolCallback, and look at events with coordinator/client", p.Name())
		}
		seen[p.Name()] = true
	}
	return nil
}

func (c *Coordinator) closePlugins() {
	for _, p := range c.cfg.Plugins {
		func() {
			defer c.contain("the end of plugin " + p.Name())
			if err := p.Close(); err != nil {
				c.cfg.Logger.Warn("a plugin did not close", "plugin", p.Name(), "error", err)
			}
		}()
	}
}

// hook notes the callbacks of an app's agents.
func (c *Coordinator) hook(app string, a agent.Agent) {
	if llm, ok := a.(*llmagent.LLMAgent); ok {
		if h := turn.NewHooks(llm, c.cfg.Plugins); h != nil {
			c.hooks[llm] = h
			c.hooked[app] = c.hooked[app] || h.Answers()
		}
	}
	for _, sub := range a.SubAgents() {
		c.hook(app, sub)
	}
}

// hooks are the callbacks for the agent of that name in the session's app, the root for an empty name; nil for none. For one
// that the app does not have any more, plugins are asked.
func (s *session) hooks(name string) *turn.Hooks {
	tree := s.c.agents[s.key.app]
	if tree == nil || len(s.c.hooks) == 0 {
		return nil
	}
	return s.c.hooks[tree.Agent(name)]
}

// moment is a step at the live end of the log, for the code of an agent; nil when it has none.
func (s *session) moment(name string, h *turn.Hooks, message *genai.Content) *turn.Moment {
	if h == nil {
		return nil
	}
	if name == "" {
		name = s.key.app
	}
	return &turn.Moment{Hooks: h, Agent: name, Run: s.scene(), Message: message, Logger: s.c.cfg.Logger, Tools: s.drive.tools[name], Tree: s.c.agents[s.key.app]}
}

// scene is where code of an agent runs.
func (s *session) scene() turn.Run {
	return turn.Run{App: s.key.app, User: s.state.User, Session: s.key.session, Invocation: s.state.Adoption, State: s.state.View()}
}

// room is how many bytes of state may still be set.
func room(state map[string]json.RawMessage) int {
	n := fold.MaxValues
	for k, v := range state {
		n -= len(k) + len(v)
	}
	return n
}

// tellEnd tells plugins that a run has ended.
func (s *session) tellEnd() {
	h := s.hooks("")
	if !h.Ends() || !s.drive.ran || s.state.Stopped != protocol.StopDone && s.state.Stopped != protocol.StopCancelled {
		return
	}
	m := s.moment("", h, nil)
	s.aside(context.WithoutCancel(s.drive.ctx), func(ctx context.Context) any {
		m.Begin(ctx, 0)
		m.RunEnded()
		return nil
	}, func(error) any { return nil })
}

// aside runs f, which asks code of an agent, beside the loop, and brings its item to the inbox. Code that does not end within
// callbackTime, or with the adoption of, is left behind: the item is then what late makes of the reason.
func (s *session) aside(of context.Context, f func(ctx context.Context) any, late func(error) any) {
	if !s.c.running.Enter() {
		return
	}
	ctx, cancel := context.WithTimeoutCause(of, callbackTime, protocol.Errorf(protocol.CodeExpired, "a callback did not end within %s", callbackTime))
	conclude := once(func(item any) {
		s.inbox.put(item)
		s.c.running.Leave()
	})
	stop := context.AfterFunc(ctx, func() { conclude(late(protocol.ContextError(ctx))) })
	s.c.running.Lend(func() {
		defer cancel()
		defer func() {
			if r := recover(); r != nil {
				s.c.panicked("a part of session "+s.key.session, r)
				conclude(broken{of})
			}
		}()
		item := f(ctx)
		stop()
		conclude(item)
	})
}
