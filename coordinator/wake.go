package coordinator

import (
	"context"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// maxRounds is how often one call may ask people or say that its result comes later.
const maxRounds = 16

// wake takes an answer from a mailbox that wakes its session.
func (c *Coordinator) wake(ctx context.Context, d natswire.Delivery, release func()) {
	c.time.Observe(d.Time)
	app, tool, session, call, round, ok := c.cfg.Names.ParseWake(d.Subject)
	if !ok {
		c.bury(ctx, release, "result", d, protocol.Errorf(protocol.CodeBadMessage, "%s is no waking mailbox", d.Subject), c.cfg.Names.Wake(), "", "")
		return
	}
	a := answered{tool, c.readAnswer(d.Subject, call, round, d.Seq, d.Data)}
	c.arrive(ctx, key{app, session}, arrival{answer: &a, release: release}, d)
}

// accept makes an answer of an open call fit for the log: a large value goes to the object store, an interim answer that
// the call may not give becomes its failure, and a question gets its confirmation.
func (s *session) accept(ctx context.Context, c protocol.Call, a protocol.Answer) (protocol.Answer, error) {
	fail := func(code protocol.Code, text string) protocol.Answer {
		a.Result = protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeFailed, Code: code, Value: protocol.ErrorValue(text),
			Worker: a.Worker, Attempt: a.Attempt, Started: a.Started, Ended: a.Ended, Span: a.Span}
		return a
	}
	switch {
	case a.Outcome.Interim() && a.Round >= maxRounds:
		return fail(protocol.CodeLimit, "the call asked or postponed its result "+times(maxRounds)+", which is its limit"), nil
	case a.Outcome == protocol.OutcomePending && !c.LongRunning:
		return fail(protocol.CodeBadMessage, "the worker says that the result comes later, but the tool is not declared long-running"), nil
	case a.Outcome == protocol.OutcomeAsks && a.Confirmation == nil: // a callback's has one
		desk := s.c.desk(s.key, s.state.User)
		a.Confirmation = desk.ToolAsks(&c, s.agentOf(c.ID), c.Args, a.Ask)
	}
	if why := s.misdirected(a); why != "" {
		return fail(protocol.CodeNotFound, why), nil
	}
	if len(a.Value) > protocol.MaxLogResult {
		return s.c.offload(ctx, a, protocol.MaxModelResult)
	}
	return a, nil
}

// agentOf is the agent whose turn asked for an open call.
func (s *session) agentOf(call string) string {
	for _, l := range s.state.Later {
		if l.Call.ID == call {
			return l.Agent
		}
	}
	if s.state.Run != nil && s.state.Run.Open != nil {
		return s.state.Run.Open.Agent
	}
	return ""
}

// settleAnswer settles an answer that was delivered for what the log shows, or returns false: it is to be folded.
func (s *session) settleAnswer(ctx context.Context, a arrival) bool {
	logged, known := s.state.Holds(a.answer.answer.Call, a.answer.answer.Round)
	if fault.Mutant("wake-acked-before-fold") {
		s.end(ctx, a)
	}
	switch {
	case logged || s.state.Stopped == protocol.StopDeleted:
		s.settle(ctx, a)
		return true
	case s.asks(a.answer.answer.Call) != "" && s.state.Takes(a.answer.answer):
		s.dismiss(ctx, a, protocol.Errorf(protocol.CodeForbidden, "an answer of a call that nobody has agreed to"))
		return true
	case known && s.state.Takes(a.answer.answer):
		if c, _ := s.state.Call(a.answer.answer.Call); c.Tool == a.answer.tool && !fault.Mutant("wake-acked-unread") {
			return false
		}
		s.dismiss(ctx, a, protocol.Errorf(protocol.CodeBadMessage, "an answer from the mailbox of another tool"))
		return true
	}
	if s.state.Arrived(a.answer.answer.Call, a.answer.answer.Round) { // the next event carries it
		s.postpone([]arrival{a}, nil, 2*time.Second)
		return true
	}
	s.keep(ctx, a, protocol.Errorf(protocol.CodeNotFound, "no such call waits in session %s", s.key.session)) // or of a newer log
	return true
}
