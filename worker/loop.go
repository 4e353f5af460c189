package worker

import (
	"context"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/crew"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// settleGrace is how long results may still be stored after the grace of a drain ran out.
const settleGrace = 5 * time.Second

// loop is the state of one Run. Only the goroutine of run touches it, but for the inbox, the contexts and the wait group.
// The contexts are fields because the loop is their scope: it makes them and lives as long as they do.
type loop struct {
	w          *Worker
	in         *inbox
	registered chan struct{} // closed after the first registry beat

	intake     context.Context // ends when the drain begins
	calls      context.Context // of running calls; ends with ErrDrainTimeout
	abort      context.CancelCauseFunc
	settling   context.Context // of storing results
	giveUp     context.CancelFunc
	goroutines crew.Crew      // of calls and links
	lend       func(f func()) // of goroutines

	now      time.Time
	runs     map[key]*run // have a slot or are held
	held     []*run       // delivered beyond the free slots, by a link that was being closed
	alarm    natswire.Alarm
	draining bool
	aborted  bool // a call was cancelled by the drain
}

// key identifies a call's round among those that run; a message that is no call has only its sequence.
type key struct {
	call  string
	round int
	seq   uint64
}

func newLoop(ctx context.Context, w *Worker) (*loop, func()) {
	l := &loop{w: w, intake: ctx, in: newInbox(), registered: make(chan struct{}), runs: make(map[key]*run, w.cfg.Slots), now: w.cfg.Clock.Now()}
	l.calls, l.abort = context.WithCancelCause(context.WithoutCancel(ctx))
	l.settling, l.giveUp = context.WithCancel(context.WithoutCancel(ctx))
	l.alarm.Clock = w.cfg.Clock
	l.lend = l.goroutines.Lend
	return l, func() { l.abort(nil); l.giveUp(); l.alarm.Stop() }
}

// run applies what happens until the worker has drained.
func (l *loop) run() error {
	defer l.giveUp()
	var batch []event
	stop := l.intake.Done()
	for !l.draining || len(l.runs) > 0 {
		select {
		case <-l.in.ready: // before all else that may be due, so that one history is looked at in one order
			batch = l.hear(batch)
		default:
			select {
			case <-l.in.ready:
				batch = l.hear(batch)
			case <-l.alarm.Fired():
				l.now = l.w.cfg.Clock.Now()
				l.alarm.Stop()
				l.ring()
			case <-stop:
				stop = nil
				l.drain()
			}
		}
		l.balance()
	}
	if l.aborted {
		return ErrDrainTimeout
	}
	return nil
}

// hear applies what came. It returns the batch, to be used again.
func (l *loop) hear(batch []event) []event {
	l.now = l.w.cfg.Clock.Now()
	batch = l.in.take(batch)
	for _, ev := range batch {
		ev.apply(l)
	}
	return batch
}

// drain stops the intake. What has no slot yet goes back.
func (l *loop) drain() {
	l.now = l.w.cfg.Clock.Now()
	l.draining = true
	for _, p := range l.w.pools {
		p.unlink()
	}
	for _, r := range l.held {
		l.settle(r, returned(0, nil))
	}
	l.held = nil
	l.w.events.Draining(len(l.runs))
	if len(l.runs) == 0 {
		return
	}
	l.goroutines.Go(func() {
		defer l.giveUp()
		if !l.w.sleep(l.settling, l.w.cfg.Grace) {
			return
		}
		l.in.put(graceOver{})
		l.w.sleep(l.settling, settleGrace)
	})
}

// graceOver says that the grace of the drain ran out.
type graceOver struct{}

func (graceOver) apply(l *loop) {
	l.aborted = len(l.runs) > 0
	l.abort(ErrDrainTimeout)
}

// close gives back what arrived too late.
func (l *loop) close() {
	for _, ev := range l.in.take(nil) {
		ev.apply(l)
	}
	for _, p := range l.w.pools {
		if p.link.mute != nil {
			p.link.mute()
		}
	}
}

// ring does what is due by time: heartbeats, deadlines and turns. It sets the alarm for what is due next.
func (l *loop) ring() {
	for _, p := range l.w.pools {
		if p.running > 0 && !p.beat.After(l.now) {
			p.beat = l.now.Add(p.lease / leaseBeats)
			l.heartbeat(p)
		}
		if p.running > 0 {
			l.alarm.Set(p.beat)
		}
	}
	for _, r := range l.runs {
		if r.deadline.IsZero() {
			continue
		}
		if !r.deadline.After(l.now) {
			r.deadline = time.Time{}
			r.cancel(protocol.Errorf(protocol.CodeExpired, "call %s of tool %s: its deadline passed", r.env.Call, r.pool.name))
			continue
		}
		l.alarm.Set(r.deadline)
	}
	l.takeTurns()
}
