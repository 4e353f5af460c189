package client

import (
	"context"
	"encoding/json"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// Complete gives a waiting call its result from outside and returns the result's number in WAKE. An outcome of
// completed, failed or cancelled ends the call; pending is an interim answer, which the model may read and after which the
// call waits on in its next round. The first stored result of a round wins: code already_answered for every
// other. A value that is no object travels as {"result": value}. It returns bad_message for a call that waits for a
// decision or is with its pool, and for a value that is no JSON, and too_large.
func (c *Client) Complete(ctx context.Context, p Parked, r protocol.Result) (uint64, error) {
	if p.Confirmation != nil {
		return 0, protocol.Errorf(protocol.CodeBadMessage, "call %s waits for a decision and has not run; toolfabric approvals show %s tells which", p.Call, p.Call)
	}
	if p.WithPool() {
		return 0, protocol.Errorf(protocol.CodeBadMessage, "call %s is with the workers of %s, which have not said that its result comes from outside", p.Call, p.Tool)
	}
	switch r.Outcome {
	case protocol.OutcomeCompleted, protocol.OutcomeFailed, protocol.OutcomeCancelled, protocol.OutcomePending:
	default:
		return 0, protocol.Errorf(protocol.CodeBadMessage, "outcome %.40q: a result from outside is completed, failed, cancelled or pending", r.Outcome)
	}
	r.V, r.Worker = protocol.Version, c.cfg.Client
	if len(r.Value) > 0 {
		if err := protocol.Check(r.Value, protocol.MessageLimits); err != nil {
			return 0, err
		}
		r.Value = asObject(r.Value)
	}
	if len(r.Value) > protocol.MaxInlineResult {
		return 0, protocol.Errorf(protocol.CodeTooLarge, "the result of call %s has %d bytes, the limit is %d; store it elsewhere and give its address", p.Call, len(r.Value), protocol.MaxInlineResult)
	}
	data, err := protocol.Encode(r)
	if err != nil {
		return 0, err
	}
	if _, err := protocol.DecodeResult(data); err != nil {
		return 0, err // the receiver would refuse it
	}
	subject := c.cfg.Names.WakeSubject(p.App, p.Tool, p.Session, p.Call, p.Round) // never the one that the record names
	ack, err := c.cfg.Bus.Publish(ctx, natswire.Msg{Subject: subject, Data: data})
	if protocol.CodeOf(err) == protocol.CodeAnswered {
		return 0, protocol.Errorf(protocol.CodeAnswered, "call %s has a result already, and the first one counts; see it with toolfabric calls show %s", p.Call, p.Call)
	}
	return ack.Seq, err
}

// ReportProgress tells whoever watches how far a waiting call is. It is lossy, stored nowhere, and wakes nobody.
func (c *Client) ReportProgress(ctx context.Context, p Parked, progress protocol.Progress) error {
	if progress.Percent < 0 || progress.Percent > 100 {
		return protocol.Errorf(protocol.CodeBadMessage, "%g is no percentage: it is 0 to 100", progress.Percent)
	}
	progress.Worker = c.cfg.Client
	data, err := protocol.Encode(progress)
	if err != nil {
		return err
	}
	return c.cfg.Bus.Emit(ctx, natswire.Msg{Subject: c.cfg.Names.ProgressSubject(p.Tool, p.Session, p.Call), Data: data})
}

// asObject is a value as results carry it.
func asObject(value json.RawMessage) json.RawMessage {
	value = protocol.Compact(value)
	if value[0] == '{' {
		return value
	}
	return append(append(json.RawMessage(`{"result":`), value...), '}')
}
