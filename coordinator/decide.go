package coordinator

import (
	"context"
	"strconv"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// unknownPatience is how long what names an unknown call or confirmation is kept: a replica may be behind the log that
// knows it.
const unknownPatience = 60 * time.Second

// approval takes a decision on a confirmation. What cannot be read gets its receipt and is kept as a dead letter.
func (c *Coordinator) approval(ctx context.Context, d natswire.Delivery, release func()) {
	c.time.Observe(d.Time)
	app, session, confirmation, approver, ok := c.cfg.Names.ParseApproval(d.Subject)
	if !ok {
		c.bury(ctx, release, "approval", d, protocol.Errorf(protocol.CodeBadMessage, "%s is no approval subject", d.Subject), c.cfg.Names.Approval(), "", "")
		return
	}
	in, err := readDecision(d.Stored, confirmation, approver)
	if err != nil {
		c.bury(ctx, release, "approval", d, err, c.cfg.Names.Approval(), app, session)
		c.background("a receipt", func() { c.receipt(ctx, key{app, session}, confirmation, approver, d.Seq, protocol.ProblemOf(err)) })
		return
	}
	c.arrive(ctx, key{app, session}, arrival{input: in, release: release}, d)
}

// readDecision reads what an approval subject holds. Its id is its place in the stream: each message is one decision.
func readDecision(m natswire.Stored, confirmation, approver string) (protocol.FoldedInput, error) {
	d, err := protocol.DecodeDecision(m.Data, confirmation)
	return protocol.FoldedInput{
		ID: "approval-" + strconv.FormatUint(m.Seq, 10), Kind: protocol.InputDecision, Client: approver, Seq: m.Seq, Sent: m.Time.UnixMilli(),
		Trace: m.Header.Get(natswire.HeaderTraceparent), Decision: &protocol.FoldedDecision{Confirmation: confirmation, Decision: d},
	}, err
}

// settleDecision settles a decision that the log holds or refuses for good, or returns false: it is to be folded. What is
// refused is told so and is not part of the log.
func (s *session) settleDecision(ctx context.Context, a *arrival) bool {
	d := a.input.Decision
	if s.state.Seen.Has(a.input.ID) {
		s.settle(ctx, *a)
		return true
	}
	refused, known := s.state.JudgeDecision(a.input)
	if !known {
		s.keep(ctx, *a, protocol.Errorf(protocol.CodeUnknownConfirm, "no confirmation %s is open in session %s: it is another session's, or there is none", d.Confirmation, s.key.session))
		return true
	}
	if refused == nil && len(d.Args) > 0 {
		refused = s.edit(&a.input)
	}
	if refused == nil {
		if c, q, ok := s.state.Question(d.Confirmation); ok && d.Confirmed && fault.Mutant("dispatch-before-decision") {
			e := fold.Perform{Call: c, Round: s.state.RoundOf(c.ID), At: s.c.now(), Wakes: true, Given: &protocol.Confirmed{ID: q.ID, Confirmed: true}}
			e.Call.Effect = protocol.EffectAtMostOnce
			if msg, err := s.envelope(&watch{startBy: e.At + c.Queue, end: e.At + c.Budget}, e); err == nil {
				_, _ = s.c.cfg.Bus.Publish(ctx, msg)
			}
		}
		if fault.Mutant("decision-acked-before-fold") {
			s.end(ctx, *a)
		}
		return false
	}
	s.c.receipt(ctx, s.key, d.Confirmation, a.input.Client, a.input.Seq, refused)
	s.end(ctx, *a)
	return true
}

// edit makes the confirmation that edited arguments need.
func (s *session) edit(in *protocol.FoldedInput) *protocol.Problem {
	d := in.Decision
	c, q, _ := s.state.Question(d.Confirmation)
	asks, args, err := s.c.desk(s.key, s.state.User).Edited(s.c.catalogue.about(c.Tool), &c, s.agentOf(c.ID), d.Args, &q)
	if err != nil {
		return protocol.ProblemOf(err)
	}
	d.Asks, d.Args = asks, args
	return nil
}

// keep holds what the log knows nothing of: it comes again until it is known, or too old for that.
func (s *session) keep(ctx context.Context, a arrival, unknown error) {
	if s.c.now()-a.stored < unknownPatience.Milliseconds() {
		s.postpone([]arrival{a}, nil, 2*time.Second)
		return
	}
	s.dismiss(ctx, a, unknown)
}

// dismiss ends a delivery that is for nothing, as a dead letter. What this process has read of the log may be old, if it was
// paused: unless the log's tail is the same now, somebody who has read on decides.
func (s *session) dismiss(ctx context.Context, a arrival, reason error) {
	if !s.current(ctx) {
		s.postpone([]arrival{a}, nil, 2*time.Second)
		return
	}
	s.c.discard(ctx, s.key, a, reason)
	if d := a.input.Decision; d != nil {
		s.c.receipt(ctx, s.key, d.Confirmation, a.input.Client, a.input.Seq, protocol.ProblemOf(reason))
	}
}

// current reports whether nothing was appended to the log behind what this process has read of it.
func (s *session) current(ctx context.Context) bool {
	tail, err := s.c.cfg.Bus.Last(ctx, s.c.cfg.Names.Log(), s.c.cfg.Names.LogSubject(s.key.app, s.key.session))
	return tail.Seq == s.state.Seq && (err == nil || protocol.CodeOf(err) == protocol.CodeNotFound)
}

// discard keeps a delivery that is for nothing as a dead letter, and ends it.
func (c *Coordinator) discard(ctx context.Context, k key, a arrival, reason error) {
	if a.delivery == nil {
		c.reply(ctx, a.reply, protocol.OwnReply{Mine: true})
		return
	}
	kind, stream := "approval", c.cfg.Names.Approval()
	if a.answer != nil {
		kind, stream = "result", c.cfg.Names.Wake()
	}
	c.bury(ctx, func() {}, kind, *a.delivery, reason, stream, k.app, k.session)
}

// receipt tells an approver what became of a decision; a nil problem is one that counts. It is lost like any core message:
// a decision that comes again gets another one.
func (c *Coordinator) receipt(ctx context.Context, k key, confirmation, approver string, seq uint64, p *protocol.Problem) {
	r := protocol.Receipt{V: protocol.Version, Confirmation: confirmation, Approver: approver, Seq: seq, Message: "the decision counts"}
	if p != nil {
		r.Code, r.Message = p.Code, p.Message
	}
	data, err := protocol.Encode(r)
	if err != nil || fault.Mutant("receipt-forgotten") {
		return
	}
	_ = c.cfg.Bus.Emit(ctx, natswire.Msg{Subject: c.cfg.Names.ReceiptSubject(k.app, k.session, confirmation), Data: data})
}
