package worker

import (
	"context"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// How often a claim is tried whose fate is not known. All tries lie within the broker's dedupe window of two minutes,
// and carry one id: only then is a repeat recognised as one's own.
const (
	claimTries = 4
	claimFirst = 100 * time.Millisecond
	claimLast  = time.Second
)

// mustClaim reports whether the effect of a call may start only once. Whoever asks for more care, caller, tool or a person
// who was asked, gets it: one agreement is used once.
func (r *run) mustClaim() bool {
	if fault.Mutant("claim-none") {
		return false
	}
	repeatable := r.env.Effect == protocol.EffectRead || r.env.Effect == protocol.EffectIdempotent
	return !repeatable || r.pool.decl.Class() == protocol.EffectAtMostOnce || r.pool.decl.Confirm || r.env.Confirmation != nil
}

// claim takes the right to start the call. Without it the verdict says what becomes of the message: dropped when somebody
// else has the claim, because they run the call, ran it or ended it; returned when the broker cannot be asked. A claim that
// landed all the same stops the next delivery, which is safe: the coordinator then ends the call as outcome_unknown.
func (w *Worker) claim(ctx context.Context, r *run) (verdict, bool) {
	id := w.cfg.NewID()
	c := protocol.Claim{Worker: w.cfg.ID, Attempt: r.first.Attempt}
	for try := 0; ; try++ {
		err := natswire.StoreClaim(ctx, w.cfg.Bus, w.cfg.Names, r.pool.name, r.env.Call, r.env.Round, id, c)
		switch protocol.CodeOf(err) {
		case "":
			return verdict{}, true
		case protocol.CodeAnswered:
			if fault.Mutant("claim-of-another") {
				return verdict{}, true
			}
			return dropped(protocol.CodeAnswered), false
		case protocol.CodeStorageFull, protocol.CodeForbidden, protocol.CodeTooLarge, protocol.CodeNotFound:
			return returned(backoff(retryFirst, retryLast, r.first.Attempt, r.env.Call), err), false
		}
		if try+1 == claimTries || ctx.Err() != nil {
			return returned(returnDelay, err), false
		}
		w.events.Retrying(r.info, err)
		w.sleep(ctx, backoff(claimFirst, claimLast, try, r.env.Call))
	}
}
