package worker

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// The rhythm of registry beats. Three may be lost before a worker counts as gone.
const (
	beatEvery = 5 * time.Second
	beatRetry = time.Second
	beatTTL   = 15 * time.Second
	lastTTL   = time.Second // of the beat of a worker that is gone
)

// register sends the beats until gone is closed. It closes first after the first round, whether it succeeded or not: by
// then the broker's time is known if it can be. When ctx ends it says at once that the worker drains.
func (w *Worker) register(ctx context.Context, first chan<- struct{}, gone <-chan struct{}) {
	// The round trip of the last beat also flushes the acks that were sent before it.
	defer func() { w.beat(ctx, true, lastTTL) }()
	draining := ctx.Done()
	for beats := 0; ; beats++ {
		pause := beatEvery
		if !w.beat(ctx, ctx.Err() != nil, beatTTL) {
			pause = beatRetry
		}
		if beats == 0 {
			close(first)
		}
		select {
		case <-gone: // before all else, which may be due as well
			return
		default:
		}
		next, stop := w.cfg.Clock.After(pause)
		select {
		case <-next:
		case <-w.beatNow:
		case <-draining:
			draining = nil
		case <-gone:
			stop()
			return
		}
		stop()
	}
}

// await tells the registry, at once when it is news, whether the pool's consumer is missing: coordinators make it then.
func (w *Worker) await(p *pool, missing bool) {
	if p.waiting.Swap(missing) || !missing {
		return
	}
	select {
	case w.beatNow <- struct{}{}:
	default:
	}
}

// beat registers each tool once. It stops at the first failure: the others would fail alike, each after its time ran out.
func (w *Worker) beat(ctx context.Context, draining bool, ttl time.Duration) bool {
	ctx = context.WithoutCancel(ctx)
	for i, p := range w.pools {
		r := protocol.Registration{
			V: protocol.Version, Worker: w.cfg.ID, Declaration: p.decl, Slots: p.limit, Active: int(p.active.Load()),
			Host: w.cfg.Host, Started: w.started, Draining: draining, Waiting: p.waiting.Load(),
		}
		data, err := json.Marshal(r)
		if err != nil {
			w.events.Registered(p.name, protocol.Wrap(err, protocol.CodeInternal, "encode the registration of tool %s", p.name))
			return false
		}
		subject := w.cfg.Names.RegistrationSubject(p.name, w.cfg.ID)
		_, err = w.cfg.Bus.Publish(ctx, natswire.Msg{Subject: subject, Data: data, TTL: ttl})
		at := w.cfg.Clock.Now()
		w.events.Registered(p.name, err)
		if err != nil {
			return false
		}
		if i > 0 || draining || w.blind {
			continue
		}
		switch stored, err := w.cfg.Bus.Last(ctx, w.cfg.Names.Registry(), subject); protocol.CodeOf(err) {
		case "":
			w.broker.set(stored.Time, at)
		case protocol.CodeForbidden:
			w.blind = true
		}
	}
	return true
}
