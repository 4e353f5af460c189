package coordinator

import (
	"context"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/coordinator/internal/view"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// goneFor is how long the marker of a call that is not listed any more stays: longer than any coordinator is paused between
// its look at the log and its write.
const goneFor = 24 * time.Hour

// park lets go of the session: whatever its calls wait for wakes some coordinator by its own delivery.
func (s *session) park(ctx context.Context) error {
	return s.step(ctx, fold.Park{Dispatched: s.sent()})
}

// sent is the open calls that are certainly stored in their queues.
func (s *session) sent() map[string]protocol.Dispatch {
	sent := map[string]protocol.Dispatch{}
	for _, c := range s.state.Open() {
		if w := s.drive.calls[c.ID]; w != nil && w.sent {
			sent[c.ID] = protocol.Dispatch{Seq: w.seq, Taken: w.taken}
		}
	}
	return sent
}

// list brings the index in line with the stop that the log ends in. PARK is never read to decide anything.
func (s *session) list(ctx context.Context, gone []string) error {
	for _, call := range gone {
		if err := s.unlist(ctx, call); err != nil {
			return err
		}
	}
	for _, w := range s.state.Listing() {
		if err := s.put(ctx, view.Parked(s.c.cfg.Names, &s.state, w)); err != nil {
			return err
		}
	}
	return nil
}

// put lists a call, unless the log has moved on: the key's revision is read before the log, so that a write which comes
// after somebody else's is refused.
func (s *session) put(ctx context.Context, p protocol.Parked) error {
	bus, n := s.c.cfg.Bus, s.c.cfg.Names
	key := n.ParkSubject(p.App, p.Session, p.Call)
	data, err := protocol.Encode(p)
	if err != nil {
		return err
	}
	for {
		held, err := bus.Last(ctx, n.ParkStream(), key)
		if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
			return err
		}
		tail, err := bus.Last(ctx, n.Log(), n.LogSubject(p.App, p.Session))
		if err != nil {
			return err
		}
		if tail.Seq != s.state.Seq && !fault.Mutant("park-written-late") {
			return nil // whoever drives it now lists what waits then
		}
		msg := natswire.Msg{Subject: key, Data: data, Expect: &held.Seq}
		if fault.Mutant("park-written-late") {
			msg.Expect = nil
		}
		if _, err = bus.Publish(ctx, msg); protocol.CodeOf(err) != protocol.CodeFenced {
			return err
		}
	}
}

// unlist takes a call that has ended from the index; the log never opens it again.
func (s *session) unlist(ctx context.Context, call string) error {
	bus, n := s.c.cfg.Bus, s.c.cfg.Names
	key := n.ParkSubject(s.key.app, s.key.session, call)
	for {
		held, err := bus.Last(ctx, n.ParkStream(), key) // also where there is nothing: somebody may be about to list it
		if err == nil && natswire.KeyDeleted(held.Header) || err != nil && fault.Mutant("unlisted-without-marker") {
			return nil
		}
		if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
			return err
		}
		marker := natswire.DeleteKey(key)
		marker.Expect, marker.TTL = &held.Seq, goneFor
		if _, err = bus.Publish(ctx, marker); protocol.CodeOf(err) != protocol.CodeFenced {
			return err
		}
	}
}

// arm sets the timer that wakes the parked session when its first wait is over.
func (s *session) arm(ctx context.Context, adoption string, at int64) error {
	return natswire.SetGuard(ctx, s.c.cfg.Bus, s.c.cfg.Names, s.key.app, s.key.session, time.UnixMilli(at),
		protocol.Guard{Coordinator: s.c.id, Adoption: adoption, Expected: s.state.Seq, Park: true})
}

// settleTimer looks at a timer of a parked session that has fired. It reports whether a wait is over, so that the session
// must be adopted.
func (s *session) settleTimer(ctx context.Context, a alarm) (wanted bool) {
	g := a.guard
	switch {
	case s.state.Seq < g.Expected || s.state.Adoption == g.Adoption && s.state.Owned():
		a.delivery.Nak(guardDelay) // a reader behind the log: the timer is set after its stop
		return false
	case s.state.Adoption != g.Adoption:
		a.delivery.Ack() // superseded: the next stop arms its own
		return false
	}
	due := s.state.Due()
	if fault.Mutant("timer-acked-unread") || due == 0 || s.state.Closed() != nil {
		a.delivery.Ack()
		return false
	}
	if due <= s.c.now() {
		return true
	}
	if s.arm(ctx, g.Adoption, due) == nil { // it fired early
		a.delivery.Ack()
	} else {
		a.delivery.Nak(guardDelay)
	}
	return false
}
