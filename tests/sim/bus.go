package sim

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// callTimeout is how long a call waits for its answer, unless its context ends before.
const callTimeout = 5 * time.Second

// Bus is one process's connection to a World.
type Bus struct {
	w      *World
	node   string
	ctx    context.Context // the life of the process
	end    context.CancelCauseFunc
	skew   time.Duration // of its clock
	dead   bool          // guarded by w.mu, like all that follows
	cut    bool
	left   bool // dead, but what it sent arrives
	paused bool
	halted []halt          // what waits for the end of the pause, in the order it came
	timers []*timer        // not rung yet, the oldest first
	missed []*subscription // told after a cut
	asked  map[string]int  // requests so far, to name their inboxes alike in every run
}

var _ natswire.Bus = (*Bus)(nil)

// Context is the life of the process: it ends when the node is killed or the World is closed.
func (b *Bus) Context() context.Context { return b.ctx }

// halt is a step that a pause holds up.
type halt struct {
	key  string
	goOn chan struct{}
}

// Step returns once the process may take another step: at once, or when its pause ends. It returns an error when the
// process was killed. All methods of the Bus begin and end with it; test tools call it before their effect.
func (b *Bus) Step() error { return b.step("step") }

// step is Step. What a pause held up goes on one after the other, in the order of the history: key tells them apart.
func (b *Bus) step(key string) error {
	for {
		b.w.mu.Lock()
		if b.dead {
			b.w.mu.Unlock()
			return protocol.Errorf(protocol.CodeUnreachable, "node %s was killed", b.node)
		}
		if !b.paused {
			b.w.mu.Unlock()
			return nil
		}
		h := halt{key: key, goOn: make(chan struct{})}
		b.halted = append(b.halted, h)
		b.w.mu.Unlock()
		select {
		case <-h.goOn:
		case <-b.ctx.Done():
		}
	}
}

// own copies a message, and refuses what does not fit into one.
func own(m natswire.Msg) (natswire.Msg, error) {
	size := len(m.Data)
	for k, v := range m.Header {
		size += len(k) + len(v) + len(": \r\n")
	}
	if size > MaxPayload {
		return m, protocol.Errorf(protocol.CodeTooLarge, "%d bytes for %s are more than %d", size, m.Subject, MaxPayload)
	}
	m.Header, m.Data = maps.Clone(m.Header), slices.Clone(m.Data)
	return m, nil
}

func describe(verb string, m natswire.Msg) string {
	key := fmt.Sprintf("%s %s %dB %08x", verb, m.Subject, len(m.Data), crc32.ChecksumIEEE(m.Data))
	if m.Expect != nil {
		key += fmt.Sprintf(" expect=%d", *m.Expect)
	}
	if m.ID != "" {
		key += " id=" + m.ID
	}
	return key
}

// Publish implements natswire.Bus.
func (b *Bus) Publish(ctx context.Context, m natswire.Msg) (natswire.Ack, error) {
	m, err := own(m)
	if err != nil {
		return natswire.Ack{}, err
	}
	ack, err := call(ctx, b, describe("publish", m), func() (natswire.Ack, error) { return b.w.publish(m) })
	if err == nil && !ack.Duplicate {
		b.w.mu.Lock()
		defer b.w.mu.Unlock()
		b.w.acked(m.Subject, ack.Seq)
	}
	return ack, err
}

// Send implements natswire.Bus.
func (b *Bus) Send(m natswire.Msg, done func(natswire.Ack, error)) {
	go func() { done(b.Publish(b.ctx, m)) }()
}

// Emit implements natswire.Bus.
func (b *Bus) Emit(ctx context.Context, m natswire.Msg) error {
	m, err := own(m)
	if err != nil {
		return err
	}
	b.receipt(m)
	_, err = call(ctx, b, describe("emit", m), func() (int, error) { return b.w.route(m), nil })
	return err
}

// Request implements natswire.Bus.
func (b *Bus) Request(ctx context.Context, m natswire.Msg) (natswire.Msg, error) {
	m, err := own(m)
	if err != nil {
		return natswire.Msg{}, err
	}
	key := describe("request", m)
	silent, end := b.patience(key)
	defer end()
	b.w.mu.Lock()
	b.asked[key]++
	m.Reply = fmt.Sprintf("_INBOX.%s.%08x.%d", b.node, crc32.ChecksumIEEE([]byte(key)), b.asked[key])
	b.w.mu.Unlock()
	replies := make(chan natswire.Msg, 1)
	stop, err := b.Subscribe(m.Reply, func(r natswire.Msg) {
		select {
		case replies <- r:
		default:
		}
	})
	if err != nil {
		return natswire.Msg{}, err
	}
	defer stop()
	if _, err := call(ctx, b, key, func() (int, error) {
		if n := b.w.route(m); n > 0 {
			return n, nil
		}
		return 0, protocol.Errorf(protocol.CodeNotFound, "nobody listens on %s", m.Subject)
	}); err != nil {
		return natswire.Msg{}, err
	}
	var reply natswire.Msg
	select {
	case reply = <-replies: // before all else, which may have come as well during a pause
	default:
		select {
		case reply = <-replies:
		case <-ctx.Done():
			err = waitError(ctx, key)
		case <-silent:
			err = errNoAnswer(key)
		case <-b.ctx.Done():
		}
	}
	return reply, cmp.Or(b.step(key), err)
}

