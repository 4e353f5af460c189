package client

import (
	"context"
	"errors"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
)

// ErrNoReceipt is the cause of an error when a decision is stored and nobody has said what became of it.
var ErrNoReceipt = errors.New("no receipt")

// receiptWait is how long a receipt may take: a session whose coordinator died is driven again within 15 s.
const receiptWait = 30 * time.Second

// Decide publishes approver's word (empty is the client's own name) on what p waits for and waits for the receipt. The
// decision is bound to what p shows: without a digest of its own it carries p's, so that other arguments are not
// agreed to. A receipt with a Code is a decision that does not count, and no error. Errors are bad_message for a decision
// that nobody would read and for a call that waits for no decision, digest_mismatch for a record that is not
// Verified, bad_id, and bus_unreachable with ErrNoReceipt when the decision is stored and no receipt came within 30 s: it
// counts as soon as a coordinator reads it.
func (c *Client) Decide(ctx context.Context, p Parked, d protocol.Decision, approver string) (protocol.Receipt, error) {
	if p.Confirmation == nil {
		return protocol.Receipt{}, protocol.Errorf(protocol.CodeBadMessage, "call %s waits for a result, not for a decision; toolfabric calls complete %s gives it one", p.Call, p.Call)
	}
	if d.Confirmed && !p.Verified() {
		return protocol.Receipt{}, protocol.Errorf(protocol.CodeDigestMismatch, "the arguments shown for call %s are not those that its digest names; nothing was decided, look at it again", p.Call)
	}
	if approver == "" {
		approver = c.cfg.Client
	}
	if d.Digest == "" {
		d.Digest = p.Confirmation.Digest
	}
	data, err := encodeDecision(p, d, approver)
	if err != nil {
		return protocol.Receipt{}, err
	}
	r, _, err := c.reply(ctx, p.App, p.Session, p.Confirmation.ID, approver, data, func(seq uint64) (protocol.Receipt, bool, error) {
		return c.loggedDecision(ctx, p.App, p.Session, p.Confirmation.ID, p.Seq, approver, seq)
	})
	return r, err
}

func encodeDecision(p Parked, d protocol.Decision, approver string) ([]byte, error) {
	for _, id := range []string{p.App, p.Session, p.Confirmation.ID, approver} {
		if err := protocol.CheckID(id); err != nil {
			return nil, err
		}
	}
	if len(d.Args) > 0 {
		if err := protocol.Check(d.Args, protocol.ArgsLimits); err != nil {
			return nil, err
		}
	}
	if len(d.Payload) > 0 {
		if err := protocol.Check(d.Payload, protocol.MessageLimits); err != nil {
			return nil, err
		}
	}
	data, err := protocol.Encode(d)
	if err != nil {
		return nil, err
	}
	_, err = protocol.DecodeDecision(data, p.Confirmation.ID) // the receiver would refuse it
	return data, err
}

func (c *Client) awaitReceipt(ctx context.Context, app string, seq uint64, receipts <-chan protocol.Receipt, logged func(seq uint64) (protocol.Receipt, bool, error)) (protocol.Receipt, error) {
	late, stop := c.cfg.Clock.After(receiptWait)
	defer stop()
	for {
		select {
		case r := <-receipts:
			if r.Seq == seq {
				return r, nil
			}
		case <-ctx.Done():
			return protocol.Receipt{}, protocol.ContextError(ctx)
		case <-late:
			r, found, err := logged(seq)
			if found || err != nil {
				return r, err
			}
			return protocol.Receipt{}, protocol.Wrap(ErrNoReceipt, protocol.CodeUnreachable,
				"the decision is stored (number %d), but no coordinator of %s has read it within %s; it counts as soon as one does", seq, app, receiptWait)
		}
	}
}

// loggedDecision makes the receipt that was lost on its way out of the log, which has the decision when it counted.
func (c *Client) loggedDecision(ctx context.Context, app, session, confirmation string, from uint64, approver string, seq uint64) (protocol.Receipt, bool, error) {
	log, err := c.Log(ctx, app, session, from)
	if err != nil {
		return protocol.Receipt{}, false, err
	}
	for _, e := range log {
		for _, in := range e.Event.Inputs {
			if in.Kind != protocol.InputDecision || in.Seq != seq || in.Client != approver {
				continue
			}
			r := protocol.Receipt{V: protocol.Version, Confirmation: confirmation, Approver: approver, Seq: seq, Message: "the decision is in the session's log"}
			if in.Refused != nil {
				r.Code, r.Message = in.Refused.Code, in.Refused.Message
			}
			return r, true, nil
		}
	}
	return protocol.Receipt{}, false, nil
}
