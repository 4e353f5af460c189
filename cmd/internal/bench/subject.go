package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Subject is one thing to measure, open on one broker. Its methods are called by one goroutine at a time.
type Subject interface {
	// Name is the row's name in the report: short, the same on every broker.
	Name() string
	// Run makes n calls with at most inFlight open at once and returns when all have ended. An error ends the whole
	// measurement.
	Run(ctx context.Context, inFlight, n int) (Sample, error)
}

// Sample is what one Run saw.
type Sample struct {
	// Latencies holds one duration per call, in any order, from before the request is written until its answer is read.
	Latencies []time.Duration
	// Elapsed is the time from the first request to the last answer.
	Elapsed time.Duration
	// OutsideCPU is the CPU time that processes other than this one and the broker spent on the run, such as workers that
	// the subject started. 0 is none.
	OutsideCPU time.Duration
	// AsideCPU is the CPU time, of this process and the broker, that Run spent before the first request and after the last
	// answer to prepare and to clear up. It is not counted.
	AsideCPU time.Duration
}

// Opener opens a subject on a broker. The caller runs done once, after the last Run.
type Opener func(ctx context.Context, b *Broker) (s Subject, done func(), err error)

// Drive makes n calls from inFlight goroutines and times each: the loop that every subject shares. call gets the number
// of its goroutine (0 to inFlight-1) and of the call (0 to n-1); its first error cancels the others and is returned.
func Drive(ctx context.Context, inFlight, n int, call func(ctx context.Context, slot, i int) error) (Sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sample := Sample{Latencies: make([]time.Duration, n)}
	var next atomic.Int64
	var running sync.WaitGroup
	start := time.Now()
	for slot := range min(inFlight, n) {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				from := time.Now()
				if err := call(ctx, slot, i); err != nil {
					cancel(fmt.Errorf("call %d of %d: %w", i+1, n, err))
					return
				}
				sample.Latencies[i] = time.Since(from)
			}
		})
	}
	running.Wait()
	sample.Elapsed = time.Since(start)
	return sample, context.Cause(ctx)
}
