package sim

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// Connect starts a process named node, of one connection. A node that was killed connects again as a new process.
func (w *World) Connect(node string) *Bus {
	b := &Bus{w: w, node: node, asked: map[string]int{}}
	b.ctx, b.end = context.WithCancelCause(context.Background())
	w.mu.Lock()
	defer w.mu.Unlock()
	b.skew = w.skews[node]
	w.nodes = append(w.nodes, b)
	w.log("%s starts", node)
	return b
}

// Kill is kill -9: subscriptions and pull requests vanish, what the node has sent may or may not arrive, its Context ends,
// and no call of it succeeds any more. Messages it had been delivered stay with it until their ack wait ends.
func (w *World) Kill(node string) {
	w.each(node, func(b *Bus) {
		w.log("%s is killed", b.node)
		w.drop(b)
		b.end(protocol.Errorf(protocol.CodeUnreachable, "node %s was killed", b.node))
	})
}

func (w *World) drop(b *Bus) {
	b.dead = true
	for _, t := range slices.Clone(b.timers) { // in the order of the history, as all that wakes somebody
		t.ring(b)
	}
	w.subs = slices.DeleteFunc(w.subs, func(s *subscription) bool { return s.bus == b })
	for _, s := range w.streams {
		for _, c := range s.consumers {
			c.pullers = slices.DeleteFunc(c.pullers, func(p *puller) bool { return p.sub.bus == b })
		}
	}
}

// Leave ends a process of its own will: as Kill, but what it has sent arrives.
func (b *Bus) Leave() {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if b.dead {
		return
	}
	b.w.log("%s leaves", b.node)
	b.left = true
	b.w.drop(b)
	b.w.nodes = slices.DeleteFunc(b.w.nodes, func(x *Bus) bool { return x == b })
	b.end(protocol.Errorf(protocol.CodeUnreachable, "node %s has left", b.node))
}

// Pause is SIGSTOP: no call of the node returns and nothing is handed to it until Resume. What it has sent arrives, what
// it was sent waits for it, and broker-side clocks run on.
func (w *World) Pause(node string) {
	w.each(node, func(b *Bus) {
		if !b.paused {
			w.log("%s is paused", b.node)
			b.paused = true
		}
	})
}

// Resume ends a pause.
func (w *World) Resume(node string) {
	w.each(node, func(b *Bus) {
		if !b.paused {
			return
		}
		w.log("%s resumes", b.node)
		b.paused = false
		for _, h := range b.halted {
			w.submit(0, b.node+" goes on "+h.key, func() { close(h.goOn) })
		}
		b.halted = nil
	})
}

// Cut parts a node from the broker, which does not notice: its calls fail without effect, its acks and all that is
// delivered to it are lost, until Heal. Also a plain World can do that.
func (w *World) Cut(node string) {
	w.each(node, func(b *Bus) {
		w.log("%s is cut off", b.node)
		b.cut = true
	})
}

// Heal ends a Cut. Pull subscriptions ask again for what did not come, and whoever asked for that is told of the gap.
func (w *World) Heal(node string) {
	w.each(node, func(b *Bus) {
		w.log("%s is back", b.node)
		told := b.missed
		if !b.cut {
			told = nil
		}
		b.cut = false
		for _, s := range told {
			w.send(s, func() { s.deliver(natswire.Msg{}) })
		}
		for _, p := range w.bereft {
			if p.sub.bus == b {
				p.tell()
			}
		}
		for _, s := range w.streams {
			for _, name := range slices.Sorted(maps.Keys(s.consumers)) {
				for _, p := range s.consumers[name].pullers {
					if p.sub.bus == b {
						p.want += p.sub.missed
						p.sub.missed = 0
					}
				}
			}
			s.offer()
		}
	})
}

// Clock is the time as the node's process sees it: nothing fires while it is paused.
func (b *Bus) Clock() natswire.Clock { return clock{b} }

type clock struct{ bus *Bus }

