package natswire

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolfabric/toolfabric/protocol"
)

// replies matches answers to waiting calls. All calls of a connection share one subscription on prefix + "*"; the last
// token of an answer's subject tells whose it is. Unlike the client library's own multiplexer it can fail a call whose
// permission is missing, and all calls when the connection goes.
type replies struct {
	prefix string

	mu      sync.Mutex
	next    uint64
	waiting map[uint64]*waiter
	sweep   *time.Timer // ends what waits for too long; nil while nothing waits
}

// waiter is one call that waits for one answer, or for several when more is set.
type waiter struct {
	subject string // what was published on
	due     time.Time
	ch      chan answer
	more    func(*waiter, *nats.Msg) // called in order for every answer, must not block; nil takes one answer
	then    func(answer)             // called with the one answer, must not block; nil leaves it in ch
}

type answer struct {
	msg *nats.Msg
	err error
}

func newReplies(prefix string) *replies {
	return &replies{prefix: prefix, waiting: make(map[uint64]*waiter)}
}

// waiters are reused with their channel: publishing is the hot path.
var waiters = sync.Pool{New: func() any { return &waiter{ch: make(chan answer, 1)} }}

func (r *replies) add(subject string, more func(*waiter, *nats.Msg), then func(answer)) (*waiter, uint64) {
	w := waiters.Get().(*waiter)
	w.subject, w.more, w.then, w.due = subject, more, then, time.Now().Add(callTimeout)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	r.waiting[r.next] = w
	if r.sweep == nil {
		r.sweep = time.AfterFunc(sweepEvery, r.expire)
	}
	return w, r.next
}

// remove ends a wait. No answer is sent to the waiter after it returns.
func (r *replies) remove(id uint64, w *waiter) {
	r.mu.Lock()
	delete(r.waiting, id)
	r.mu.Unlock()
	select {
	case <-w.ch:
	default:
	}
	w.more = nil
	waiters.Put(w)
}

// sweepEvery is how exactly waits end that are not answered: one timer looks at all of them.
const sweepEvery = callTimeout / 20

// expire is run by the sweep.
func (r *replies) expire() {
	now := time.Now()
	r.fail(func(w *waiter) *protocol.Error {
		if now.Before(w.due) {
			return nil
		}
		return errNoAnswer(w.subject)
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) > 0 {
		r.sweep.Reset(sweepEvery)
	} else {
		r.sweep = nil
	}
}

const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func (r *replies) subject(id uint64) string {
	var buf [96]byte
	b := append(buf[:0], r.prefix...)
	for {
		b = append(b, digits[id%uint64(len(digits))])
		id /= uint64(len(digits))
		if id == 0 {
			return string(b)
		}
	}
}

func (r *replies) id(subject string) (id uint64, ok bool) {
	token, ok := strings.CutPrefix(subject, r.prefix)
	if !ok || token == "" || len(token) > 11 {
		return 0, false
	}
	for i := len(token) - 1; i >= 0; i-- {
		d := strings.IndexByte(digits, token[i])
		if d < 0 {
			return 0, false
		}
		id = id*uint64(len(digits)) + uint64(d)
	}
	return id, true
}

// deliver runs on the goroutine of the shared subscription.
func (r *replies) deliver(m *nats.Msg) {
	id, ok := r.id(m.Subject)
	if !ok {
		return
	}
	r.mu.Lock()
	w := r.waiting[id]
	several := w != nil && w.more != nil
	if several {
		w.more(w, m)
	}
	r.mu.Unlock()
	if !several {
		r.settle(id, answer{msg: m})
	}
}

// settle gives the waiter its one answer, unless its call gave up.
func (r *replies) settle(id uint64, a answer) {
	r.mu.Lock()
	w := r.waiting[id]
	if w == nil || w.then == nil {
		if w != nil {
			w.answer(a)
		}
		r.mu.Unlock()
		return
	}
	then := w.then
	delete(r.waiting, id)
	r.mu.Unlock()
	w.then = nil
	waiters.Put(w)
	then(a)
}

// answer gives the waiter its first answer; later ones are dropped. The lock of replies is held.
func (w *waiter) answer(a answer) {
	select {
	case w.ch <- a:
	default:
	}
}

// fail ends the waits that verdict has an error for.
func (r *replies) fail(verdict func(*waiter) *protocol.Error) {
	failed := map[uint64]*protocol.Error{}
	r.mu.Lock()
	for id, w := range r.waiting {
		if err := verdict(w); err != nil {
			failed[id] = err
		}
	}
	r.mu.Unlock()
	for id, err := range failed {
		r.settle(id, answer{err: err})
	}
}

func (r *replies) failAll(err *protocol.Error) {
	r.fail(func(*waiter) *protocol.Error { return err })
}

func (r *replies) failDenied(v violation, err *protocol.Error) {
	if v.reply {
		if id, ok := r.id(v.subject); ok {
			r.settle(id, answer{err: err})
		}
		return
	}
	r.fail(func(w *waiter) *protocol.Error {
		if w.subject != v.subject {
			return nil
		}
		return err
	})
}

// ask publishes m and waits for one answer, which may be a status such as 503.
func (c *Conn) ask(ctx context.Context, m *outgoing) (*nats.Msg, error) {
	return c.exchange(ctx, m, nil)
}

// exchange publishes m and waits. With more it hands over every answer, and returns the one that more gives to the waiter.
func (c *Conn) exchange(ctx context.Context, m *outgoing, more func(w *waiter, m *nats.Msg)) (*nats.Msg, error) {
	subject := m.Subject
	if ctx.Err() != nil {
		return nil, waitError(ctx, subject)
	}
	w, id := c.replies.add(subject, more, nil)
	defer c.replies.remove(id, w)
	m.Reply = c.replies.subject(id)
	if err := c.publish(m); err != nil {
		return nil, err
	}
	select {
	case a := <-w.ch:
		if a.err != nil {
			return nil, a.err
		}
		return a.msg, nil
	case <-ctx.Done():
		return nil, waitError(ctx, subject)
	}
}

// errSilence is the cause of what failed only because no answer came in time.
var errSilence = errors.New("the broker was silent")

func errNoAnswer(subject string) *protocol.Error {
	return protocol.Wrap(errSilence, protocol.CodeUnreachable, "no answer to %s in time; it may have had its effect", subject)
}

// waitError is why a wait ended with ctx: its own cause, but a deadline means that the broker was silent.
func waitError(ctx context.Context, subject string) error {
	if _, ok := errors.AsType[*protocol.Error](context.Cause(ctx)); !ok && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errNoAnswer(subject)
	}
	return protocol.ContextError(ctx)
}
