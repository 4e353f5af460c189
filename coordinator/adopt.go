package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// adopt settles what came for a session that this process does not drive, and takes the session over when nobody does and
// there is something to do. It reports whether the session is now this process's to work on.
//
// An ack proves nothing and is given only for what the log shows. Whoever is refused by the log drops what it holds: it
// comes back, to somebody who reads the newer log.
func (s *session) adopt(ctx context.Context, items []any) bool {
	var arrivals []arrival
	var alarms []alarm
	for _, item := range items {
		switch item := item.(type) {
		case arrival:
			arrivals = append(arrivals, item)
		case alarm:
			alarms = append(alarms, item)
		case question:
			s.c.reply(ctx, item.reply, protocol.OwnReply{})
		case leave:
			s.leaving = true
		}
	}
	if s.leaving {
		s.postpone(arrivals, alarms, 0)
		return false
	}
	if len(arrivals)+len(alarms) == 0 {
		return false
	}
	if err := s.load(ctx, len(alarms) == 0 && begins(arrivals)); err != nil {
		s.c.cfg.Logger.Warn("cannot read a session's log; its inputs come again", "session", s.key.session, "error", err)
		s.postpone(arrivals, alarms, time.Second)
		return false
	}
	arrivals, alarms = s.takeGuards(ctx, arrivals, alarms)
	arrivals = s.settleKnown(ctx, arrivals)
	if s.state.Closed() != nil {
		s.refuse(ctx, arrivals)
		arrivals = nil
	}
	wanted, owed := s.settleAlarms(ctx, alarms)
	if len(arrivals) == 0 && !wanted {
		return false
	}
	if s.state.Owned() && s.state.Coordinator != s.c.id {
		arrivals = s.passOn(ctx, arrivals)
		if wanted {
			wanted = !s.alive(ctx, owed)
		}
		if len(arrivals) == 0 && !wanted {
			return false
		}
		before := s.state.Seq
		if err := s.load(ctx, false); err != nil || s.state.Seq != before {
			return false // the log moved while its owner was asked: look again when the message comes back
		}
	}
	if !s.take(ctx, arrivals) {
		return false
	}
	for _, a := range owed { // superseded now
		a.delivery.Ack()
	}
	return true
}

// begins reports whether these begin a session: an input whose id is its session's name is the first one, unless it comes
// again. Its log need not be read: if there is one after all, the append is refused, and the next delivery reads.
func begins(arrivals []arrival) bool {
	for _, a := range arrivals {
		if a.delivery == nil || !a.isInput() || !a.first || a.delivery.Attempt > 1 {
			return false
		}
	}
	return len(arrivals) > 0
}

// settleKnown acks the inputs that the log holds and returns the others. In a deleted session all are settled: the tail of
// its log says so for ever.
func (s *session) settleKnown(ctx context.Context, arrivals []arrival) []arrival {
	var fresh []arrival
	for _, a := range arrivals {
		known := false
		switch {
		case a.answer != nil:
			known = s.settleAnswer(ctx, a)
		case a.input.Decision != nil:
			known = s.settleDecision(ctx, &a)
		case s.state.Seen.Has(a.input.ID) || s.state.Stopped == protocol.StopDeleted:
			s.settle(ctx, a)
			known = true
		case a.input.Kind == protocol.InputMessage && s.state.Cancelling():
			s.postpone([]arrival{a}, nil, time.Second)
			known = true
		}
		if !known {
			fresh = append(fresh, a)
		}
	}
	return fresh
}

// settle ends an input that the log holds; an approver is told that the decision counts.
func (s *session) settle(ctx context.Context, a arrival) {
	if d := a.input.Decision; d != nil {
		s.c.receipt(ctx, s.key, d.Confirmation, a.input.Client, a.input.Seq, nil)
	}
	s.end(ctx, a)
}

func (s *session) end(ctx context.Context, a arrival) {
	if s.guards(&a) && !fault.Mutant("guard-input-acked-folded") {
		return
	}
	if a.delivery != nil {
		a.delivery.Ack()
		return
	}
	s.c.reply(ctx, a.reply, protocol.OwnReply{Mine: true, Folded: true})
}

func (s *session) settleAll(ctx context.Context, arrivals []arrival) {
	for _, a := range arrivals {
		s.settle(ctx, a)
	}
}

func (s *session) postpone(arrivals []arrival, alarms []alarm, d time.Duration) {
	for _, a := range arrivals {
		if a.delivery != nil {
			a.delivery.Nak(d)
		} else {
			s.c.reply(context.Background(), a.reply, protocol.OwnReply{Mine: s.drives()})
		}
	}
	for _, a := range alarms {
		a.delivery.Nak(d)
	}
}

// refuse folds inputs to a closed session as refused, without a run.
func (s *session) refuse(ctx context.Context, arrivals []arrival) {
	if len(arrivals) == 0 {
		return
	}
	if s.arrive(ctx, arrivals) == nil {
		s.settleTaken(ctx, arrivals)
	}
}

