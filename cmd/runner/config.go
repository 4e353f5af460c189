package runner

import (
	"errors"
	"fmt"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/artifact"
	"github.com/toolfabric/toolfabric/toolkit/memory"
	"github.com/toolfabric/toolfabric/toolkit/plugin"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

// Config is what a Runner is made of. Agent and SessionService are required.
type Config struct {
	// AppName is the app in requests to SessionService; empty is the agent's name. Tools see the agent's name as the app's.
	AppName string
	// Agent is made by llmagent.New. Runners that share a SessionService, a directory or a server may share an Agent; another
	// agent of the same name is refused.
	Agent agent.Agent
	// SessionService is made by session.InMemoryService. No other is taken: sessions are in the fabric.
	SessionService session.Service
	// ArtifactService and MemoryService are refused: neither is part of this version.
	ArtifactService artifact.Service
	MemoryService   memory.Service
	PluginConfig    PluginConfig
	// AutoCreateSession begins a session that is run and does not exist; otherwise that is an error.
	AutoCreateSession bool

	// Fabric is what all of it runs on; the zero value takes the environment's, else memory.
	Fabric Fabric
}

// PluginConfig is the plugins that see what the agent does.
type PluginConfig struct {
	Plugins []*plugin.Plugin
	// CloseTimeout is refused: a plugin is closed after its agent's last session, and is waited for.
	CloseTimeout time.Duration
}

// check returns the session service, and an error that says what cannot be.
func (c *Config) check() (*session.Sessions, error) {
	if c.Agent == nil {
		return nil, errors.New("runner: the root agent is required")
	}
	if _, ok := c.Agent.(*llmagent.LLMAgent); !ok {
		return nil, protocol.Errorf(protocol.CodeUnsupported, "runner: agent %s is no agent that coordinators can drive; make it with llmagent.New", c.Agent.Name())
	}
	if c.AppName == "" {
		c.AppName = c.Agent.Name()
	}
	if c.SessionService == nil {
		return nil, errors.New("runner: the session service is required: session.InMemoryService()")
	}
	sessions, ok := c.SessionService.(*session.Sessions)
	if !ok || sessions == nil {
		return nil, protocol.Errorf(protocol.CodeUnsupported, "runner: sessions are kept in the fabric, not in a %T; use session.InMemoryService() and set TOOLFABRIC_DATA to have them on disk", c.SessionService)
	}
	if c.PluginConfig.CloseTimeout != 0 {
		return nil, protocol.Errorf(protocol.CodeUnsupported, "runner: plugins are closed without a limit of time; leave PluginConfig.CloseTimeout out")
	}
	for what, given := range map[string]bool{"ArtifactService": c.ArtifactService != nil, "MemoryService": c.MemoryService != nil} {
		if given {
			return nil, protocol.Errorf(protocol.CodeUnsupported, "runner: a %s is not part of this version; leave it out", what)
		}
	}
	return sessions, nil
}

// collect finds the tools and toolsets of an agent and of all agents below it. Tools that other workers serve are left out. It returns an
// error for two tools of one name, which calls could not tell apart.
func collect(root agent.Agent) (served, error) {
	var s served
	owners := map[string]owned{}
	var add func(a agent.Agent) error
	add = func(a agent.Agent) error {
		llm, ok := a.(*llmagent.LLMAgent)
		if ok {
			if err := s.add(llm, owners); err != nil {
				return err
			}
		}
		for _, sub := range a.SubAgents() {
			if err := add(sub); err != nil {
				return err
			}
		}
		return nil
	}
	if err := add(root); err != nil {
		return served{}, fmt.Errorf("runner: %w", err)
	}
	return s, nil
}
