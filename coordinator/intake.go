package coordinator

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// intake is one durable that the coordinators of a group share. handle is called for one delivery after the other, in the
// order in which they came, and must not block.
type intake struct {
	consumer natswire.Consumer
	handle   func(ctx context.Context, d natswire.Delivery, release func())
}

func (c *Coordinator) intakes() []intake {
	n := c.cfg.Names
	apps := []string{protocol.CallsApp}
	apps = append(apps, slices.Sorted(maps.Keys(c.agents))...)
	var all []intake
	for _, app := range apps {
		all = append(all,
			intake{natswire.Consumer{Stream: n.Input(), Durable: app, Filter: n.InputFilter(app), AckWait: inputLease, MaxDeliver: -1, MaxAckPending: -1}, c.input},
			intake{natswire.Consumer{Stream: n.Wake(), Durable: app, Filter: n.WakeFilter(app), AckWait: inputLease, MaxDeliver: -1, MaxAckPending: -1}, c.wake},
			intake{natswire.Consumer{Stream: n.Approval(), Durable: app, Filter: n.ApprovalFilter(app), AckWait: inputLease, MaxDeliver: -1, MaxAckPending: -1}, c.approval},
			intake{natswire.Consumer{Stream: n.Timers(), Durable: app, Filter: n.DueFilter(app), AckWait: inputLease, MaxDeliver: -1, MaxAckPending: -1}, c.due})
	}
	return append(all, intake{c.poisonConsumer(), c.poison})
}

// serve pulls from a durable until ctx ends, and makes it anew when somebody deleted it. What the handlers started goes on
// when ctx ends.
func (c *Coordinator) serve(ctx, work context.Context, in intake) {
	for wait := 100 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 5*time.Second) {
		lost := make(chan error, 1)
		var puller natswire.Puller
		ready := make(chan struct{})
		puller, err := c.cfg.Bus.Pull(ctx, in.consumer.Stream, in.consumer.Durable, natswire.PullEvents{
			Deliver: func(d natswire.Delivery) {
				release := func() { <-ready; puller.Want(1) }
				defer func() {
					if r := recover(); r != nil {
						c.panicked("the intake of "+d.Subject, r)
						release()
					}
				}()
				in.handle(work, d, release)
			},
			Lost: func(err error) { lost <- err },
		})
		if err == nil {
			wait = 100 * time.Millisecond
			close(ready)
			puller.Want(intakeCredit)
			select {
			case <-ctx.Done():
				puller.Close()
				return
			case err = <-lost:
			}
		}
		c.cfg.Logger.Warn("lost a consumer; opening it again", "stream", in.consumer.Stream, "consumer", in.consumer.Durable, "error", err)
		if natswire.Sleep(ctx, c.cfg.Clock, wait) != nil {
			return
		}
		if err := c.cfg.Bus.EnsureConsumer(ctx, in.consumer); err != nil {
			c.cfg.Logger.Warn("cannot make a consumer", "stream", in.consumer.Stream, "consumer", in.consumer.Durable, "error", err)
		}
	}
}

// arrival is an input in hand, a decision or a call's answer: from INPUT, APPROVAL or WAKE, or passed on by another
// coordinator. release, once called, lets another delivery in; it bounds how many are looked at at once, not how many
// sessions run.
type arrival struct {
	input    protocol.FoldedInput
	answer   *answered          // nil for an input or decision
	stored   int64              // JetStream timestamp, Unix milliseconds
	delivery *natswire.Delivery // nil when it was passed on
	reply    string             // of the one who passed it on; empty when that one was told to come again
	seen     bool               // callbacks have had their say
	first    bool               // its id is its session's name
	ends     *protocol.Answer   // what they made of the call that a decision is about; nil: it goes on as decided
	release  func()
}

// isInput reports whether it is what INPUT holds, and no decision or answer.
func (a *arrival) isInput() bool { return a.answer == nil && a.input.Decision == nil }

