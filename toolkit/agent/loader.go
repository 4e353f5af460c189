package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Loader finds the agents that a program has by name.
type Loader interface {
	ListAgents() []string // names, the root agent's first
	// LoadAgent returns an agent by its name; the empty name is the root agent's. Its error lists the names there are.
	LoadAgent(name string) (Agent, error)
	RootAgent() Agent
}

// NewSingleLoader has one agent. It panics when a is nil.
func NewSingleLoader(a Agent) Loader {
	if a == nil {
		panic("agent.NewSingleLoader: the agent is nil")
	}
	return loader{a}
}

// NewMultiLoader has several agents, of which root is the one to begin with. It returns an error for a nil agent and for two
// of one name.
func NewMultiLoader(root Agent, agents ...Agent) (Loader, error) {
	all := append([]Agent{root}, agents...)
	seen := map[string]bool{}
	for _, a := range all {
		if a == nil {
			return nil, errors.New("an agent is nil")
		}
		if seen[a.Name()] {
			return nil, fmt.Errorf("two agents are named %s", a.Name())
		}
		seen[a.Name()] = true
	}
	return loader(all), nil
}

// loader is the agents, the root first.
type loader []Agent

func (l loader) RootAgent() Agent { return l[0] }

func (l loader) ListAgents() []string {
	names := make([]string, len(l))
	for i, a := range l {
		names[i] = a.Name()
	}
	return names
}

func (l loader) LoadAgent(name string) (Agent, error) {
	if name == "" {
		return l[0], nil
	}
	if i := slices.IndexFunc(l, func(a Agent) bool { return a.Name() == name }); i >= 0 {
		return l[i], nil
	}
	return nil, fmt.Errorf("no agent %q; there are: %s", name, strings.Join(l.ListAgents(), ", "))
}
