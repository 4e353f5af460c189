package turn

import (
	"fmt"
	"slices"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/tool/exitlooptool"
)

// Tree is the agents of one app: who speaks, and who may hand over to whom. It does not change and may be used concurrently.
type Tree struct {
	root    *member
	members map[string]*member
	names   []string // the root's first, then depth first
}

// member is an agent and its place in the tree.
type member struct {
	*llmagent.LLMAgent
	parent *member // nil for the root
	own    []Offer // of the tools that need no worker
}

// NewTree reads the tree below root. It returns an *Error of code unsupported that names an agent which no model speaks for.
func NewTree(root agent.Agent) (*Tree, error) {
	t := &Tree{members: map[string]*member{}}
	var err error
	if t.root, err = t.add(root, nil); err != nil {
		return nil, err
	}
	for _, m := range t.members {
		if m.own, err = m.ownOffers(); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *Tree) add(a agent.Agent, parent *member) (*member, error) {
	llm, ok := a.(*llmagent.LLMAgent)
	if !ok {
		return nil, protocol.Errorf(protocol.CodeUnsupported, "agent %s: a coordinator serves agents made by llmagent.New", a.Name())
	}
	m := &member{LLMAgent: llm, parent: parent}
	t.members[m.Name()] = m
	t.names = append(t.names, m.Name())
	for _, sub := range m.SubAgents() {
		if _, err := t.add(sub, m); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Root is the app's own agent.
func (t *Tree) Root() *llmagent.LLMAgent { return t.root.LLMAgent }

// Agent is the agent of that name, the root for an empty name; nil for none.
func (t *Tree) Agent(name string) *llmagent.LLMAgent {
	if name == "" {
		return t.root.LLMAgent
	}
	if m := t.members[name]; m != nil {
		return m.LLMAgent
	}
	return nil
}

// Names are the names of all agents, the root's first.
func (t *Tree) Names() []string { return t.names }

// Has reports whether an agent of that name is in the tree.
func (t *Tree) Has(name string) bool { return t.members[name] != nil }

// Misdirected says that a run cannot be handed over to an agent of that name; empty when it can, or for an empty name.
func (t *Tree) Misdirected(name string) string {
	if name == "" || t.Has(name) {
		return ""
	}
	return fmt.Sprintf("nobody is named %.64q to transfer to", name)
}

// Speaker is the agent to ask next. active is the one that the run is with; with none the run is new and begins with last,
// who spoke last in the session, if nothing on the way from there to the root keeps it from handing over to its parent:
// else with the root. The root also stands in for an agent that is not in the tree; its name is then in missing.
func (t *Tree) Speaker(active, last string) (a *llmagent.LLMAgent, missing string) {
	name := active
	if name == "" {
		name = last
	}
	m := t.members[name]
	switch {
	case name == "":
		m = t.root
	case m == nil:
		m, missing = t.root, name
	case active == "" && !m.reaches():
		m = t.root
	}
	return m.LLMAgent, missing
}

// reaches reports whether what a user says next may go to the agent first: it can pass it on up to the root.
func (m *member) reaches() bool {
	for ; m.parent != nil; m = m.parent {
		if m.Config().DisallowTransferToParent {
			return false
		}
	}
	return true
}

// Offers adds to offers, those of pools, the tools that a may call without a worker, listed being those of its toolsets: they
// go before pools of their names.
func (t *Tree) Offers(a *llmagent.LLMAgent, offers []Offer, listed ...Offer) []Offer {
	own := listed
	if m := t.members[a.Name()]; m != nil && len(m.own) > 0 {
		own = append(slices.Clip(m.own), listed...)
	}
	if len(own) == 0 {
		return offers
	}
	offers = slices.DeleteFunc(offers, func(o Offer) bool {
		return slices.ContainsFunc(own, func(mine Offer) bool { return mine.Name == o.Name })
	})
	return append(offers, own...)
}

func (m *member) ownOffers() ([]Offer, error) {
	var own []Offer
	for _, t := range m.Config().Tools {
		if exitlooptool.Is(t) {
			offer, err := ExitOffer(t)
			if err != nil {
				return nil, err
			}
			own = append(own, offer)
		}
	}
	if targets := m.targets(); len(targets) > 0 {
		own = append(own, m.transferOffer(targets))
	}
	return own, nil
}
