package coordinator

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// ending is what is told about a call that ends without a worker's word.
type ending struct {
	code    protocol.Code
	outcome protocol.Outcome
	text    string // the effect may be repeated: it does not matter whether it happened
	unrun   string // certainly not executed: the claim is ours
	unsure  string // a worker has the claim and did not answer
}

// verdictWithoutWorker decides what can be said of a call that no worker answered. For a tool that must not start twice it
// takes the claim, so that "not executed" is true from then on; a worker that has it makes the outcome unknown.
func (c *Coordinator) verdictWithoutWorker(ctx context.Context, tool, call string, round int, effect protocol.Effect, e ending) (protocol.Result, error) {
	r := protocol.Result{V: protocol.Version, Outcome: e.outcome, Code: e.code, Value: protocol.ErrorValue(e.text), Worker: c.id}
	if effect != protocol.EffectAtMostOnce {
		return r, nil
	}
	if fault.Mutant("deadline-without-claim") {
		r.Value = protocol.ErrorValue(e.unrun)
		return r, nil
	}
	err := natswire.StoreClaim(ctx, c.cfg.Bus, c.cfg.Names, tool, call, round, c.cfg.NewID(), protocol.Claim{Coordinator: c.id, Code: e.code})
	if err == nil {
		r.Value = protocol.ErrorValue(e.unrun)
		return r, nil
	}
	if protocol.CodeOf(err) != protocol.CodeAnswered {
		return r, err
	}
	held, err := c.cfg.Bus.Last(ctx, c.cfg.Names.Results(), c.cfg.Names.ClaimSubject(tool, call, round))
	if err != nil {
		return r, err
	}
	var claim protocol.Claim
	if err := json.Unmarshal(held.Data, &claim); err == nil && claim.Coordinator != "" {
		r.Value = protocol.ErrorValue(e.unrun)
		return r, nil
	}
	r.Outcome, r.Code, r.Value = protocol.OutcomeUnknown, protocol.CodeOutcomeUnknown, protocol.ErrorValue(e.unsure+" (worker "+claim.Worker+" began it)")
	r.Worker, r.Attempt, r.Started = claim.Worker, claim.Attempt, held.Time.UnixMilli()
	return r, nil
}

// answer stores a result that a coordinator decided in a call's mailbox, as any worker would: the first one wins.
func (c *Coordinator) answer(ctx context.Context, mailbox string, r protocol.Result) (uint64, error) {
	data, err := protocol.Encode(r)
	if err != nil {
		return 0, err
	}
	ack, err := c.cfg.Bus.Publish(ctx, natswire.Msg{Subject: mailbox, Data: data})
	return ack.Seq, err
}

// box is the mailbox of a round of a call, and its stream.
func (s *session) box(e fold.Perform) (stream, subject string) {
	n := s.c.cfg.Names
	if e.Wakes {
		return n.Wake(), n.WakeSubject(s.key.app, e.Call.Tool, s.key.session, e.Call.ID, e.Round)
	}
	return n.Results(), n.ResultSubject(e.Call.Tool, s.key.session, e.Call.ID, e.Round)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}
