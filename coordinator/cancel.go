package coordinator

import (
	"context"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// cancelGrace is how long the runner of a cancelled call may take to say how it ended.
const cancelGrace = 3 * time.Second

var cancelEnding = ending{
	code: protocol.CodeCancelled, outcome: protocol.OutcomeCancelled,
	text: "cancelled; it may have run", unrun: "cancelled; the call was not executed", unsure: "cancelled while it ran; whether the effect happened is unknown",
}

// retract takes the mailbox of a wait that somebody cancelled; what it holds then comes as any answer does.
func (s *session) retract(ctx context.Context, e fold.Retract) {
	for wait := 100 * time.Millisecond; s.perform(ctx, e) != nil; wait = min(2*wait, 5*time.Second) {
		if natswire.Sleep(ctx, s.c.cfg.Clock, wait) != nil {
			return
		}
	}
}

// revoke ends a call that somebody cancelled: the claim is taken, so that it does not start any more; a runner that has it
// is told, and has a moment to answer.
func (s *session) revoke(e fold.Perform) {
	w := s.drive.calls[e.Call.ID]
	if w == nil {
		w = s.watch(e)
	}
	if w.ending {
		s.forgo(e.Call.ID)
		return
	}
	w.ending = true
	s.listen()
	ctx, seq := s.drive.ctx, w.seq
	s.start(ctx, func() {
		if fault.Mutant("cancel-without-claim") {
			s.store(ctx, w, protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeCancelled, Code: protocol.CodeCancelled, Value: protocol.ErrorValue(cancelEnding.unrun)})
			return
		}
		if w.call.Effect == protocol.EffectAtMostOnce {
			r, err := s.c.verdictWithoutWorker(ctx, w.call.Tool, w.call.ID, w.round, w.call.Effect, cancelEnding)
			if err == nil && r.Outcome != protocol.OutcomeUnknown && s.store(ctx, w, r) {
				s.c.clear(ctx, w.call, seq)
				return
			}
		}
		s.c.clear(ctx, w.call, seq)
		if a, err := s.mailbox(ctx, w); err == nil {
			s.deliver(ctx, w.call.Tool, a)
			return
		}
		if natswire.Sleep(ctx, s.c.cfg.Clock, cancelGrace) == nil {
			s.settleWithout(ctx, w, seq, cancelEnding)
		}
	})
}
