package coordinator

import (
	"context"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// maxGuard is the size in bytes of the largest input that is kept in INPUT for as long as its run takes.
const maxGuard = 64 << 10

// guardOf is the delivery that guards an adoption taken for these arrivals; nil when it takes a timer. As long as nobody
// acks an input it comes again, to whoever finds out then what became of the run. Nobody does: who sees it folded sees the
// adoption that it guards.
func guardOf(arrivals []arrival) *natswire.Delivery {
	if fault.Mutant("adopt-without-guard") {
		return nil
	}
	for _, a := range arrivals {
		if d := a.delivery; d != nil && a.isInput() && len(d.Data) <= maxGuard {
			return d
		}
	}
	return nil
}

// guard sets the timer that guards an adoption.
func (s *session) guard(ctx context.Context, adoption string) error {
	delay := guardDelay * time.Duration(1+s.state.Barren) // a session that keeps killing its owners is taken up more slowly
	err := natswire.SetGuard(ctx, s.c.cfg.Bus, s.c.cfg.Names, s.key.app, s.key.session, s.c.time.Now().Add(delay),
		protocol.Guard{Coordinator: s.c.id, Adoption: adoption, Expected: s.state.Seq})
	if err == nil && fault.Mutant("adopt-without-guard") {
		_ = s.perform(ctx, fold.Disarm{Adoption: adoption})
	}
	return err
}

// guards reports whether an input is the guard of the adoption that the log ends in.
func (s *session) guards(a *arrival) bool {
	return s.state.Guard != 0 && a.isInput() && a.input.Seq == s.state.Guard
}

// takeGuards takes the inputs that are guards out of arrivals, and adds them to the alarms: what is to be done with them
// depends on what became of their adoption. One that another coordinator passed on stays with that one.
func (s *session) takeGuards(ctx context.Context, arrivals []arrival, alarms []alarm) ([]arrival, []alarm) {
	var inputs []arrival
	for _, a := range arrivals {
		switch {
		case !s.guards(&a) || fault.Mutant("guard-input-acked-known"):
			inputs = append(inputs, a)
		case a.delivery == nil:
			s.c.reply(ctx, a.reply, protocol.OwnReply{Mine: s.drives()})
		default:
			alarms = append(alarms, alarm{guard: protocol.Guard{Adoption: s.state.Adoption}, delivery: *a.delivery})
		}
	}
	return inputs, alarms
}

// settleAlarms looks at fired guards. A guard whose adoption stopped or was superseded is acked once the stop's effects
// are carried out; one whose adoption is not in the log waits for its cause; the others ask for an adoption: owed is one of
// them.
func (s *session) settleAlarms(ctx context.Context, alarms []alarm) (wanted bool, owed []alarm) {
	for _, a := range alarms {
		switch g := a.guard; {
		case g.Park:
			if s.settleTimer(ctx, a) {
				owed = append(owed, a)
			}
		case g.Adoption != s.state.Adoption && s.state.Seq <= g.Expected && !fault.Mutant("guard-of-no-adoption"):
			if s.state.Seq == g.Expected || a.delivery.Attempt < guardBelief {
				a.delivery.Nak(guardDelay) // its input is unacked and adopts
				continue
			}
			// The log lost its end: it was restored. What it says counts from here on.
			if s.state.Owned() || s.state.Stopped == protocol.StopDrained {
				owed = append(owed, a)
			} else {
				s.concluded(ctx, a)
			}
		case g.Adoption != s.state.Adoption:
			a.delivery.Ack()
		case s.state.Owned() && fault.Mutant("guard-acked-owned"):
			a.delivery.Ack()
		case s.state.Owned() || s.state.Stopped == protocol.StopDrained:
			owed = append(owed, a)
		case fault.Mutant("guard-acked-unread"):
			a.delivery.Ack()
		default:
			s.concluded(ctx, a)
		}
	}
	return len(owed) > 0, owed
}

// guardBelief is how often a guard comes whose expected sequence is not in the log yet, until the log is believed.
const guardBelief = 20

// concluded ends a guard once the stop it found is carried out.
func (s *session) concluded(ctx context.Context, a alarm) {
	if s.conclude(ctx) == nil {
		a.delivery.Ack()
	} else {
		a.delivery.Nak(guardDelay)
	}
}
