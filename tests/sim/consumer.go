package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// consumer is a durable. Nothing it does is fenced: whoever holds any delivery of a message speaks for it (N1-N3).
type consumer struct {
	name      string
	s         *stream
	cfg       natswire.Consumer
	next      uint64             // the first sequence never delivered
	delivered uint64             // the newest sequence delivered
	flights   map[uint64]*flight // delivered, not settled
	redo      []uint64           // to be delivered again, in stream order
	pullers   []*puller
	turn      int // which puller is next
}

// flight is a message that was delivered at least once and not settled.
type flight struct {
	attempt int
	until   time.Time // the end of the ack wait, or of a nak's delay
	queued  bool      // in redo
}

func (c *consumer) configure(cfg natswire.Consumer) {
	cfg.AckWait = cmp.Or(cfg.AckWait, 30*time.Second) // the broker's defaults (N13)
	cfg.MaxDeliver = cmp.Or(cfg.MaxDeliver, -1)
	cfg.MaxAckPending = cmp.Or(cfg.MaxAckPending, 1000)
	c.cfg = cfg
}

// pump delivers what it can.
func (c *consumer) pump() {
	for !c.cfg.Paused && !c.s.stalled {
		p := c.asker()
		if p == nil {
			return
		}
		seq, ok := c.take()
		if !ok {
			return
		}
		w, f := c.s.w, c.flights[seq]
		f.attempt++
		p.want--
		c.turn = slices.Index(c.pullers, p) + 1
		w.log("broker delivers %s/%s %d to %s, attempt %d", c.s.name, c.name, seq, p.sub.bus.node, f.attempt)
		wait := c.cfg.AckWait
		if w.hit(w.faults.Twin) {
			wait = min(wait, w.delay())
		}
		c.arm(seq, f, wait)
		d := natswire.Delivery{Stored: c.s.copyOf(seq), Attempt: f.attempt, Acker: &acker{c: c, bus: p.sub.bus, seq: seq, attempt: f.attempt}}
		w.send(p.sub, func() { p.on.Deliver(d) })
	}
}

// asker is the next puller that wants a message.
func (c *consumer) asker() *puller {
	for i := range c.pullers {
		at := (c.turn + i) % len(c.pullers)
		if p := c.pullers[at]; p.want > 0 {
			return p
		}
	}
	return nil
}

// take is the next message to deliver: one that came back, or a new one if MaxAckPending allows.
func (c *consumer) take() (uint64, bool) {
	for len(c.redo) > 0 {
		seq := c.redo[0]
		c.redo = c.redo[1:]
		if f := c.flights[seq]; f != nil && f.queued {
			f.queued = false
			return seq, true
		}
	}
	if c.cfg.MaxAckPending > 0 && len(c.flights) >= c.cfg.MaxAckPending {
		return 0, false
	}
	for c.next = max(c.next, c.s.first); c.next <= c.s.last; c.next++ {
		if m, ok := c.s.msgs[c.next]; ok && match(c.cfg.Filter, m.Subject) {
			seq := c.next
			c.next++
			c.flights[seq], c.delivered = &flight{}, seq
			return seq, true
		}
	}
	return 0, false
}

// arm lets a message come back after d, unless it is settled or armed anew before.
func (c *consumer) arm(seq uint64, f *flight, d time.Duration) {
	until := time.Now().Add(d)
	f.until = until
	c.s.w.submit(d, fmt.Sprintf("~%s/%s %d returns", c.s.name, c.name, seq), func() {
		if c.flights[seq] == f && !f.queued && f.until.Equal(until) {
			c.again(seq, f)
		}
	})
}

// again queues a message for its next attempt, or orphans it after its last (N4).
func (c *consumer) again(seq uint64, f *flight) {
	if c.cfg.MaxDeliver > 0 && f.attempt >= c.cfg.MaxDeliver {
		delete(c.flights, seq)
		c.s.orphans[seq] = true
		c.advise(natswire.AdvisoryMaxDeliveries, "max_deliver", seq, f.attempt, "")
	} else {
		f.queued = true
		i, _ := slices.BinarySearch(c.redo, seq)
		c.redo = slices.Insert(c.redo, i, seq)
	}
	c.pump()
}

// advise tells, at most once, what became of a message.
func (c *consumer) advise(kind, event string, seq uint64, attempt int, reason string) {
	data, _ := json.Marshal(struct {
		Type       string `json:"type"`
		Stream     string `json:"stream"`
		Consumer   string `json:"consumer"`
		StreamSeq  uint64 `json:"stream_seq"`
		Deliveries int    `json:"deliveries"`
		Reason     string `json:"reason,omitempty"`
	}{"io.nats.jetstream.advisory.v1." + event, c.s.name, c.name, seq, attempt, reason})
	m := natswire.Msg{Subject: "$JS.EVENT.ADVISORY.CONSUMER." + kind + "." + c.s.name + "." + c.name, Data: data}
	w := c.s.w
	switch {
	case w.hit(w.faults.Drop):
		w.log("broker loses its advice %s", data)
	case w.owner(m.Subject) == nil:
		w.route(m)
	default:
		w.log("broker advises %s", data)
		_, _ = w.publish(m) // a full stream loses it
	}
}

