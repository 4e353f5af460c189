package coordinator

import (
	"context"
	"encoding/json"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/coordinator/internal/turn"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// ready is what was prepared beside the loop before a model is asked: what the callbacks said that are asked before a run
// goes into an agent, and the tools of toolsets.
type ready struct {
	of    context.Context // the adoption
	agent *llmagent.LLMAgent
	seq   uint64 // of the log when they were asked

	says  json.RawMessage            // a callback's answer, which ends the run; nil for none
	delta map[string]json.RawMessage // what callbacks set
	sets  map[int][]tool.Listed      // by place in Config.Toolsets; those that failed are missing
	err   error
}

// enters reports whether callbacks are to be asked before the run goes into a.
func (s *session) enters(a *llmagent.LLMAgent, h *turn.Hooks) bool {
	return h.Enters() && s.state.Run.Entered != a.Name()
}

// prepareRun asks the callbacks before a run goes into an agent and lists the agent's toolsets: once for an adoption, those
// that failed again for each turn. Both are code that may block.
func (s *session) prepareRun(ctx context.Context, a *llmagent.LLMAgent, h *turn.Hooks) error {
	history, err := s.history(ctx)
	if err != nil {
		return err
	}
	m := s.moment(a.Name(), h, history.Message(s.state.Answers()))
	enters, begins, free, missing := s.enters(a, h), s.state.Run.Entered == "", room(m.Run.State), s.unlistedSets(a)
	r := ready{of: s.drive.ctx, agent: a, seq: s.state.Seq}
	asking, cancel := context.WithCancel(s.asking(a))
	s.drive.thinking = cancel
	s.aside(asking, func(ctx context.Context) any {
		r := r
		m.Begin(ctx, free)
		if enters {
			r.says, r.err = m.Enter(begins)
			r.delta = m.Delta
		}
		if r.says == nil && r.err == nil {
			r.sets = s.c.list(ctx, m, missing)
		}
		return r
	}, func(err error) any {
		r := r
		r.err = err
		return r
	})
	return nil
}

// ready takes what was prepared and records what callbacks said; then the model is asked.
func (s *session) ready(ctx context.Context, r ready) error {
	if r.of != s.drive.ctx || s.state.Run == nil {
		return nil
	}
	s.drive.stopThinking()
	s.drive.thinking = nil
	t := protocol.Turn{Agent: r.agent.Name(), AgentDigest: r.agent.Digest(), RequestSeq: r.seq, StateDelta: r.delta}
	switch {
	case r.err != nil:
		return s.step(ctx, fold.Failed{Problem: *protocol.ProblemOf(r.err)})
	case r.says != nil:
		t.By, t.Content = protocol.SpeakerBeforeAgent, r.says
		return s.record(ctx, fold.Modelled{Turn: t})
	}
	s.drive.prepared = true
	for i, list := range r.sets {
		if s.drive.sets == nil {
			s.drive.sets = map[setPlace][]tool.Listed{}
		}
		s.drive.sets[setPlace{r.agent.Name(), i}] = list
	}
	if len(r.delta) > 0 {
		return s.record(ctx, fold.Entered{Turn: t})
	}
	return nil
}
