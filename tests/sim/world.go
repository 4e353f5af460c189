// Package sim is JetStream in memory, as unkind as the real one and repeatable: one seed, one history. The real
// coordinators and workers run on it inside a testing/synctest bubble, where time is virtual.
//
// With Config.Seed 0 the World is plain: each call takes effect at once, in the order of the calls, nothing fails, and no
// driver is needed. With a seed nothing happens by itself: calls and deliveries queue up, and Run, on a goroutine of the
// bubble, carries out one at a time, in a seeded order, whenever all other goroutines are blocked.
package sim

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// Config is what a World is made of.
type Config struct {
	Names  natswire.Names
	Seed   uint64 // 0 is plain: in call order, no faults, no Run
	Faults Faults // needs a Seed
}

// Faults are the chances, 0 to 1, of what goes wrong on a call, a message or a delivery. The zero value is a network that
// only reorders what is not ordered by the protocol.
type Faults struct {
	LostAck  float64       // a call takes effect, its caller is told bus_unreachable
	Late     float64       // a call fails with bus_unreachable and takes effect later (N16)
	Fail     float64       // a call fails with bus_unreachable and has no effect
	Timeout  float64       // a call gets no answer before its deadline, with or without effect
	Drop     float64       // a core message, republished message, ack, nak or in-progress is lost
	Delay    float64       // a message, to the broker or from it, is held up to MaxDelay on its way
	Twin     float64       // a delivery's ack wait ends at once: another attempt begins beside it
	Stale    float64       // Read and Latest do not see the newest messages (N11)
	Forget   float64       // a stream loses its memory of message ids before a publish (N8)
	MaxDelay time.Duration // 0 is 2 s
}

// World is the broker and the network around it. Its methods may be called concurrently, by goroutines of one bubble.
type World struct {
	mu       sync.Mutex // guards everything below and in streams, consumers and subscriptions; no user code runs under it
	names    natswire.Names
	rng      *rand.Rand // nil is plain. Drawn from by actions only, so that its order is the order of the history
	faults   Faults
	start    time.Time
	ready    []*action // due; only filled with a seed
	future   []*action // by due instant
	alarm    *time.Timer
	wake     chan struct{} // tells Run that something was queued
	streams  []*stream
	objects  map[string][]byte
	nodes    []*Bus
	subs     []*subscription
	bereft   []*puller // of deleted consumers, whose owners do not know yet
	records  []Record
	settled  []Settled
	starts   []Started
	asked    []Asked
	receipts []Receipted
	skews    map[string]time.Duration // of nodes' clocks
	trace    []string
}

// action is something that will happen. Actions run under World.mu.
type action struct {
	due time.Time
	key string // orders actions that concurrent goroutines queue in any order
	run func()
}

// Record is one message that a stream stored, also if it is gone by now. Records are in the order they were stored,
// over all streams.
type Record struct {
	Stream string
	natswire.Stored
	Acked bool // its sender was told
}

// New makes a World with the streams of cfg.Names and no consumers. It must be called inside the bubble it is used in.
func New(cfg Config) *World {
	w := &World{names: cfg.Names, faults: cfg.Faults, start: time.Now(), wake: make(chan struct{}, 1), objects: map[string][]byte{}, skews: map[string]time.Duration{}}
	if cfg.Seed != 0 {
		w.rng = rand.New(rand.NewPCG(cfg.Seed, 0))
	} else if cfg.Faults != (Faults{}) {
		panic("sim: faults without a seed")
	}
	w.streams = newStreams(w)
	return w
}

// Names is how subjects are spelled here.
func (w *World) Names() natswire.Names { return w.names }

// SetFaults changes the faults from here on; the zero value heals the network.
func (w *World) SetFaults(f Faults) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = f
}

// Skew sets how far a node's clock is ahead of the broker's, from its next start on.
func (w *World) Skew(node string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.skews[node] = d
}

// Run carries out what is queued until ctx ends. While it runs, nobody else in the bubble may call synctest.Wait.
func (w *World) Run(ctx context.Context) {
	if w.rng == nil {
		<-ctx.Done()
		return
	}
	for ctx.Err() == nil {
		synctest.Wait()
		idle, ok := w.step()
		if ok {
			continue
		}
		timer := time.NewTimer(idle)
		select {
		case <-w.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// step runs one due action, chosen by the seed, or tells how long there is none.
func (w *World) step() (idle time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for len(w.future) > 0 && !w.future[0].due.After(now) {
		w.ready = append(w.ready, w.future[0])
		w.future = w.future[1:]
	}
	if len(w.ready) > 0 {
		slices.SortStableFunc(w.ready, func(a, b *action) int { return cmp.Compare(a.key, b.key) })
		i := w.rng.IntN(len(w.ready))
		a := w.ready[i]
		w.ready = slices.Delete(w.ready, i, i+1)
		a.run()
		return 0, true
	}
	if len(w.future) > 0 {
		return w.future[0].due.Sub(now), false
	}
	return 24 * time.Hour, false
}

// submit queues an action, delay from now. A plain World carries out at once what is due. The caller holds mu.
func (w *World) submit(delay time.Duration, key string, run func()) *action {
	a := &action{due: time.Now().Add(delay), key: key, run: run}
	if delay <= 0 && w.rng == nil {
		w.runDue()
		run()
		return a
	}
	if delay <= 0 {
		w.ready = append(w.ready, a)
	} else {
		i, _ := slices.BinarySearchFunc(w.future, a, func(x, a *action) int {
			return cmp.Or(x.due.Compare(a.due), cmp.Compare(x.key, a.key), -1)
		})
		w.future = slices.Insert(w.future, i, a)
		if w.rng == nil && i == 0 {
			w.setAlarm()
		}
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return a
}

// withdraw takes back what did not happen yet. The caller holds mu.
func (w *World) withdraw(a *action) {
	same := func(x *action) bool { return x == a }
	w.ready, w.future = slices.DeleteFunc(w.ready, same), slices.DeleteFunc(w.future, same)
}

func (w *World) setAlarm() {
	if w.alarm != nil {
		w.alarm.Stop()
	}
	w.alarm = time.AfterFunc(time.Until(w.future[0].due), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.runDue()
	})
}

// runDue is a plain World's clock.
func (w *World) runDue() {
	for len(w.future) > 0 && !w.future[0].due.After(time.Now()) {
		a := w.future[0]
		w.future = w.future[1:]
		a.run()
	}
	if len(w.future) > 0 {
		w.setAlarm()
	}
}

// hit draws whether a fault happens.
func (w *World) hit(rate float64) bool { return rate > 0 && w.rng != nil && w.rng.Float64() < rate }

// lag draws how long a message is on its way.
func (w *World) lag() time.Duration {
	if !w.hit(w.faults.Delay) {
		return 0
	}
	return w.delay()
}

func (w *World) delay() time.Duration {
	return time.Duration(w.rng.Int64N(int64(cmp.Or(w.faults.MaxDelay, 2*time.Second)))) + 1
}

func (w *World) log(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%10.3fs  ", time.Since(w.start).Seconds())+fmt.Sprintf(format, args...))
}

// Trace is what has happened so far, a line each. The same seed gives the same lines.
func (w *World) Trace() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.trace)
}

// Records is all that was ever stored, but for the beats in REG.
func (w *World) Records() []Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.records)
}
