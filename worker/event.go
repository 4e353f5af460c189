package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// Events is what a worker tells about itself: the source of its log, of metrics and of what tests wait for. Nil functions
// are left out. They are called from several goroutines at once and must not block.
type Events struct {
	Registered func(tool string, err error) // a registry beat was sent, or failed and is tried again
	Waiting    func(tool string, err error) // the tool has no consumer yet, or it cannot be reached; tried again
	Serving    func(tool string)            // calls of the tool are being pulled
	Lost       func(tool string, err error) // the pull subscription ended and is opened again
	Started    func(Attempt)                // a delivered call has a slot
	Settled    func(Attempt, Settlement)    // the call is off the worker's hands
	Retrying   func(Attempt, error)         // a claim or result could not be stored and is tried again
	Draining   func(running int)            // intake has stopped
}

// Attempt is one delivery of a call.
type Attempt struct {
	Tool, App, Session, Call string
	Round                    int
	Attempt                  int // from 1
	Seq                      uint64
	Queued                   time.Duration // from its publish to its slot, by the estimate of the broker's time
}

// Way is how a worker let go of a delivery.
type Way string

// The ways.
const (
	Answered Way = "answered" // the result is stored
	Refused  Way = "refused"  // another result was stored before
	Dropped  Way = "dropped"  // acked without a result: somebody else decides the call
	Returned Way = "returned" // given back to be delivered again
	Buried   Way = "buried"   // a dead-letter record is stored instead
)

// Settlement is how an attempt ended.
type Settlement struct {
	Way     Way
	Outcome protocol.Outcome // of the result; empty without one
	Code    protocol.Code    // the fabric's reason; empty when the tool answered
	Delay   time.Duration    // until the next delivery, when Returned
	Err     error            // the cause, when there is one
	Ran     time.Duration    // in the tool; 0 when it was not started
}

// Join returns Events that tell a and then b.
func Join(a, b Events) Events {
	return Events{
		Registered: join2(a.Registered, b.Registered),
		Waiting:    join2(a.Waiting, b.Waiting),
		Serving:    join1(a.Serving, b.Serving),
		Lost:       join2(a.Lost, b.Lost),
		Started:    join1(a.Started, b.Started),
		Settled:    join2(a.Settled, b.Settled),
		Retrying:   join2(a.Retrying, b.Retrying),
		Draining:   join1(a.Draining, b.Draining),
	}
}

func join1[A any](f, g func(A)) func(A) {
	switch {
	case f == nil && g == nil:
		return func(A) {}
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(a A) { f(a); g(a) }
}

func join2[A, B any](f, g func(A, B)) func(A, B) {
	switch {
	case f == nil && g == nil:
		return func(A, B) {}
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(a A, b B) { f(a, b); g(a, b) }
}

// How long a tool may have no consumer before a person wonders, and before an operator should look.
const (
	waitingIsLong = time.Second // a tool's first worker always waits a moment
	waitingIsNews = 5 * time.Second
)

// logTo writes what an operator acts on as warnings, and the rest for whoever asked for debug records.
func logTo(log *slog.Logger, clock natswire.Clock) Events {
	debug := log.Enabled(context.Background(), slog.LevelDebug)
	var first sync.Map // when a tool was first waited for, by its name
	ev := Events{
		Waiting: func(tool string, err error) {
			if protocol.CodeOf(err) == protocol.CodeNotFound {
				since, _ := first.LoadOrStore(tool, clock.Now())
				level := slog.LevelDebug
				switch waits := clock.Now().Sub(since.(time.Time)); {
				case waits > waitingIsNews:
					level = slog.LevelWarn
				case waits > waitingIsLong:
					level = slog.LevelInfo
				}
				log.Log(context.Background(), level, "waiting for a coordinator to make the tool's consumer", "tool", tool)
				return
			}
			log.Warn("cannot pull the tool's calls; trying again", "tool", tool, "error", err)
		},
		Serving: func(tool string) {
			first.Delete(tool)
			log.Info("serving", "tool", tool)
		},
		Lost: func(tool string, err error) {
			log.Warn("lost the tool's consumer; opening it again", "tool", tool, "error", err)
		},
		Registered: func(tool string, err error) {
			if err != nil {
				log.Warn("cannot register; trying again", "tool", tool, "error", err)
			}
		},
		Retrying: func(a Attempt, err error) {
			log.Warn("cannot reach the bus for a call; trying again", "tool", a.Tool, "call", a.Call, "attempt", a.Attempt, "error", err)
		},
		Settled: func(a Attempt, s Settlement) {
			if s.Way != Buried && s.Err == nil && !debug {
				return
			}
			level := slog.LevelDebug
			if s.Way == Buried || s.Err != nil {
				level = slog.LevelWarn
			}
			log.Log(context.Background(), level, "call settled", "tool", a.Tool, "call", a.Call, "attempt", a.Attempt,
				"way", s.Way, "outcome", s.Outcome, "code", s.Code, "delay", s.Delay, "ran", s.Ran, "error", s.Err)
		},
		Draining: func(running int) { log.Info("draining", "running", running) },
	}
	return ev
}
