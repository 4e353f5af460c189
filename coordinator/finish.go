package coordinator

import (
	"context"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
)

// left is what callbacks said that were asked beside the loop when calls had ended the run.
type left struct {
	of   context.Context // the adoption
	turn *protocol.Turn  // nil when they said and set nothing
	err  error
}

// finish ends a run whose calls asked for that, once the after-agent callbacks of the agent that spoke have been asked.
func (s *session) finish(ctx context.Context) error {
	if err := s.fit(ctx); err != nil {
		return err
	}
	a := s.speaker()
	if a == nil || !s.hooks(a.Name()).Leaves() {
		return s.step(ctx, fold.Finished{})
	}
	if s.drive.thinking != nil {
		return nil
	}
	history, err := s.history(ctx)
	if err != nil {
		return err
	}
	m := s.moment(a.Name(), s.hooks(a.Name()), history.Message(s.state.Answers()))
	l, free, seq := left{of: s.drive.ctx}, room(m.Run.State), s.state.Seq
	asking, cancel := context.WithCancel(s.asking(a))
	s.drive.thinking = cancel
	s.aside(asking, func(ctx context.Context) any {
		l := l
		m.Begin(ctx, free)
		says, err := m.Leave()
		if l.err = err; says != nil || len(m.Delta) > 0 {
			l.turn = &protocol.Turn{Agent: a.Name(), AgentDigest: a.Digest(), RequestSeq: seq, By: protocol.SpeakerAfterAgent, Content: says, StateDelta: m.Delta}
		}
		return l
	}, func(err error) any {
		l := l
		l.err = err
		return l
	})
	return nil
}

// left ends the run with what callbacks said. When somebody has spoken meanwhile it goes on, and they are asked again.
func (s *session) left(ctx context.Context, l left) error {
	if l.of != s.drive.ctx || s.state.Run == nil {
		return nil
	}
	s.drive.stopThinking()
	s.drive.thinking = nil
	if l.err != nil {
		return s.step(ctx, fold.Failed{Problem: *protocol.ProblemOf(l.err)})
	}
	return s.record(ctx, fold.Finished{Turn: l.turn})
}
