// Package plugin is callbacks that a coordinator asks for all of its agents, before an agent's own. Names follow Google's
// ADK. A plugin is given to coordinators by coordinator.Config.Plugins; everything that llmagent says of callbacks holds.
//
// The events that people see are a pure projection of a session's log, the same wherever and however often they are looked
// at. So OnEventCallback cannot hold: a coordinator refuses a plugin that has one. What it would change is changed by the
// callback of the step: OnUserMessageCallback, AfterModelCallback, AfterToolCallback; to look at events there is
// coordinator/client.
//
// callbacks.md in this folder says what each callback may change.
package plugin

import (
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

type (
	// OnUserMessageCallback sees a message before it becomes part of the session; a content replaces it, in the log too. An
	// error refuses the message.
	OnUserMessageCallback func(agent.InvocationContext, *genai.Content) (*genai.Content, error)
	// BeforeRunCallback is asked at the beginning of a run. A content is the run's answer and ends it; an error ends it as
	// failed. A run that waited for people or results and goes on is the same run.
	BeforeRunCallback func(agent.InvocationContext) (*genai.Content, error)
	// AfterRunCallback is told once a run's end is in the log, at most once: of the end that a coordinator wrote before it died
	// nobody is told. What it does to the state counts for nothing.
	AfterRunCallback func(agent.InvocationContext)
	// OnEventCallback is refused; see the package.
	OnEventCallback func(agent.InvocationContext, *session.Event) (*session.Event, error)
)

// Config describes a plugin. Name is required; nil callbacks are not asked.
type Config struct {
	Name string // one plugin of a name in a coordinator

	OnUserMessageCallback OnUserMessageCallback
	OnEventCallback       OnEventCallback
	BeforeRunCallback     BeforeRunCallback
	AfterRunCallback      AfterRunCallback
	BeforeAgentCallback   agent.BeforeAgentCallback
	AfterAgentCallback    agent.AfterAgentCallback
	BeforeModelCallback   llmagent.BeforeModelCallback
	AfterModelCallback    llmagent.AfterModelCallback
	OnModelErrorCallback  llmagent.OnModelErrorCallback
	BeforeToolCallback    llmagent.BeforeToolCallback
	AfterToolCallback     llmagent.AfterToolCallback
	OnToolErrorCallback   llmagent.OnToolErrorCallback

	CloseFunc func() error // called when a coordinator that has the plugin ends, after its last session
}

// Plugin is made by New. It does not change and may be used concurrently.
type Plugin struct{ cfg Config }

// New checks cfg. It returns an *Error of code bad_name for a plugin without a name.
func New(cfg Config) (*Plugin, error) {
	if cfg.Name == "" {
		return nil, protocol.Errorf(protocol.CodeBadName, "a plugin needs a name")
	}
	return &Plugin{cfg}, nil
}

// Name is the plugin's name.
func (p *Plugin) Name() string { return p.cfg.Name }

// OnUserMessageCallback is the callback of that name; nil for none.
func (p *Plugin) OnUserMessageCallback() OnUserMessageCallback { return p.cfg.OnUserMessageCallback }

// OnEventCallback is the callback of that name; nil for none.
func (p *Plugin) OnEventCallback() OnEventCallback { return p.cfg.OnEventCallback }

// BeforeRunCallback is the callback of that name; nil for none.
func (p *Plugin) BeforeRunCallback() BeforeRunCallback { return p.cfg.BeforeRunCallback }

// AfterRunCallback is the callback of that name; nil for none.
func (p *Plugin) AfterRunCallback() AfterRunCallback { return p.cfg.AfterRunCallback }

// BeforeAgentCallback is the callback of that name; nil for none.
func (p *Plugin) BeforeAgentCallback() agent.BeforeAgentCallback { return p.cfg.BeforeAgentCallback }

// AfterAgentCallback is the callback of that name; nil for none.
func (p *Plugin) AfterAgentCallback() agent.AfterAgentCallback { return p.cfg.AfterAgentCallback }

// BeforeModelCallback is the callback of that name; nil for none.
func (p *Plugin) BeforeModelCallback() llmagent.BeforeModelCallback { return p.cfg.BeforeModelCallback }

// AfterModelCallback is the callback of that name; nil for none.
func (p *Plugin) AfterModelCallback() llmagent.AfterModelCallback { return p.cfg.AfterModelCallback }

// OnModelErrorCallback is the callback of that name; nil for none.
func (p *Plugin) OnModelErrorCallback() llmagent.OnModelErrorCallback {
	return p.cfg.OnModelErrorCallback
}

// BeforeToolCallback is the callback of that name; nil for none.
func (p *Plugin) BeforeToolCallback() llmagent.BeforeToolCallback { return p.cfg.BeforeToolCallback }

// AfterToolCallback is the callback of that name; nil for none.
func (p *Plugin) AfterToolCallback() llmagent.AfterToolCallback { return p.cfg.AfterToolCallback }

// OnToolErrorCallback is the callback of that name; nil for none.
func (p *Plugin) OnToolErrorCallback() llmagent.OnToolErrorCallback { return p.cfg.OnToolErrorCallback }

// Close calls CloseFunc.
func (p *Plugin) Close() error {
	if p.cfg.CloseFunc == nil {
		return nil
	}
	return p.cfg.CloseFunc()
}
