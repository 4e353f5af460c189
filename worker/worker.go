package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/telemetry"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// ErrDrainTimeout is the cause a call's context ends with when the grace of a drain ran out, and what Run returns when it
// hit a call.
var ErrDrainTimeout = errors.New("worker: the grace of the drain ran out")

// Worker serves tools. It is made by New and may be run once.
type Worker struct {
	cfg     Config
	events  Events
	tracer  trace.Tracer
	capture bool
	broker  brokerClock
	pools   []*pool
	started int64         // Unix milliseconds
	beatNow chan struct{} // holds a token when the registry is to be told something before the next beat
	blind   bool          // the registry may not be read; the goroutine of the beats writes it
	ran     atomic.Bool
}

// pool is one tool that the worker serves. The upper part never changes; the lower part is the loop's, but active and
// waiting, which the registry beats read.
type pool struct {
	name     string
	tool     *invoke.Tool
	decl     protocol.Declaration
	digest   string
	limit    int // slots it may use
	attempts int
	kinds    kinds // of spans

	active  atomic.Int64 // calls with a slot
	waiting atomic.Bool  // its consumer is missing

	link    link
	running int       // as active
	asked   int       // messages the broker may deliver, or will be asked for once the link is open
	moved   time.Time // when something was last asked for or delivered
	starved time.Time // since when nothing is asked for
	idle    bool      // what was asked for was taken away from it, and nothing has come since
	lease   time.Duration
	beat    time.Time // when the running calls are reported in progress next
	deliver int       // the consumer's MaxDeliver; not positive is no limit
}

// New checks cfg and the tools' declarations. It returns an *Error of code usage, bad_name or bad_declaration.
func New(cfg Config) (*Worker, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	w := &Worker{cfg: cfg, events: Join(Join(Events{}, cfg.Listener), logTo(cfg.Logger, cfg.Clock)), tracer: cfg.Tracer.Tracer(telemetry.Scope), capture: telemetry.ContentCapture(), beatNow: make(chan struct{}, 1)}
	w.broker.clock = cfg.Clock
	w.started = cfg.Clock.Now().UnixMilli()
	var names tool.Names
	for i, t := range cfg.Tools {
		it, err := invoke.New(t)
		if err != nil {
			return nil, err
		}
		p := &pool{tool: it, decl: it.Declaration(), digest: it.Digest()}
		if err := p.decl.Check(); err != nil {
			return nil, err
		}
		p.name = p.decl.Name
		if err := names.Take(t, fmt.Sprintf("Tools[%d]", i)); err != nil {
			return nil, protocol.Wrap(err, protocol.CodeUsage, "a worker serves a name once: %s", err)
		}
		p.limit = cfg.Slots
		if n := cfg.ToolSlots[p.name]; n > 0 {
			p.limit = min(n, cfg.Slots)
		}
		p.attempts = protocol.DefaultAttempts
		if p.decl.Attempts > 0 {
			p.attempts = p.decl.Attempts
		}
		p.kinds = newKinds(p.name, cfg.Names.CallSubject(p.name))
		w.pools = append(w.pools, p)
	}
	for name := range cfg.ToolSlots {
		if !names.Taken(name) {
			return nil, protocol.Errorf(protocol.CodeUsage, "slots of tool %s: the worker does not serve it", name)
		}
	}
	return w, nil
}

// ID is the worker's name in the registry and in results.
func (w *Worker) ID() string { return w.cfg.ID }

// Run serves until ctx ends, then drains: intake stops at once, running calls get Config.Grace, and what is left is
// cancelled with cause ErrDrainTimeout. A call that may be repeated goes back to the queue; one that may not ends with
// outcome_unknown, because its effect may have happened. Storing what is left takes at most another 10 s. Run returns nil after a
// clean drain and ErrDrainTimeout after one that cancelled calls; until then it lives through whatever happens to the
// bus. It may be called once.
func (w *Worker) Run(ctx context.Context) error {
	if w.ran.Swap(true) {
		return protocol.Errorf(protocol.CodeUsage, "worker %s: Run was called twice", w.cfg.ID)
	}
	l, stop := newLoop(ctx, w)
	defer stop()
	var others sync.WaitGroup
	gone := make(chan struct{})
	others.Go(func() { w.register(ctx, l.registered, gone) })
	for _, p := range w.pools {
		l.open(p, 0)
	}
	err := l.run()
	<-l.goroutines.Dismiss()
	l.close()
	close(gone)
	others.Wait()
	return err
}

// sleep waits for d by the worker's clock. It returns false when ctx ended first.
func (w *Worker) sleep(ctx context.Context, d time.Duration) bool {
	fired, stop := w.cfg.Clock.After(d)
	defer stop()
	select {
	case <-fired:
		return true
	case <-ctx.Done():
		return false
	}
}

// backoff is the pause before try n, from 0: doubling from first to last, less up to a quarter by salt, so that many
// workers do not come back at once and a replay waits as long as the original did.
func backoff(first, last time.Duration, n int, salt string) time.Duration {
	d := last
	if n < 16 {
		d = min(last, first<<n)
	}
	h := uint32(2166136261)
	for i := range len(salt) {
		h = (h ^ uint32(salt[i])) * 16777619
	}
	h = (h ^ uint32(n)) * 16777619
	return d - time.Duration(h%256)*d/1024
}