// Subscribe implements natswire.Bus.
func (b *Bus) Subscribe(subject string, deliver func(natswire.Msg)) (func(), error) {
	if err := b.step(subject); err != nil {
		return nil, err
	}
	s, w := &subscription{bus: b, subject: subject, deliver: deliver}, b.w
	w.mu.Lock()
	defer w.mu.Unlock()
	i, _ := slices.BinarySearchFunc(w.subs, s, func(x, s *subscription) int {
		return cmp.Or(cmp.Compare(x.bus.node, s.bus.node), cmp.Compare(x.subject, s.subject), -1)
	})
	w.subs = slices.Insert(w.subs, i, s)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		s.close()
		w.subs = slices.DeleteFunc(w.subs, func(x *subscription) bool { return x == s })
	}, nil
}

// Listen implements natswire.Bus.
func (b *Bus) Listen(subject string, deliver func(natswire.Msg)) (func(), error) {
	return b.Subscribe(subject, deliver)
}

// Missed implements natswire.Bus.
func (b *Bus) Missed(tell func()) func() {
	s := &subscription{bus: b, subject: "missed", deliver: func(natswire.Msg) { tell() }}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.missed = append(b.missed, s)
	return func() {
		b.w.mu.Lock()
		defer b.w.mu.Unlock()
		s.close()
		b.missed = slices.DeleteFunc(b.missed, func(x *subscription) bool { return x == s })
	}
}

// on has the broker run fn with a stream.
func on[T any](ctx context.Context, b *Bus, in, key string, fn func(s *stream) (T, error)) (T, error) {
	return call(ctx, b, key+" of "+in, func() (T, error) {
		s, err := b.w.stream(in)
		if err != nil {
			var none T
			return none, err
		}
		return fn(s)
	})
}

// Last implements natswire.Bus.
func (b *Bus) Last(ctx context.Context, in, subject string) (natswire.Stored, error) {
	return on(ctx, b, in, "last "+subject, func(s *stream) (natswire.Stored, error) {
		has := s.bySubject[subject]
		if len(has) == 0 {
			return natswire.Stored{}, protocol.Errorf(protocol.CodeNotFound, "no message on %s", subject)
		}
		return s.copyOf(has[len(has)-1]), nil
	})
}

// Next implements natswire.Bus.
func (b *Bus) Next(ctx context.Context, in, subject string, from uint64) (natswire.Stored, error) {
	return on(ctx, b, in, fmt.Sprintf("next %s from %d", subject, from), func(s *stream) (natswire.Stored, error) {
		if found := s.read(subject, max(from, 1), s.last); len(found) > 0 {
			return found[0], nil
		}
		return natswire.Stored{}, protocol.Errorf(protocol.CodeNotFound, "no message on %s from %d on", subject, from)
	})
}

// At implements natswire.Bus.
func (b *Bus) At(ctx context.Context, in string, seq uint64) (natswire.Stored, error) {
	return on(ctx, b, in, fmt.Sprintf("message %d", seq), func(s *stream) (natswire.Stored, error) {
		if _, ok := s.msgs[seq]; !ok {
			return natswire.Stored{}, protocol.Errorf(protocol.CodeNotFound, "no message %d in %s", seq, in)
		}
		return s.copyOf(seq), nil
	})
}

// seen is the newest sequence that a reader of a replica sees.
func (s *stream) seen() uint64 {
	if s.w.hit(s.w.faults.Stale) {
		s.w.log("broker reads %s stale", s.name)
		return s.last - min(s.last, 1+s.w.rng.Uint64N(4))
	}
	return s.last
}

// Read implements natswire.Bus.
func (b *Bus) Read(ctx context.Context, in, subject string, from uint64, limit int) ([]natswire.Stored, error) {
	return on(ctx, b, in, fmt.Sprintf("read %s from %d", subject, from), func(s *stream) ([]natswire.Stored, error) {
		out := s.read(subject, from, s.seen())
		return out[:min(len(out), limit)], nil
	})
}

