package client

import (
	"context"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// RetryLetter does once more what a dead letter's message was to do, where that is safe, and says where:
//   - an input that this build can read is published again under its own id, so that a session that has it folds it once;
//   - a call is made anew as a call of its own (app protocol.CallsApp), named after the dead one, so that retrying
//     twice makes one call: its session has been told how it ended, and that is not undone. A call that may have had an effect
//     (at_most_once, or agreed to by people) is made anew only when its claim shows that it was never executed.
//
// Everything else is refused with the reason, code unsupported: a message that nobody can read, a session that was
// quarantined, an effect that may have happened. The letter stays until it is dropped.
func (c *Client) RetryLetter(ctx context.Context, l DeadLetter) (Receipt, error) {
	switch l.Kind {
	case LetterInput:
		return c.retryInput(ctx, l)
	case LetterCall:
		return c.retryCall(ctx, l)
	case LetterSession:
		return Receipt{}, noRetry(l, "session %s is quarantined and takes no more input; say it to a new session: toolfabric run --agent %s TEXT", l.Session, l.App)
	case LetterAdvisory:
		return Receipt{}, noRetry(l, "the call is still in the queue, and a coordinator ends it when one runs")
	case "approval":
		return Receipt{}, noRetry(l, "what it decides is not known, or it cannot be read; decide anew what waits: toolfabric approvals ls")
	case "result":
		return Receipt{}, noRetry(l, "no call waits for it; toolfabric calls ls lists what waits")
	default:
		return Receipt{}, noRetry(l, "a %s is not something that can be said again", l.Kind)
	}
}

func noRetry(l DeadLetter, format string, args ...any) error {
	e := protocol.Errorf(protocol.CodeUnsupported, format, args...)
	e.Public = "dead letter " + l.ID + " cannot be retried: " + e.Public
	return e
}

func (c *Client) retryInput(ctx context.Context, l DeadLetter) (Receipt, error) {
	n := c.cfg.Names
	app, client, session, ok := n.ParseInput(l.Subject)
	if !ok {
		return Receipt{}, noRetry(l, "%q is no input subject", l.Subject)
	}
	in, err := protocol.DecodeInput(l.Data)
	if err != nil {
		return Receipt{}, noRetry(l, "it would be refused again: %s", protocol.ProblemOf(err).Message)
	}
	if err := c.checkServed(ctx, app); err != nil {
		return Receipt{}, err
	}
	ack, err := c.cfg.Bus.Publish(ctx, natswire.Msg{Subject: n.InputSubject(app, client, session), Data: l.Data})
	return Receipt{App: app, Session: session, InputID: in.ID, Seq: ack.Seq}, err
}

func (c *Client) retryCall(ctx context.Context, l DeadLetter) (Receipt, error) {
	env, err := protocol.DecodeEnvelope(l.Data)
	if err != nil {
		return Receipt{}, noRetry(l, "it is no call that a worker could run: %s", protocol.ProblemOf(err).Message)
	}
	if env.Effect == protocol.EffectAtMostOnce || env.Confirmation != nil {
		unrun, err := c.neverRan(ctx, env)
		if err != nil {
			return Receipt{}, err
		}
		if !unrun {
			return Receipt{}, noRetry(l, "%s is not repeatable, and call %s may have had its effect; look there, and make a new call if it has not: toolfabric call %s --args JSON", env.Tool, env.Call, env.Tool)
		}
	}
	return c.SendCall(ctx, env.Tool, env.Args, WithInputID("retry-"+env.Call))
}

// neverRan reports that a coordinator holds the call's claim, and so no worker ever had it.
func (c *Client) neverRan(ctx context.Context, env protocol.Envelope) (bool, error) {
	s, err := c.cfg.Bus.Last(ctx, c.cfg.Names.Results(), c.cfg.Names.ClaimSubject(env.Tool, env.Call, env.Round))
	if err != nil {
		return false, unlessNotFound(err)
	}
	var claim protocol.Claim
	if err := protocol.Decode(s.Data, &claim, protocol.MessageLimits); err != nil {
		return false, nil
	}
	return claim.Worker == "" && claim.Coordinator != "", nil
}
