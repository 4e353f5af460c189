package coordinator

import (
	"context"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// overdue is what a look after a wait's end has found: the answer that ends the call, or decisions that came in time.
type overdue struct {
	call      string
	round     int
	asked     string // the confirmation that was looked for; empty for a call that waits for the outside
	answer    answered
	decisions []arrival
	failed    bool // the look could not be made: it is tried again
}

// tickWaits ends the waits for people and the outside whose instant has passed. What was stored before the instant wins,
// so the mailbox and the approvals are read from their leaders once more, after it.
func (s *session) tickWaits(now int64) {
	for _, w := range s.state.Waiting() {
		if w.Until > now || s.drive.overdue[w.Call.ID] || s.drive.reviews[w.Call.ID] != nil {
			continue
		}
		if s.drive.overdue == nil {
			s.drive.overdue = map[string]bool{}
		}
		s.drive.overdue[w.Call.ID] = true
		ctx := s.drive.ctx
		s.start(ctx, func() { s.inbox.put(s.lastLook(ctx, w)) })
	}
}

func (s *session) lastLook(ctx context.Context, w fold.Wait) overdue {
	o := overdue{call: w.Call.ID, round: w.Round.N}
	var err error
	if w.Round.Asks != nil {
		o.asked = w.Round.Asks.ID
		if !fault.Mutant("expiry-without-look") {
			o.decisions, err = s.decisions(ctx, w.Round.Asks)
		}
		o.answer = expiredWait(w, "nobody decided within "+waited(w)+"; the call was not executed")
	} else {
		o.answer, err = s.outcome(ctx, w)
	}
	if err != nil {
		s.c.cfg.Logger.Warn("cannot look for what came in time; trying again", "session", s.key.session, "call", w.Call.ID, "error", err)
		o.failed = true
		_ = natswire.Sleep(ctx, s.c.cfg.Clock, time.Second)
	}
	return o
}

func waited(w fold.Wait) string {
	return (time.Duration(w.Until-w.Round.At) * time.Millisecond).String()
}

func expiredWait(w fold.Wait, text string) answered {
	return answered{w.Call.Tool, protocol.Answer{Call: w.Call.ID, Round: w.Round.N, Result: protocol.Result{
		V: protocol.Version, Outcome: protocol.OutcomeExpired, Code: protocol.CodeExpired, Value: protocol.ErrorValue(text)}}}
}

// decisions reads the decisions on a confirmation that were stored in time, oldest first.
func (s *session) decisions(ctx context.Context, q *protocol.Confirmation) ([]arrival, error) {
	n := s.c.cfg.Names
	var all []arrival
	for from := uint64(1); ; {
		m, err := s.c.cfg.Bus.Next(ctx, n.Approval(), n.ApprovalSubject(s.key.app, s.key.session, q.ID, "*"), from)
		if protocol.CodeOf(err) == protocol.CodeNotFound {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		from = m.Seq + 1
		_, _, _, approver, _ := n.ParseApproval(m.Subject)
		if in, err := readDecision(m, q.ID, approver); err == nil && in.Sent <= q.Expires {
			all = append(all, arrival{input: in, stored: in.Sent, release: func() {}})
		}
	}
}

// outcome takes the mailbox of a result that has not come, so that none comes later, and returns what it holds then.
func (s *session) outcome(ctx context.Context, w fold.Wait) (answered, error) {
	a := expiredWait(w, "no result came from outside within "+waited(w)+"; what the call began may go on there")
	subject := s.c.cfg.Names.WakeSubject(s.key.app, w.Call.Tool, s.key.session, w.Call.ID, w.Round.N)
	if fault.Mutant("deadline-without-mailbox") {
		return a, nil
	}
	seq, err := s.c.answer(ctx, subject, a.answer.Result)
	if err == nil {
		a.answer.Seq = seq
		return a, nil
	}
	if protocol.CodeOf(err) != protocol.CodeAnswered {
		return a, err
	}
	m, err := s.c.cfg.Bus.Last(ctx, s.c.cfg.Names.Wake(), subject)
	if err != nil {
		return a, err
	}
	return answered{w.Call.Tool, s.c.readAnswer(subject, w.Call.ID, w.Round.N, m.Seq, m.Data)}, nil
}

// overdue folds what a last look has found.
func (s *session) overdue(ctx context.Context, o overdue) error {
	delete(s.drive.overdue, o.call)
	if o.failed || s.state.RoundOf(o.call) != o.round && !s.told(o.call, o.round) {
		return nil
	}
	if s.drive.reviews[o.call] != nil {
		return nil // what came in time is being looked at
	}
	for _, a := range o.decisions {
		if refused, known := s.state.JudgeDecision(a.input); !known || refused != nil || len(a.input.Decision.Args) > 0 && s.edit(&a.input) != nil {
			continue
		}
		if len(s.reviewArrivals([]arrival{a})) == 0 {
			return nil // it ends the wait when callbacks have had their say
		}
		if err := s.step(ctx, fold.Arrive{Arrivals: []fold.Arrival{s.prepare(ctx, a.input)}}); err != nil {
			return err
		}
		if !s.state.Owned() {
			return nil
		}
	}
	if s.asks(o.call) != o.asked && !fault.Mutant("edit-expires-with-old") {
		return nil // decided meanwhile, or asked anew about edited arguments
	}
	c, ok := s.state.Call(o.call)
	if !ok {
		return nil
	}
	if s.reviewAnswer(c, o.answer, func(a answered) any { return a }) {
		return nil
	}
	a, err := s.accept(ctx, c, o.answer.answer)
	if err != nil {
		return nil // the next tick looks again
	}
	return s.step(ctx, fold.Answered{Answer: a})
}

// told reports whether a call waits whose turn has ended.
func (s *session) told(call string, round int) bool {
	for _, l := range s.state.Later {
		if l.Call.ID == call && l.Round == round {
			return true
		}
	}
	return false
}

// asks is the id of the question that is open about the call; empty is none.
func (s *session) asks(call string) string {
	for _, w := range s.state.Waiting() {
		if w.Call.ID == call && w.Round.Asks != nil {
			return w.Round.Asks.ID
		}
	}
	return ""
}
