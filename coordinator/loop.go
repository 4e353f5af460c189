package coordinator

import (
	"context"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
)

// work drives the session until it stops or somebody else has it. Each round starts what the log allows and waits for one
// of: something in the inbox, the next look at the mailboxes, a deadline.
func (s *session) work(ctx context.Context) {
	for s.state.Owned() {
		if err := s.pursue(ctx); err != nil {
			s.lose(err)
			return
		}
		if !s.state.Owned() {
			break
		}
		items, err := s.wait(ctx)
		if err == nil {
			err = s.handle(ctx, items)
		}
		s.release()
		if err != nil {
			s.lose(err)
			return
		}
	}
	s.drive.finish(s.state)
	s.tellEnd()
	if err := s.conclude(ctx); err != nil {
		s.c.cfg.Logger.Warn("a stop is left to its guard", "session", s.key.session, "error", err)
	}
}

// lose gives the session up: nothing in hand is acked, nak'd or prolonged any more.
func (s *session) lose(err error) {
	level := s.c.cfg.Logger.Warn
	if protocol.CodeOf(err) == protocol.CodeFenced {
		level = s.c.cfg.Logger.Info
	}
	level("a session is given up", "app", s.key.app, "session", s.key.session, "error", err)
}

// pursue starts the effects that are pending and not under way. While the log stands still and calls are open there are
// none: answers only take some away.
func (s *session) pursue(ctx context.Context) error {
	if len(s.drive.reviews) == 0 {
		if s.state.AtRest(s.c.now()) {
			return s.park(ctx)
		}
		if s.drive.held && s.state.Run == nil && s.inbox.empty() {
			if err := s.step(ctx, fold.Settle{}); err != nil || !s.state.Owned() {
				return err
			}
		}
	}
	if s.state.Seq == s.drive.pursued && s.state.Waits() {
		return nil
	}
	s.drive.pursued = s.state.Seq
	s.drive.outdate(&s.state)
	for _, e := range fold.Pending(s.state) {
		switch e := e.(type) {
		case fold.Ask:
			if s.drive.thinking == nil {
				return s.think(ctx)
			}
		case fold.Finish:
			return s.finish(ctx)
		case fold.Perform:
			s.dispatch(e)
		case fold.Revoke:
			s.revoke(e.Perform)
		case fold.Retract:
			if e.Round.Asks != nil || fault.Mutant("cancel-without-mailbox") { // asked after the cancel
				return s.step(ctx, fold.Answered{Answer: protocol.Answer{Call: e.Call.ID, Round: e.Round.N, Result: e.Result}})
			}
			ctx := s.drive.ctx
			s.start(ctx, func() { s.retract(ctx, e) })
		}
	}
	return nil
}

// wait blocks until there is something to handle. It returns no items when an instant has come.
func (s *session) wait(ctx context.Context) ([]any, error) {
	s.drive.wind(s.c, &s.state)
	select {
	case <-s.inbox.bell: // before all else that may be due, so that one history is looked at in one order
	default:
		select {
		case <-s.inbox.bell:
		case <-s.drive.alarm.Fired():
			s.drive.alarm.Stop()
		case <-ctx.Done():
			return nil, protocol.ContextError(ctx)
		}
	}
	return s.grasp(), nil
}

