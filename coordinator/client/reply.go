package client

import (
	"context"
	"encoding/json"
	"slices"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// ADK's clients answer a question with a message: a function response named adk_request_confirmation, perhaps with text beside
// it. On the bus a decision is a publish of its own, so that credentials tell who may decide; a message is no place for one.
// So one message is sent as two kinds: what is said goes to the session, and each decision to its approval subject.

// reply is one decision that was found in a message.
type reply struct {
	confirmation string
	data         []byte
}

// parted takes the decisions out of a message. rest is nil when nothing is left to say.
func parted(content *genai.Content) (rest *genai.Content, replies []reply, err error) {
	isReply := func(p *genai.Part) bool {
		return p != nil && p.FunctionResponse != nil && p.FunctionResponse.Name == protocol.ConfirmationFunction
	}
	if content == nil || !slices.ContainsFunc(content.Parts, isReply) {
		return content, nil, nil
	}
	said := &genai.Content{Role: content.Role}
	for _, p := range content.Parts {
		if !isReply(p) {
			said.Parts = append(said.Parts, p)
			continue
		}
		r := p.FunctionResponse
		if err := protocol.CheckID(r.ID); err != nil {
			return nil, nil, err
		}
		data, err := json.Marshal(map[string]any{"id": r.ID, "name": r.Name, "response": r.Response})
		if err != nil {
			return nil, nil, protocol.Wrap(err, protocol.CodeBadMessage, "the decision on %s cannot be encoded", r.ID)
		}
		if _, err := protocol.DecodeDecision(data, r.ID); err != nil {
			return nil, nil, err // the receiver would refuse it
		}
		replies = append(replies, reply{r.ID, data})
	}
	if len(said.Parts) == 0 {
		return nil, replies, nil
	}
	return said, replies, nil
}

// decideAll publishes decisions under the client's own name and waits for the receipts. It returns where the last one is
// stored, and the first that does not count as an error with the receipt's code.
func (c *Client) decideAll(ctx context.Context, app, session string, replies []reply) (seq uint64, err error) {
	for _, r := range replies {
		receipt, stored, decideErr := c.reply(ctx, app, session, r.confirmation, c.cfg.Client, r.data, func(seq uint64) (protocol.Receipt, bool, error) {
			return c.loggedDecision(ctx, app, session, r.confirmation, 0, c.cfg.Client, seq)
		})
		if decideErr == nil && receipt.Code != "" {
			decideErr = protocol.Errorf(receipt.Code, "the decision on %s does not count: %s", r.confirmation, receipt.Message)
		}
		if err == nil {
			err = decideErr
		}
		seq = stored
	}
	return seq, err
}

// reply publishes a decision and waits for its receipt; logged makes the receipt out of the log when it was lost.
func (c *Client) reply(ctx context.Context, app, session, confirmation, approver string, data []byte, logged func(seq uint64) (protocol.Receipt, bool, error)) (protocol.Receipt, uint64, error) {
	n := c.cfg.Names
	receipts := make(chan protocol.Receipt, 64)
	unsubscribe, err := c.cfg.Bus.Subscribe(n.ReceiptSubject(app, session, confirmation), func(m natswire.Msg) {
		var r protocol.Receipt
		if protocol.Decode(m.Data, &r, protocol.MessageLimits) != nil || r.Confirmation != confirmation || r.Approver != approver {
			return
		}
		select {
		case receipts <- r:
		default: // only this approver's own are kept, and the log is asked in the end
		}
	})
	if err != nil {
		return protocol.Receipt{}, 0, err
	}
	defer unsubscribe()
	ack, err := c.cfg.Bus.Publish(ctx, natswire.Msg{Subject: n.ApprovalSubject(app, session, confirmation, approver), Data: data})
	if err != nil {
		return protocol.Receipt{}, 0, err
	}
	r, err := c.awaitReceipt(ctx, app, ack.Seq, receipts, logged)
	return r, ack.Seq, err
}
