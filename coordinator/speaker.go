package coordinator

import (
	"fmt"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
)

// speaker is the agent of the session's app whose model is to be asked; nil when the app is not served here. The log says
// who it is: a coordinator whose agents were changed meanwhile has the root speak for one that is gone.
func (s *session) speaker() *llmagent.LLMAgent {
	tree := s.c.agents[s.key.app]
	if tree == nil {
		return nil
	}
	a, missing := tree.Speaker(s.state.Speaker(), s.state.Spoke)
	if missing != "" {
		s.c.cfg.Logger.Warn("the agent whose turn it is is not among the app's any more; its root goes on", "app", s.key.app, "session", s.key.session, "agent", missing, "root", a.Name())
	}
	if d := &s.drive; d.speaker != a.Name() { // another agent: its own time limit, its own model
		if d.enough != nil {
			d.enough()
		}
		d.speaker, d.asking, d.enough, d.askKind = a.Name(), nil, nil, nil
	}
	return a
}

// misdirected says why the run cannot be handed over as an answer of a worker's wants it; empty when it can, or is not.
func (s *session) misdirected(a protocol.Answer) string {
	tree := s.c.agents[s.key.app]
	if a.Actions == nil || tree == nil {
		return ""
	}
	nobody := tree.Misdirected(a.Actions.TransferToAgent)
	if nobody == "" {
		return ""
	}
	return fmt.Sprintf("the tool ran, but %s: nothing that it asked of the session was done; the agents are: %s", nobody, strings.Join(tree.Names(), ", "))
}