// alarm is a guard that has fired, or an input that is one and came again.
type alarm struct {
	guard    protocol.Guard
	delivery natswire.Delivery
	release  func() // nil for an input
}

// question is another coordinator asking whether this one drives the session.
type question struct{ reply string }

// missed says that answers may have passed by unheard.
type missed struct{}

// leave asks a session to hand itself over.
type leave struct{}

// input takes a delivery of INPUT. What cannot be read is kept as a dead letter and never comes back.
func (c *Coordinator) input(ctx context.Context, d natswire.Delivery, release func()) {
	fault.Point("K3")
	c.time.Observe(d.Time)
	app, client, session, ok := c.cfg.Names.ParseInput(d.Subject)
	if !ok {
		c.bury(ctx, release, "input", d, protocol.Errorf(protocol.CodeBadMessage, "%s is no input subject", d.Subject), c.cfg.Names.Input(), "", "")
		return
	}
	in, err := protocol.DecodeInput(d.Data)
	for _, id := range []string{client, session} {
		if err == nil {
			err = protocol.CheckID(id)
		}
	}
	if err != nil {
		c.bury(ctx, release, "input", d, err, c.cfg.Names.Input(), app, session)
		return
	}
	c.arrive(ctx, key{app, session}, arrival{release: release, first: in.ID == session, input: protocol.FoldedInput{
		ID: in.ID, Kind: in.Kind, Client: client, Trace: d.Header.Get(natswire.HeaderTraceparent),
		Content: in.Content, Call: in.Call, StateDelta: in.StateDelta, Target: in.Target,
	}}, d)
}

// arrive hands a delivery to its session.
func (c *Coordinator) arrive(ctx context.Context, k key, a arrival, d natswire.Delivery) {
	a.delivery, a.stored = &d, d.Time.UnixMilli()
	if a.answer == nil {
		a.input.Seq, a.input.Sent = d.Seq, a.stored
	}
	if !c.give(ctx, k, a) {
		d.Nak(0) // draining: another coordinator takes it
	}
}

// due takes a fired timer.
func (c *Coordinator) due(ctx context.Context, d natswire.Delivery, release func()) {
	c.time.Observe(d.Time)
	app, session, ok := c.cfg.Names.ParseDue(d.Subject)
	var g protocol.Guard
	err := protocol.Decode(d.Data, &g, protocol.MessageLimits)
	if err == nil {
		err = protocol.CheckVersion(g.V)
	}
	if err == nil && !ok {
		err = protocol.Errorf(protocol.CodeBadMessage, "%s is no due subject", d.Subject)
	}
	if err != nil {
		c.bury(ctx, release, "timer", d, err, c.cfg.Names.Timers(), app, session)
		return
	}
	if !c.give(ctx, key{app, session}, alarm{guard: g, delivery: d, release: release}) {
		d.Nak(0)
	}
}

// answerOwn takes a question about a session, which its loop answers.
func (c *Coordinator) answerOwn(ctx context.Context, m natswire.Msg) {
	defer c.contain("a question about a session")
	var req protocol.OwnRequest
	if err := json.Unmarshal(m.Data, &req); err != nil || protocol.CheckVersion(req.V) != nil {
		return
	}
	k := key{req.App, req.Session}
	var item any = question{m.Reply}
	switch {
	case req.Input != nil:
		item = arrival{input: *req.Input, stored: req.Input.Sent, reply: m.Reply, release: func() {}}
	case req.Answer != nil:
		item = arrival{answer: &answered{req.Tool, *req.Answer}, stored: c.now(), reply: m.Reply, release: func() {}}
	}
	if !c.find(k, item) {
		c.background("an answer to a question", func() { c.reply(ctx, m.Reply, protocol.OwnReply{}) })
	}
}

func (c *Coordinator) reply(ctx context.Context, to string, r protocol.OwnReply) {
	if to == "" {
		return
	}
	r.V = protocol.Version
	data, _ := json.Marshal(r)
	_ = c.cfg.Bus.Emit(ctx, natswire.Msg{Subject: to, Data: data}) // the one who asks tries again
}