// settleTaken ends the inputs that an event has taken and keeps the others for the next one.
func (s *session) settleTaken(ctx context.Context, arrivals []arrival) {
	for _, a := range arrivals {
		if s.holds(a) {
			s.settle(ctx, a)
			if a.answer != nil || a.input.Decision != nil {
				fault.Point("K21")
			}
			continue
		}
		a.release = func() {} // this round releases it
		s.inbox.put(a)
	}
}

// holds reports whether the log holds what arrived.
func (s *session) holds(a arrival) bool {
	if a.answer == nil {
		return s.state.Seen.Has(a.input.ID)
	}
	logged, _ := s.state.Holds(a.answer.answer.Call, a.answer.answer.Round)
	return logged
}

// prepared brings inputs into the order in which they were stored, whichever way each came, and judges them.
func (s *session) prepared(ctx context.Context, arrivals []arrival) ([]fold.Arrival, error) {
	slices.SortStableFunc(arrivals, func(a, b arrival) int {
		return cmp.Or(cmp.Compare(a.stored, b.stored), cmp.Compare(a.input.Seq, b.input.Seq))
	})
	out := make([]fold.Arrival, len(arrivals))
	for i, a := range arrivals {
		if a.answer == nil {
			out[i] = s.prepare(ctx, a.input)
			if a.ends != nil {
				c, _ := s.state.Call(a.ends.Call)
				fit, err := s.accept(ctx, c, *a.ends)
				if err != nil {
					return nil, err
				}
				out[i].Ends = &fit
			}
			continue
		}
		c, _ := s.state.Call(a.answer.answer.Call)
		fit, err := s.accept(ctx, c, a.answer.answer)
		if err != nil {
			return nil, err
		}
		out[i] = fold.Arrival{Answer: &fit}
	}
	return out, nil
}

// arrive folds what was delivered to a session that this process drives, or that is closed.
func (s *session) arrive(ctx context.Context, arrivals []arrival) error {
	prepared, err := s.prepared(ctx, arrivals)
	if err != nil {
		return err
	}
	return s.step(ctx, fold.Arrive{Arrivals: prepared})
}

// passOn hands inputs to the session's owner, whose loop folds them. It returns those for which nobody answered; they are
// this process's to adopt with, or none when the owner lives.
func (s *session) passOn(ctx context.Context, arrivals []arrival) []arrival {
	for i, a := range arrivals {
		if a.delivery == nil {
			s.c.reply(ctx, a.reply, protocol.OwnReply{})
			continue
		}
		reply, gone := s.ask(ctx, a.request())
		switch {
		case gone:
			return arrivals[i:]
		case reply.Folded:
			a.delivery.Ack()
		default:
			a.delivery.Nak(time.Second)
		}
	}
	return nil
}

// request hands what arrived to the session's owner.
func (a *arrival) request() protocol.OwnRequest {
	if a.answer != nil {
		return protocol.OwnRequest{Answer: &a.answer.answer, Tool: a.answer.tool}
	}
	return protocol.OwnRequest{Input: &a.input}
}

// alive asks the owner about guards that fired, and postpones them when it answers.
func (s *session) alive(ctx context.Context, owed []alarm) bool {
	if _, gone := s.ask(ctx, protocol.OwnRequest{}); gone {
		return false
	}
	s.postpone(nil, owed, guardDelay)
	return true
}

// ask talks to the coordinator that the log names. gone means that it does not drive the session: it said so, it does not
// exist, or it was silent twice.
func (s *session) ask(ctx context.Context, req protocol.OwnRequest) (reply protocol.OwnReply, gone bool) {
	req.V, req.App, req.Session = protocol.Version, s.key.app, s.key.session
	data, err := protocol.Encode(req)
	if err != nil {
		return reply, false
	}
	for range 2 {
		try, cancel := context.WithTimeout(ctx, ownTimeout)
		m, err := s.c.cfg.Bus.Request(try, natswire.Msg{Subject: s.c.cfg.Names.OwnSubject(s.state.Coordinator), Data: data})
		cancel()
		if protocol.CodeOf(err) == protocol.CodeNotFound {
			return reply, true
		}
		if err == nil && json.Unmarshal(m.Data, &reply) == nil {
			return reply, !reply.Mine
		}
	}
	return reply, true
}