func (s *session) handle(ctx context.Context, items []any) error {
	var arrivals []arrival
	for i, item := range items {
		var err error
		switch item := item.(type) {
		case arrival:
			arrivals = append(arrivals, item)
			if fault.Mutant("ack-by-owner-before-fold") {
				s.settle(ctx, item)
			}
		case alarm:
			s.guarded(item)
		case question:
			s.c.reply(ctx, item.reply, protocol.OwnReply{Mine: true})
		case published:
			s.drive.published(item)
		case began:
			s.drive.began(item)
		case taken:
			s.drive.taken(item)
		case answered:
			err = s.answered(ctx, item)
		case reviewed:
			err = s.reviewedItem(ctx, item)
		case overdue:
			err = s.overdue(ctx, item)
		case thought:
			err = s.thought(ctx, item)
		case ready:
			err = s.ready(ctx, item)
		case left:
			err = s.left(ctx, item)
		case broken:
			err = s.broke(item)
		case missed:
			s.drive.lookNow(s.c.cfg.Clock.Now())
		case leave:
			s.leaving = true
			err = s.leave(ctx)
		}
		if err != nil {
			return err
		}
		if !s.state.Owned() {
			s.hold(arrivals, items[i+1:])
			return nil
		}
	}
	if err := s.receive(ctx, arrivals); err != nil {
		return err
	}
	if s.state.Owned() {
		return s.tick(ctx)
	}
	return nil
}

// receive folds what arrived, but for what the log holds already and what callbacks are to see first.
func (s *session) receive(ctx context.Context, arrivals []arrival) error {
	arrivals, guards := s.takeGuards(ctx, arrivals, nil)
	for _, g := range guards {
		s.guarded(g)
	}
	if arrivals = s.reviewArrivals(s.settleKnown(ctx, arrivals)); len(arrivals) == 0 {
		return nil
	}
	if err := s.arrive(ctx, arrivals); err != nil {
		return err
	}
	s.settleTaken(ctx, arrivals)
	return nil
}

// hold puts back what came in a round that ended the run before it was looked at: it begins the next one.
func (s *session) hold(arrivals []arrival, rest []any) {
	for _, a := range arrivals {
		a.release = func() {}
		s.inbox.put(a)
	}
	for _, item := range rest {
		switch item := item.(type) {
		case arrival:
			item.release = func() {}
			s.inbox.put(item)
		case alarm:
			item.release = func() {}
			s.inbox.put(item)
		case question:
			s.inbox.put(item)
		case leave:
			s.leaving = true
		}
	}
}

// guarded looks at a guard that fired while the session is driven here.
func (s *session) guarded(a alarm) {
	if a.guard.Park {
		s.settleTimer(context.Background(), a)
		return
	}
	if (a.guard.Adoption == s.state.Adoption || s.state.Seq <= a.guard.Expected) && !fault.Mutant("guard-acked-in-use") {
		a.delivery.Nak(guardDelay)
	} else {
		a.delivery.Ack()
	}
}

// leave hands the session over: what is certain goes into the log, the rest is the next owner's to find out.
func (s *session) leave(ctx context.Context) error {
	s.drive.stopThinking()
	if err := s.fit(ctx); err != nil {
		return err
	}
	return s.step(ctx, fold.Drain{Dispatched: s.sent()})
}

// tick does what is due by the clock.
func (s *session) tick(ctx context.Context) error {
	now := s.c.cfg.Clock.Now()
	if !s.drive.nextLook.IsZero() && !now.Before(s.drive.nextLook) {
		s.drive.nextLook = now.Add(lookEvery)
		s.look(ctx)
		if s.inbox.empty() && !s.drive.settling(s.c.now()) && len(s.drive.reviews) == 0 { // nothing came: a session whose calls all wake it need not be held
			if err := s.park(ctx); err != nil || !s.state.Owned() {
				return err
			}
		}
	}
	broker := s.c.now()
	s.tickWaits(broker)
	for _, c := range s.state.Open() {
		w := s.drive.calls[c.ID]
		if w == nil || w.ending {
			continue
		}
		switch {
		case broker >= w.end:
			s.expire(w, lateEnding(w.call))
		case broker >= w.startBy && w.sent && !w.startChecked: // what is not sent yet is its publisher's to end
			w.startChecked = true
			s.checkStart(w)
		case broker >= w.claimCheck && w.call.Effect == protocol.EffectAtMostOnce:
			s.checkClaim(w)
		}
	}
	return nil
}

const (
	firstLook = time.Second
	lookEvery = 10 * time.Second
)
