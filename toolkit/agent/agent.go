// Package agent is what an agent is to the fabric: data. A coordinator reads it, drives the loop of model and tools by it
// and keeps the loop's state in the session's log, so that any other coordinator can go on. The kinds of agents are in the
// packages below; llmagent is the one that asks a model. Names follow Google's ADK.
package agent

import (
	"errors"
	"fmt"
	"iter"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

// Agent is a node of a tree of agents. Only the constructors of this module make agents: the coordinator has to know each
// kind to keep its state in the log. An Agent does not change and may be used concurrently.
type Agent interface {
	Name() string
	Description() string
	SubAgents() []Agent
	// FindAgent is the agent of that name in this tree, itself included; nil when there is none.
	FindAgent(name string) Agent
	// FindSubAgent is FindAgent without itself.
	FindSubAgent(name string) Agent

	kind()
}

// InvocationContext is the name that ADK gives to what an agent's own Run function sees.
type InvocationContext = Context

// Config describes what all kinds of agents have in common.
type Config struct {
	Name        string // see protocol.CheckName
	Description string
	SubAgents   []Agent
	// Run is refused. It is here so that code written for ADK is told what to do instead.
	Run func(InvocationContext) iter.Seq2[*session.Event, error]
}

// ErrFreeRun says that an agent with a Run function of its own was asked for.
var ErrFreeRun = errors.New("an agent cannot bring its own Run function: what it did would be lost with its process and " +
	"repeated on another; make its logic a tool (tool/functiontool), which workers run once per call, and let an agent of " +
	"agent/llmagent call it")

// New makes the part that the kinds of agents embed. It returns ErrFreeRun for a Config with Run, an *Error of code
// bad_name for an illegal name, and an error that names the agent when one appears twice in the tree.
func New(cfg Config) (Agent, error) {
	if err := protocol.CheckName(cfg.Name); err != nil {
		return nil, err
	}
	if cfg.Run != nil {
		return nil, fmt.Errorf("agent %s: %w", cfg.Name, ErrFreeRun)
	}
	n := &node{name: cfg.Name, description: cfg.Description, subs: append([]Agent(nil), cfg.SubAgents...)}
	seen := map[string]bool{cfg.Name: true}
	if err := unique(n.subs, seen); err != nil {
		return nil, fmt.Errorf("agent %s: %w", cfg.Name, err)
	}
	return n, nil
}

func unique(agents []Agent, seen map[string]bool) error {
	for _, a := range agents {
		if a == nil {
			return errors.New("a sub-agent is nil")
		}
		if seen[a.Name()] {
			return fmt.Errorf("agent %s appears twice in the tree: names are how calls are routed, so each agent needs its own", a.Name())
		}
		seen[a.Name()] = true
		if err := unique(a.SubAgents(), seen); err != nil {
			return err
		}
	}
	return nil
}

type node struct {
	name, description string
	subs              []Agent
}

func (n *node) Name() string        { return n.name }
func (n *node) Description() string { return n.description }
func (n *node) SubAgents() []Agent  { return append([]Agent(nil), n.subs...) }
func (n *node) kind()               {}

func (n *node) FindAgent(name string) Agent {
	if name == n.name {
		return n
	}
	return n.FindSubAgent(name)
}

func (n *node) FindSubAgent(name string) Agent {
	for _, sub := range n.subs {
		if found := sub.FindAgent(name); found != nil {
			return found
		}
	}
	return nil
}