// settle ends a message's life in the consumer, whichever delivery asks for it (N1).
func (c *consumer) settle(seq uint64) {
	if c.s.workQueue || c.flights[seq] != nil {
		c.s.leaves(seq)
	}
	delete(c.flights, seq)
	if c.s.workQueue {
		c.s.remove(seq)
	}
	c.pump()
}

func (c *consumer) state() natswire.ConsumerState {
	st := natswire.ConsumerState{Config: c.cfg, AckPending: len(c.flights), Delivered: c.delivered, Time: time.Now()}
	for seq := max(c.next, c.s.first); seq <= c.s.last; seq++ {
		if m, ok := c.s.msgs[seq]; ok && match(c.cfg.Filter, m.Subject) {
			st.Pending++
		}
	}
	for _, p := range c.pullers {
		if p.want > 0 {
			st.Waiting++
		}
	}
	return st
}

// puller is a pull subscription.
type puller struct {
	c    *consumer
	sub  *subscription
	on   natswire.PullEvents
	want int
	lost bool
}

// Want implements natswire.Puller.
func (p *puller) Want(n int) {
	p.sub.bus.fire(fmt.Sprintf("want %s/%s %d", p.c.s.name, p.c.name, n), false, func() {
		now := p.c.current()
		switch {
		case p.sub.closed:
			return
		case now == nil:
			p.lose()
			return
		case now != p.c: // it was made anew
			p.c = now
			now.pullers = append(now.pullers, p)
		}
		p.want += n
		now.pump()
	})
}

// lose ends a subscription whose consumer is gone.
func (p *puller) lose() {
	p.want = 0
	if p.on.Lost != nil && !p.lost {
		p.lost = true
		p.sub.bus.w.bereft = append(p.sub.bus.w.bereft, p)
		p.tell()
	}
}

// tell brings the bad news. It is the client's own conclusion, so that a cut only puts it off until the node is back.
func (p *puller) tell() {
	w := p.sub.bus.w
	w.send(p.sub, func() {
		w.mu.Lock()
		i := slices.Index(w.bereft, p)
		if i >= 0 {
			w.bereft = slices.Delete(w.bereft, i, i+1)
		}
		w.mu.Unlock()
		if i < 0 {
			return // told already
		}
		p.on.Lost(protocol.Errorf(protocol.CodeConsumerGone, "consumer %s of %s was deleted", p.c.name, p.c.s.name))
	})
}

// Close implements natswire.Puller.
func (p *puller) Close() {
	w := p.sub.bus.w
	w.mu.Lock()
	defer w.mu.Unlock()
	p.sub.close()
	p.c.pullers = slices.DeleteFunc(p.c.pullers, func(q *puller) bool { return q == p })
}

// acker settles a delivery, as unfenced as the broker's.
type acker struct {
	c       *consumer
	bus     *Bus
	seq     uint64
	attempt int
}

// do runs what an ack means to the consumer that has the name now, if it knows the message. f is nil for a message that
// is settled or orphaned.
func (a *acker) do(word string, run func(c *consumer, f *flight)) {
	key := fmt.Sprintf("%s %s/%s %d of attempt %d", word, a.c.s.name, a.c.name, a.seq, a.attempt)
	a.bus.fire(key, true, func() {
		if c := a.c.current(); c != nil && a.seq < c.next {
			run(c, c.flights[a.seq])
		}
	})
}

// Ack implements natswire.Acker.
func (a *acker) Ack() { a.do("ack", func(c *consumer, _ *flight) { c.settle(a.seq) }) }

// Nak implements natswire.Acker.
func (a *acker) Nak(delay time.Duration) {
	a.do("nak", func(c *consumer, f *flight) {
		switch {
		case f == nil || f.queued:
		case delay > 0:
			c.arm(a.seq, f, delay)
		default:
			c.again(a.seq, f)
		}
	})
}

// InProgress implements natswire.Acker.
func (a *acker) InProgress() {
	a.do("progress", func(c *consumer, f *flight) {
		if f != nil {
			c.arm(a.seq, f, c.cfg.AckWait)
		}
	})
}

// Term implements natswire.Acker.
func (a *acker) Term(reason string) {
	a.do("term", func(c *consumer, f *flight) {
		if f != nil {
			c.settle(a.seq)
			c.advise(natswire.AdvisoryTerminated, "terminated", a.seq, a.attempt, reason)
		}
	})
}

// current is the consumer that has the name now; nil when it was deleted.
func (c *consumer) current() *consumer { return c.s.consumers[c.name] }
