package worker

import (
	"context"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// run is a delivered call that has a slot or is held until one is free.
type run struct {
	pool   *pool
	env    protocol.Envelope
	err    error // why the message is no call that can be run
	first  natswire.Delivery
	info   Attempt
	last   bool // no delivery follows this one
	late   bool // it was not taken in time: it does not start, and whoever waits for it is told so
	ctx    context.Context
	cancel context.CancelCauseFunc
	aside  func(f func()) // runs the tool

	handles  []natswire.Delivery // the newest delivery of each message that carries this call; the loop's
	leased   time.Time           // when the broker was last told of it, or told of it; the loop's
	deadline time.Time           // local; zero when there is none or it passed; the loop's
}

func (r *run) key() key {
	if r.err != nil {
		return key{seq: r.first.Seq}
	}
	return key{call: r.env.Call, round: r.env.Round}
}

// delivered is a message that the broker gave to the worker.
type delivered struct {
	natswire.Delivery
	pool *pool
	gen  int
	env  protocol.Envelope
	err  error
}

// apply gives the delivery a slot. A call that runs here already only gets a new handle to be acked with: it was
// redelivered because a heartbeat was lost, or published twice.
func (d delivered) apply(l *loop) {
	p, w := d.pool, l.w
	if d.gen == p.link.gen && p.asked > 0 {
		p.asked--
		p.moved, p.idle = l.now, false
		if p.asked == 0 {
			p.starved = l.now
		}
	}
	if l.draining {
		d.Nak(0)
		return
	}
	w.broker.saw(d.Time)
	if d.err == nil && d.env.Tool != p.name {
		d.err = protocol.Errorf(protocol.CodeBadMessage, "a call of tool %s in the queue of tool %s", d.env.Tool, p.name)
	}
	if d.err == nil && d.env.AnswersTo != protocol.MailboxResults && d.env.AnswersTo != protocol.MailboxWake {
		d.err = protocol.Errorf(protocol.CodeUnsupported, "the call wants its answer in the mailbox %q, which this build does not have; upgrade the worker", d.env.AnswersTo)
	}
	r := &run{pool: p, env: d.env, err: d.err, first: d.Delivery, leased: l.now}
	if twin := l.runs[r.key()]; twin != nil {
		twin.adopt(d.Delivery)
		twin.leased = l.now
		return
	}
	r.handles = append(r.handles, d.Delivery)
	r.last = p.deliver > 0 && d.Attempt >= p.deliver
	r.info = Attempt{Tool: p.name, App: d.env.App, Session: d.env.Session, Call: d.env.Call, Round: d.env.Round, Attempt: d.Attempt, Seq: d.Seq}
	if d.err == nil && d.env.Deadline != 0 && w.broker.until(d.env.Deadline) <= 0 { // whoever waits for it has decided it
		w.events.Settled(r.info, Settlement{Way: Dropped, Code: protocol.CodeExpired})
		d.Ack()
		return
	}
	// StartBy binds the first delivery only: a later one says that a worker took the call and lost it.
	r.late = d.Attempt == 1 && d.env.StartBy != 0 && w.broker.until(d.env.StartBy) <= 0
	l.runs[r.key()] = r
	p.running++
	if p.running == 1 {
		p.beat = l.now.Add(p.lease / leaseBeats)
	}
	l.alarm.Set(p.beat)
	if len(l.runs)-len(l.held) > w.cfg.Slots {
		l.held = append(l.held, r)
		return
	}
	l.start(r)
}

// adopt takes the handle of another delivery of the same call.
func (r *run) adopt(d natswire.Delivery) {
	for i := range r.handles {
		if r.handles[i].Seq == d.Seq {
			r.handles[i] = d
			return
		}
	}
	r.handles = append(r.handles, d)
}

// start runs a call in a goroutine of its own.
func (l *loop) start(r *run) {
	if r.env.Deadline != 0 {
		r.deadline = l.now.Add(l.w.broker.until(r.env.Deadline))
		l.alarm.Set(r.deadline)
	}
	r.info.Queued = l.w.broker.now().Sub(r.first.Time)
	r.pool.active.Add(1)
	r.ctx, r.cancel = context.WithCancelCause(l.calls)
	r.aside = l.lend
	l.w.events.Started(r.info)
	l.goroutines.Go(func() { l.in.put(finished{r, l.w.attempt(r, l.settling)}) })
}

// finished says that a call is over and what becomes of its message.
type finished struct {
	run *run
	verdict
}

func (f finished) apply(l *loop) {
	fault.Point("K16")
	f.run.cancel(nil)
	f.run.pool.active.Add(-1)
	l.settle(f.run, f.verdict)
	if len(l.held) > 0 && !l.draining {
		next := l.held[0]
		l.held = l.held[1:]
		l.start(next)
	}
}
