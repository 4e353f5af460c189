package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// call has the broker run fn and waits for its answer.
func call[T any](ctx context.Context, b *Bus, key string, fn func() (T, error)) (T, error) {
	type answer struct {
		val T
		err error
	}
	var none T
	if err := b.step(key); err != nil {
		return none, err
	}
	if ctx.Err() != nil {
		return none, waitError(ctx, key)
	}
	w, done := b.w, make(chan answer, 1)
	lost := answer{err: errNoAnswer(key)}
	silent, stop := b.patience(key)
	defer stop()
	apply := func(how string) answer {
		w.log("%s %s -> ", b.node, key)
		line := len(w.trace) - 1 // before what follows from it
		val, err := fn()
		w.trace[line] += outcome(val, err) + how
		return answer{val, err}
	}
	w.mu.Lock()
	w.transmit(b.node+" "+key, func() {
		switch {
		case b.dead:
			if b.left || w.hit(0.5) {
				apply(", after its death")
			}
		case b.cut, w.hit(w.faults.Fail):
			w.log("%s %s -> fails", b.node, key)
			done <- lost
		case w.hit(w.faults.Late):
			w.log("%s %s -> fails for now", b.node, key)
			w.submit(w.delay(), b.node+" "+key, func() { apply(", late") })
			done <- lost
		case w.hit(w.faults.LostAck):
			apply(", answer lost")
			done <- lost
		case w.hit(w.faults.Timeout):
			if w.log("%s %s -> times out", b.node, key); w.hit(0.5) {
				apply(", unanswered")
			}
		default:
			done <- apply("")
		}
	})
	w.mu.Unlock()
	var got answer
	select {
	case got = <-done:
	default:
		select {
		case got = <-done:
		case <-ctx.Done():
			got.err = waitError(ctx, key)
		case <-silent:
			got = lost
		case <-b.ctx.Done():
			got = lost
		}
	}
	if err := b.step(key); err != nil {
		return none, err
	}
	return got.val, got.err
}

// patience says when a call has waited for long enough. Deadlines of one instant pass one after the other, as all that
// wakes somebody.
func (b *Bus) patience(key string) (silent <-chan struct{}, stop func()) {
	w, over := b.w, make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.submit(callTimeout, b.node+" waits no more for "+key, func() { close(over) })
	return over, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.withdraw(a)
	}
}

func errNoAnswer(key string) error {
	return protocol.Errorf(protocol.CodeUnreachable, "no answer to %s; it may have had its effect", key)
}

// waitError is why a wait ended with ctx: its own cause, but a deadline means that the broker was silent.
func waitError(ctx context.Context, key string) error {
	if _, ok := errors.AsType[*protocol.Error](context.Cause(ctx)); !ok && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errNoAnswer(key)
	}
	return protocol.ContextError(ctx)
}

func outcome(val any, err error) string {
	if err != nil {
		return string(protocol.CodeOf(err))
	}
	switch v := val.(type) {
	case natswire.Ack:
		return fmt.Sprintf("%d duplicate=%t", v.Seq, v.Duplicate)
	case natswire.Stored:
		return fmt.Sprint(v.Seq)
	case []natswire.Stored:
		return fmt.Sprintf("%d messages", len(v))
	}
	return "ok"
}

// fire has the broker run fn without an answer.
func (b *Bus) fire(key string, lossy bool, fn func()) {
	if b.step(key) != nil {
		return
	}
	w := b.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.transmit(b.node+" "+key, func() {
		if b.dead && !b.left && !w.hit(0.5) {
			return
		}
		if lossy && (b.cut || w.hit(w.faults.Drop)) {
			w.log("%s %s is lost", b.node, key)
			return
		}
		w.log("%s %s", b.node, key)
		fn()
	})
}

// transmit lets something that a process sent reach the broker, now or after a while. The caller holds mu.
func (w *World) transmit(key string, arrive func()) {
	w.submit(0, key, func() {
		if lag := w.lag(); lag > 0 { // drawn here, in the order of the history
			w.submit(lag, key, arrive)
			return
		}
		arrive()
	})
}

// subscription is where messages reach a process: in order, one at a time.
type subscription struct {
	bus     *Bus
	subject string
	deliver func(natswire.Msg)
	wire    []func() // on their way
	inbox   []func() // arrived
	busy    bool     // a goroutine empties the inbox
	closed  bool
	missed  int // lost while the node was cut off
}

func (s *subscription) close() { s.closed, s.wire, s.inbox = true, nil, nil }

// send puts a message for a subscription on its way.
func (w *World) send(s *subscription, deliver func()) {
	s.wire = append(s.wire, deliver)
	w.submit(w.lag(), "~to "+s.bus.node+" "+s.subject, func() {
		if len(s.wire) == 0 || s.bus.dead {
			return
		}
		if s.bus.cut {
			w.log("%s misses a message on %s", s.bus.node, s.subject)
			s.wire = s.wire[1:]
			s.missed++
			return
		}
		s.inbox = append(s.inbox, s.wire[0])
		s.wire = s.wire[1:]
		if !s.busy {
			s.busy = true
			go s.empty()
		}
	})
}

func (s *subscription) empty() {
	for {
		if s.bus.step(s.subject) != nil {
			return
		}
		s.bus.w.mu.Lock()
		if s.closed || len(s.inbox) == 0 {
			s.busy = false
			s.bus.w.mu.Unlock()
			return
		}
		next := s.inbox[0]
		s.inbox = s.inbox[1:]
		s.bus.w.mu.Unlock()
		next()
	}
}

// route gives a message to whoever listens now and returns how many that are.
func (w *World) route(m natswire.Msg) (listeners int) {
	for _, s := range w.subs {
		if !match(s.subject, m.Subject) {
			continue
		}
		listeners++
		if w.hit(w.faults.Drop) {
			w.log("broker loses %s for %s", m.Subject, s.bus.node)
			continue
		}
		out := natswire.Msg{Subject: m.Subject, Reply: m.Reply, Header: maps.Clone(m.Header), Data: slices.Clone(m.Data)}
		w.send(s, func() { s.deliver(out) })
	}
	return listeners
}
