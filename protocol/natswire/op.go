package natswire

import (
	"context"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
)

// StoreClaim tries to take the right to start a call's effect. It returns nil when it is the caller's, and code already_answered when
// somebody else has it. delivery is an unguessable id, new for each attempt to claim, so that a claim whose ack was lost
// is recognised as one's own when it is stored again.
func StoreClaim(ctx context.Context, bus Bus, n Names, tool, call string, round int, delivery string, c protocol.Claim) error {
	c.V = protocol.Version
	data, err := protocol.Encode(c)
	if err != nil {
		return err
	}
	_, err = bus.Publish(ctx, Msg{Subject: n.ClaimSubject(tool, call, round), ID: delivery, Data: data})
	return err
}

// StoreResult puts a call's result into its mailbox and returns its stream sequence. The first result wins: code
// already_answered when there is one.
func StoreResult(ctx context.Context, bus Bus, n Names, tool, session, call string, round int, h Header, r protocol.Result) (uint64, error) {
	return storeIn(ctx, bus, n.ResultSubject(tool, session, call, round), h, r)
}

// StoreWake is StoreResult for the mailbox whose deliveries wake the session.
func StoreWake(ctx context.Context, bus Bus, n Names, app, tool, session, call string, round int, h Header, r protocol.Result) (uint64, error) {
	return storeIn(ctx, bus, n.WakeSubject(app, tool, session, call, round), h, r)
}

func storeIn(ctx context.Context, bus Bus, mailbox string, h Header, r protocol.Result) (uint64, error) {
	r.V = protocol.Version
	data, err := protocol.Encode(r)
	if err != nil {
		return 0, err
	}
	ack, err := bus.Publish(ctx, Msg{Subject: mailbox, Header: h, Data: data})
	return ack.Seq, err
}

// SetGuard arms the timer that notices that the coordinator of an adoption died or, with g.Park, that a call of the session
// that this adoption parked has waited long enough. Setting it again replaces it.
func SetGuard(ctx context.Context, bus Bus, n Names, app, session string, at time.Time, g protocol.Guard) error {
	g.V = protocol.Version
	data, err := protocol.Encode(g)
	if err != nil {
		return err
	}
	_, err = bus.Publish(ctx, Msg{Subject: n.TimerSubject(app, session, timerID(g.Adoption, g.Park)), Data: data, At: at, Target: n.DueSubject(app, session)})
	return err
}

// RemoveGuard disarms a guard that has not fired. Idempotent.
func RemoveGuard(ctx context.Context, bus Bus, n Names, app, session, adoption string) error {
	return bus.Purge(ctx, n.Timers(), n.TimerSubject(app, session, timerID(adoption, false)), 0)
}

// RemoveParkTimer disarms the timer of a parked session that has not fired. Idempotent.
func RemoveParkTimer(ctx context.Context, bus Bus, n Names, app, session, adoption string) error {
	return bus.Purge(ctx, n.Timers(), n.TimerSubject(app, session, timerID(adoption, true)), 0)
}

func timerID(adoption string, park bool) string {
	if park {
		return adoption + "-park"
	}
	return adoption
}
