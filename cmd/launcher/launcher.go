// Package launcher is how a program that holds an agent lets people talk to it, with the names of Google's ADK. The ways to
// do so are in the packages below; full has all of them.
package launcher

import (
	"context"

	"github.com/toolfabric/toolfabric/cmd/runner"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/artifact"
	"github.com/toolfabric/toolfabric/toolkit/memory"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

// Config is what a program has. AgentLoader is required.
type Config struct {
	AgentLoader    agent.Loader
	SessionService session.Service // nil is session.InMemoryService
	// ArtifactService and MemoryService are refused: neither is part of this version.
	ArtifactService artifact.Service
	MemoryService   memory.Service

	PluginConfig runner.PluginConfig

	Fabric runner.Fabric // what the agent runs on; see package runner
}

// Launcher runs what command line arguments ask for.
type Launcher interface {
	// Execute returns when people have seen enough, or ctx ended.
	Execute(ctx context.Context, config *Config, args []string) error
	// CommandLineSyntax is a text about the arguments.
	CommandLineSyntax() string
}

// SubLauncher is one way to run an agent, chosen by a word.
type SubLauncher interface {
	Keyword() string
	// Parse takes arguments and returns those that are not its own.
	Parse(args []string) ([]string, error)
	CommandLineSyntax() string
	SimpleDescription() string // in one line
	Run(ctx context.Context, config *Config) error
}
