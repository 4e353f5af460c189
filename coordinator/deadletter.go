package coordinator

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// bury keeps a message that cannot be read, with its reason, and ends its delivery. While the record cannot be stored the
// message stays where it is.
func (c *Coordinator) bury(ctx context.Context, release func(), kind string, d natswire.Delivery, reason error, stream, app, session string) {
	p := protocol.ProblemOf(reason)
	letter := protocol.DeadLetter{
		Code: p.Code, Reason: p.Message, Stream: stream, Subject: d.Subject, Seq: d.Seq, App: app, Session: session, Data: d.Data,
	}
	id := c.cfg.NewID()
	c.background("the burial of a message", func() {
		defer release()
		if fault.Mutant("letter-lost") {
			d.Term(string(p.Code))
			return
		}
		if err := c.record(ctx, kind, id, letter); err != nil {
			d.Nak(guardDelay)
			return
		}
		d.Term(string(p.Code))
	})
}

// record stores a dead letter. Storing it again under its id adds nothing that a reader sees. It has no message id: workers
// may write to this stream, and whoever uses an id first would keep the record out.
func (c *Coordinator) record(ctx context.Context, kind, id string, letter protocol.DeadLetter) error {
	data, err := letter.Encode()
	if err != nil {
		return err
	}
	_, err = c.cfg.Bus.Publish(ctx, natswire.Msg{Subject: c.cfg.Names.DeadLetterSubject(kind, id), Data: data})
	return err
}

const poisonDurable = "poison"

// poisonConsumer is shared by all coordinators: the broker's word that a call was delivered too often.
func (c *Coordinator) poisonConsumer() natswire.Consumer {
	n := c.cfg.Names
	return natswire.Consumer{
		Stream: n.DeadLetters(), Durable: poisonDurable, Filter: n.MaxDeliveriesFilter(),
		AckWait: 30 * time.Second, MaxDeliver: -1, MaxAckPending: -1,
	}
}

// poison ends a call that the broker no longer delivers: its answer says so, its message goes to the dead letters, and
// the queue is rid of it.
func (c *Coordinator) poison(ctx context.Context, d natswire.Delivery, release func()) {
	c.background("the end of a poison call", func() {
		defer release()
		c.settlePoison(ctx, d)
	})
}

func (c *Coordinator) settlePoison(ctx context.Context, d natswire.Delivery) {
	var adv struct {
		Stream     string `json:"stream"`
		Consumer   string `json:"consumer"`
		Seq        uint64 `json:"stream_seq"`
		Deliveries int    `json:"deliveries"`
	}
	if err := json.Unmarshal(d.Data, &adv); err != nil || adv.Stream != c.cfg.Names.Calls() {
		d.Term("not an advisory of CALLS")
		return
	}
	msg, err := c.cfg.Bus.At(ctx, adv.Stream, adv.Seq)
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		d.Ack()
		return
	}
	if err == nil {
		err = c.endPoison(ctx, msg, adv.Deliveries)
	}
	if err != nil {
		c.cfg.Logger.Warn("cannot settle a poison call yet", "tool", adv.Consumer, "seq", adv.Seq, "error", err)
		d.Nak(guardDelay)
		return
	}
	d.Ack()
}

func (c *Coordinator) endPoison(ctx context.Context, msg natswire.Stored, deliveries int) error {
	letter := protocol.DeadLetter{Code: protocol.CodePoison, Stream: c.cfg.Names.Calls(), Subject: msg.Subject, Seq: msg.Seq, Data: msg.Data,
		Reason: "the worker died or fell silent each time the call was delivered"}
	env, err := protocol.DecodeEnvelope(msg.Data)
	if err == nil {
		letter.App, letter.Session, letter.Tool, letter.Call = env.App, env.Session, env.Tool, env.Call
		r, err := c.verdictWithoutWorker(ctx, env.Tool, env.Call, env.Round, env.Effect, ending{
			code: protocol.CodePoison, outcome: protocol.OutcomeFailed,
			text:   "the worker died or fell silent each time it was given this call, " + times(deliveries) + "; it will not be tried again",
			unrun:  "the worker died or fell silent each time before it began this call, " + times(deliveries) + "; the call was not executed",
			unsure: "the worker died or fell silent while it ran this call; whether the effect happened is unknown",
		})
		if err != nil {
			return err
		}
		mailbox := c.cfg.Names.ResultSubject(env.Tool, env.Session, env.Call, env.Round)
		if env.AnswersTo == protocol.MailboxWake {
			mailbox = c.cfg.Names.WakeSubject(env.App, env.Tool, env.Session, env.Call, env.Round)
		}
		if _, err := c.answer(ctx, mailbox, r); err != nil && protocol.CodeOf(err) != protocol.CodeAnswered {
			return err
		}
	} else {
		letter.Code, letter.Reason = protocol.CodeOf(err), "a call that cannot be read: "+protocol.ProblemOf(err).Message
		letter.Tool = strings.TrimPrefix(msg.Subject, c.cfg.Names.CallSubject(""))
	}
	id := letter.Call
	if id == "" {
		id = c.cfg.NewID()
	}
	if err := c.record(ctx, "call", id, letter); err != nil {
		return err
	}
	return c.cfg.Bus.Remove(ctx, c.cfg.Names.Calls(), msg.Seq)
}