// take appends the adoption, guard first, and settles what it was taken for.
func (s *session) take(ctx context.Context, arrivals []arrival) bool {
	if s.state.Stopped != "" && s.state.Closed() == nil { // its next stop does not know any more what this one takes from the index
		for _, call := range s.state.Gone {
			if fault.Mutant("index-left-to-nobody") {
				break
			}
			if err := s.unlist(ctx, call); err != nil {
				s.postpone(arrivals, nil, time.Second)
				return false
			}
		}
	}
	if fault.Mutant("ack-before-fold") {
		s.settleAll(ctx, arrivals)
	}
	before := s.state
	s.drive.begin(ctx, s, arrivals)
	arrivals, shown := s.shown(arrivals)
	prepared, err := s.prepared(ctx, arrivals)
	if err != nil {
		return false
	}
	guard := guardOf(arrivals)
	in := fold.Adopt{Coordinator: s.c.id, Adoption: s.c.cfg.NewID(), Trace: s.drive.trace(), Arrivals: prepared, Awaits: len(shown) > 0}
	if guard != nil {
		in.Guard = guard.Seq
	}
	ev := s.propose(in)
	if ev == nil {
		return false
	}
	if ev.Adopt != nil && ev.Adopt.Guard == 0 {
		guard = nil
		if err := s.guard(ctx, in.Adoption); err != nil {
			s.c.cfg.Logger.Warn("cannot guard an adoption; its inputs come again", "session", s.key.session, "error", err)
			s.postpone(slices.Concat(arrivals, shown), nil, time.Second)
			return false
		}
	}
	fault.Point("K4")
	if err := s.append(ctx, ev); err != nil {
		return false
	}
	s.drive.guard = guard
	s.drive.adopted, s.drive.held = s.state.Seq, len(shown) > 0
	if left := s.reviewArrivals(shown); len(left) > 0 { // what else this event took has decided it
		s.hold(left, nil)
	}
	if before.Due() > 0 {
		s.start(s.drive.ctx, func() { // a hint: one that fires finds its adoption superseded
			_ = natswire.RemoveParkTimer(ctx, s.c.cfg.Bus, s.c.cfg.Names, s.key.app, s.key.session, before.Adoption)
		})
	}
	s.settleTaken(ctx, arrivals)
	return true
}

// conclude carries out what a stop leaves to do. All of it may be done again, by anybody who reads the stop.
func (s *session) conclude(ctx context.Context) error {
	var unlisted error
	for _, e := range fold.Pending(s.state) {
		switch e.(type) {
		case fold.Index:
			unlisted = s.perform(ctx, e) // one that cannot be written holds up no deadline, but the guard stays until it can
			continue
		case fold.Erase, fold.Disarm: // what is to be listed stands in the log only, and the guard brings somebody back to it
			if unlisted != nil {
				return unlisted
			}
		}
		if err := s.perform(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) perform(ctx context.Context, e fold.Effect) error {
	bus, n := s.c.cfg.Bus, s.c.cfg.Names
	switch e := e.(type) {
	case fold.Index:
		fault.Point("K18")
		return s.list(ctx, e.Gone)
	case fold.Arm:
		if err := s.arm(ctx, e.Adoption, e.At); err != nil {
			return err
		}
		fault.Point("K19")
	case fold.Disarm:
		fault.Point("K20")
		if d := s.drive.guard; d != nil {
			d.Ack()
			return nil
		}
		return natswire.RemoveGuard(ctx, bus, n, s.key.app, s.key.session, e.Adoption)
	case fold.Rouse:
		return natswire.SetGuard(ctx, bus, n, s.key.app, s.key.session, s.c.time.Now(),
			protocol.Guard{Coordinator: s.c.id, Adoption: e.Adoption, Expected: s.state.Seq})
	case fold.Report:
		return s.c.record(ctx, "session", s.key.session, protocol.DeadLetter{
			Code: protocol.CodePoison, Reason: "coordinators kept dying on this session without progress; it takes no more input",
			Stream: n.Log(), Subject: n.LogSubject(s.key.app, s.key.session), Seq: s.state.Seq, App: s.key.app, Session: s.key.session,
		})
	case fold.Retract:
		_, err := s.c.answer(ctx, n.WakeSubject(s.key.app, e.Call.Tool, s.key.session, e.Call.ID, e.Round.N), e.Result)
		if protocol.CodeOf(err) != protocol.CodeAnswered {
			return err
		}
	case fold.Withdraw:
		for _, call := range e.Calls {
			if err := s.withdraw(ctx, call); err != nil {
				return err
			}
		}
	case fold.Erase:
		keep := uint64(1) // the tombstone: without it the log could begin anew
		if fault.Mutant("delete-keeps-nothing") {
			keep = 0
		}
		return bus.Purge(ctx, n.Log(), n.LogSubject(s.key.app, s.key.session), keep)
	}
	return nil
}

// withdraw ends a call that nobody waits for any more: claimed, so that it does not start, answered, and its runner told.
func (s *session) withdraw(ctx context.Context, e fold.Perform) error {
	call := e.Call
	r, err := s.c.verdictWithoutWorker(ctx, call.Tool, call.ID, e.Round, call.Effect, cancelEnding)
	if err != nil {
		return err
	}
	_, subject := s.box(e)
	if _, err := s.c.answer(ctx, subject, r); err != nil && protocol.CodeOf(err) != protocol.CodeAnswered {
		return err
	}
	seq, err := s.c.queued(ctx, call)
	if err != nil {
		return err
	}
	s.c.clear(ctx, call, seq)
	return nil
}