func (c clock) Now() time.Time { return time.Now().Add(c.bus.skew) }

// After fires by an action of its own: timers of one instant go off one after the other, in the order of the history.
func (c clock) After(d time.Duration) (<-chan time.Time, func()) {
	fired := make(chan time.Time, 1)
	ring := func() {
		_ = c.bus.step("timer") // a killed process must still come to its end
		fired <- c.Now()
	}
	w := c.bus.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rng == nil || c.bus.dead {
		t := time.AfterFunc(d, ring)
		return fired, func() { t.Stop() }
	}
	t := &timer{fire: func() { go ring() }}
	c.bus.timers = append(c.bus.timers, t)
	t.due = w.submit(max(d, 1), "~"+c.bus.node+" wakes", func() { t.ring(c.bus) })
	return fired, func() { // leaves nothing behind: a timer that was stopped draws no lot
		w.mu.Lock()
		defer w.mu.Unlock()
		t.forget(c.bus)
	}
}

// timer is an instant that a process waits for, until it came or is not waited for any more.
type timer struct {
	due  *action
	fire func()
}

func (t *timer) ring(b *Bus) {
	if t.forget(b) {
		t.fire()
	}
}

func (t *timer) forget(b *Bus) bool {
	i := slices.Index(b.timers, t)
	if i < 0 {
		return false
	}
	b.timers = slices.Delete(b.timers, i, i+1)
	b.w.withdraw(t.due)
	return true
}

// Close kills all nodes and stops the World's clock, so that a bubble can end.
func (w *World) Close() {
	w.each("", func(b *Bus) {
		w.drop(b)
		b.end(protocol.Errorf(protocol.CodeUnreachable, "the world has ended"))
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready, w.future = nil, nil
	if w.alarm != nil {
		w.alarm.Stop()
	}
}

// each runs fn on the living connections of a node, or of all for "".
func (w *World) each(node string, fn func(*Bus)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.nodes {
		if !b.dead && (node == "" || b.node == node) {
			fn(b)
		}
	}
	w.nodes = slices.DeleteFunc(w.nodes, func(b *Bus) bool { return b.dead })
}

// Fill makes a stream refuse new messages with storage_full once it holds max; 0 lifts the limit.
func (w *World) Fill(stream string, max int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := w.stream(stream)
	if err == nil {
		s.maxMsgs = max
	}
	return err
}

// Wipe is a stream that an operator deletes and provisions again, its consumers but for their messages. PARK counts its
// messages anew then; the other streams go on counting, so that a History can tell their messages apart.
func (w *World) Wipe(stream string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := w.stream(stream)
	if err != nil {
		return err
	}
	w.log("stream %s is wiped", stream)
	for seq := range s.msgs {
		s.remove(seq)
	}
	clear(s.ids)
	if s.name == w.names.ParkStream() {
		s.last, s.first = 0, 1
	}
	return nil
}

// Stall leaves a stream's consumers without a leader: what is published is stored and nothing is handed out, until Flow.
func (w *World) Stall(stream string) error { return w.flow(stream, true) }

// Flow ends a Stall.
func (w *World) Flow(stream string) error { return w.flow(stream, false) }

func (w *World) flow(stream string, stalled bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := w.stream(stream)
	if err == nil {
		w.log("stream %s is stalled: %t", stream, stalled)
		s.stalled = stalled
		s.offer()
	}
	return err
}

// acked notes that the sender of a stored message was told so.
func (w *World) acked(subject string, seq uint64) {
	s := w.owner(subject)
	if s.name == w.names.Registry() {
		return
	}
	for i := len(w.records) - 1; i >= 0; i-- {
		if r := &w.records[i]; r.Stream == s.name && r.Seq == seq {
			r.Acked = true
			return
		}
	}
}

// Messages is what a stream holds now, in stream order.
func (w *World) Messages(stream string) []natswire.Stored {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := w.stream(stream)
	if err != nil {
		return nil
	}
	return s.read(">", 0, s.last)
}