// Latest implements natswire.Bus.
func (b *Bus) Latest(ctx context.Context, in, subject string) ([]natswire.Stored, error) {
	return on(ctx, b, in, "latest "+subject, func(s *stream) ([]natswire.Stored, error) {
		newest := map[string]natswire.Stored{}
		for _, m := range s.read(subject, 0, s.seen()) {
			newest[m.Subject] = m
		}
		return slices.SortedFunc(maps.Values(newest), func(a, b natswire.Stored) int { return cmp.Compare(a.Seq, b.Seq) }), nil
	})
}

// EnsureConsumer implements natswire.Bus.
func (b *Bus) EnsureConsumer(ctx context.Context, cfg natswire.Consumer) error {
	_, err := on(ctx, b, cfg.Stream, "ensure consumer "+cfg.Durable, func(s *stream) (any, error) {
		for name, other := range s.consumers {
			if s.workQueue && name != cfg.Durable && (match(other.cfg.Filter, cfg.Filter) || match(cfg.Filter, other.cfg.Filter)) {
				return nil, protocol.Errorf(protocol.CodeInternal, "consumer %s of %s has an overlapping filter %s", name, s.name, other.cfg.Filter)
			}
		}
		c := s.consumers[cfg.Durable]
		if c == nil {
			c = &consumer{name: cfg.Durable, s: s, next: 1, flights: map[uint64]*flight{}}
			s.consumers[cfg.Durable] = c
		}
		c.configure(cfg)
		c.pump()
		return nil, nil
	})
	return err
}

// DeleteConsumer removes a durable, as an operator would. Pull subscriptions on it end with code consumer_gone once they
// ask for more than they have.
func (b *Bus) DeleteConsumer(ctx context.Context, in, durable string) error {
	_, err := on(ctx, b, in, "delete consumer "+durable, func(s *stream) (any, error) {
		c, err := s.consumer(durable)
		if err != nil {
			return nil, err
		}
		delete(s.consumers, durable)
		for _, p := range c.pullers {
			if p.want > 0 {
				p.lose()
			}
		}
		return nil, nil
	})
	return err
}

func (s *stream) consumer(durable string) (*consumer, error) {
	if c := s.consumers[durable]; c != nil {
		return c, nil
	}
	return nil, protocol.Errorf(protocol.CodeNotFound, "no consumer %s of %s", durable, s.name)
}

// ConsumerState implements natswire.Bus.
func (b *Bus) ConsumerState(ctx context.Context, in, durable string) (natswire.ConsumerState, error) {
	return on(ctx, b, in, "state of "+durable, func(s *stream) (natswire.ConsumerState, error) {
		c, err := s.consumer(durable)
		if err != nil {
			return natswire.ConsumerState{}, err
		}
		return c.state(), nil
	})
}

// Pull implements natswire.Bus.
func (b *Bus) Pull(ctx context.Context, in, durable string, events natswire.PullEvents) (natswire.Puller, error) {
	p, err := on(ctx, b, in, "pull "+durable, func(s *stream) (*puller, error) {
		c, err := s.consumer(durable)
		if err != nil {
			return nil, err
		}
		p := &puller{c: c, on: events, sub: &subscription{bus: b, subject: in + "/" + durable}}
		c.pullers = append(c.pullers, p)
		return p, nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Purge implements natswire.Bus.
func (b *Bus) Purge(ctx context.Context, in, subject string, keep uint64) error {
	_, err := on(ctx, b, in, fmt.Sprintf("purge %s keep %d", subject, keep), func(s *stream) (any, error) {
		s.purge(subject, int(min(keep, 1<<31)))
		return nil, nil
	})
	return err
}

// Remove implements natswire.Bus.
func (b *Bus) Remove(ctx context.Context, in string, seq uint64) error {
	_, err := on(ctx, b, in, fmt.Sprintf("remove %d", seq), func(s *stream) (any, error) {
		if s.keeps {
			return nil, protocol.Errorf(protocol.CodeForbidden, "stream %s keeps its messages", s.name)
		}
		s.remove(seq)
		s.offer()
		return nil, nil
	})
	return err
}

// PutObject implements natswire.Bus.
func (b *Bus) PutObject(ctx context.Context, name string, data []byte) error {
	data = slices.Clone(data)
	_, err := call(ctx, b, fmt.Sprintf("put object %s %dB", name, len(data)), func() (any, error) {
		b.w.objects[name] = data
		return nil, nil
	})
	return err
}

// GetObject implements natswire.Bus.
func (b *Bus) GetObject(ctx context.Context, name string) ([]byte, error) {
	return call(ctx, b, "get object "+name, func() ([]byte, error) {
		data, ok := b.w.objects[name]
		if !ok {
			return nil, protocol.Errorf(protocol.CodeNotFound, "no object %s", name)
		}
		return slices.Clone(data), nil
	})
}
