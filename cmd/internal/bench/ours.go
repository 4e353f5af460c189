package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// Names of the subjects that measure the fabric.
const (
	NameIdempotent = "call in a session, idempotent"
	NameAtMostOnce = "call in a session, at_most_once"
	NameParallel   = "call in a turn of 8, idempotent"
	NameWhole      = "whole session of one call"
)

const (
	parallelCalls = 8
	sessionTurns  = 50 // turns measured in one session, then another is taken: a conversation of usual length
)

// OpenIdempotent opens the measurement of a call of an idempotent tool inside a running session: from the model's answer
// that asks for it, over the append of the turn, the worker and its stored result, until the model is asked again. In
// flight is the number of sessions that run at once; nobody watches them, as nobody watches the raw round trip.
func OpenIdempotent(ctx context.Context, b *Broker) (Subject, func(), error) {
	return openCalls(ctx, b, NameIdempotent, "benchidempotent", tool.Idempotent, 1)
}

// OpenAtMostOnce is OpenIdempotent with a tool whose every call is claimed before it starts.
func OpenAtMostOnce(ctx context.Context, b *Broker) (Subject, func(), error) {
	return openCalls(ctx, b, NameAtMostOnce, "benchatmostonce", tool.AtMostOnce, 1)
}

// OpenParallel is OpenIdempotent with 8 calls a turn. In flight is the number of calls, at least one turn's; the latency of
// a call lasts until all calls of its turn have ended, for only then the model hears of it.
func OpenParallel(ctx context.Context, b *Broker) (Subject, func(), error) {
	return openCalls(ctx, b, NameParallel, "benchparallel", tool.Idempotent, parallelCalls)
}

// OpenWhole opens the measurement of a whole session: from before its input is sent until the event with the final answer
// is seen, with two model requests and one call of an idempotent tool between. In flight is the number of sessions.
func OpenWhole(ctx context.Context, b *Broker) (Subject, func(), error) {
	s, done, err := openOurs(ctx, b, "benchwhole", tool.Idempotent)
	return whole{s}, done, err
}

func openOurs(ctx context.Context, b *Broker, namespace string, effect tool.Effect) (*sessions, func(), error) {
	f, err := openFabric(ctx, b, namespace, effect)
	if err != nil {
		return nil, nil, err
	}
	return newSessions(f), f.close, nil
}

// calls measures calls inside running sessions.
type calls struct {
	name   string
	broker *Broker
	*sessions
	width int // calls a turn
}

func openCalls(ctx context.Context, b *Broker, name, namespace string, effect tool.Effect, width int) (Subject, func(), error) {
	s, done, err := openOurs(ctx, b, namespace, effect)
	return &calls{name: name, broker: b, sessions: s, width: width}, done, err
}

func (c *calls) Name() string { return c.name }

func (c *calls) Run(ctx context.Context, inFlight, n int) (Sample, error) {
	before, err := c.broker.CPU(ctx)
	if err != nil {
		return Sample{}, err
	}
	slots := max(1, inFlight/c.width)
	turns := (n + c.width - 1) / c.width
	all, err := c.open(ctx, slots+turns/sessionTurns)
	if err != nil {
		return Sample{}, fmt.Errorf("open sessions: %w", err)
	}
	began, err := c.broker.CPU(ctx)
	if err != nil {
		return Sample{}, err
	}
	sample, err := c.drive(ctx, all, slots, turns, n)
	if err != nil {
		return Sample{}, err
	}
	ended, err := c.broker.CPU(ctx)
	if err != nil {
		return Sample{}, err
	}
	if err := c.finish(ctx, all); err != nil {
		return Sample{}, fmt.Errorf("end sessions: %w", err)
	}
	after, err := c.broker.CPU(ctx)
	sample.AsideCPU = began - before + after - ended
	return sample, err
}

// drive makes the turns. A session that has had its share is left to wait, and its slot takes the next one.
func (c *calls) drive(ctx context.Context, all []*running, slots, turns, n int) (Sample, error) {
	fresh := make(chan *running, len(all))
	for _, r := range all {
		fresh <- r
	}
	current := make([]*running, slots)
	sample, err := Drive(ctx, slots, turns, func(ctx context.Context, slot, i int) error {
		if current[slot] == nil || current[slot].turns == sessionTurns {
			current[slot] = <-fresh
		}
		r := current[slot]
		r.turns++
		width := min(c.width, n-i*c.width)
		r.answer <- callsOf(width)
		return r.heard(ctx, width)
	})
	if err != nil || c.width == 1 {
		return sample, err
	}
	perCall := make([]time.Duration, 0, n)
	for i, d := range sample.Latencies {
		for range min(c.width, n-i*c.width) {
			perCall = append(perCall, d)
		}
	}
	sample.Latencies = perCall
	return sample, nil
}

// whole measures sessions from their input to their end.
type whole struct{ *sessions }

func (whole) Name() string { return NameWhole }

func (w whole) Run(ctx context.Context, inFlight, n int) (Sample, error) {
	mute, err := w.watch()
	if err != nil {
		return Sample{}, err
	}
	defer mute()
	return Drive(ctx, inFlight, n, func(ctx context.Context, _, _ int) error {
		r, err := w.start(ctx)
		if err != nil {
			return err
		}
		if err := r.heard(ctx, 0); err != nil {
			return err
		}
		r.answer <- callsOf(1)
		if err := r.heard(ctx, 1); err != nil {
			return err
		}
		r.answer <- lastWord()
		return w.ended(ctx, r)
	})
}
