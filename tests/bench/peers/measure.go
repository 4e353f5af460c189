package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config says how much is measured.
type Config struct {
	Rounds  int           // of all peers, in turn; figures are medians
	Single  int           // calls of a round at 1 in flight
	Calls   int           // calls of a round at Many in flight
	Many    int           // calls open at once where throughput is measured
	Longest time.Duration // of one measurement: a slow peer makes fewer calls
}

// figures is what one measurement gave.
type figures struct {
	p50, p99 time.Duration
	rate     float64 // calls per second
	calls    int
}

// both is a peer's figures of one round.
type both struct{ single, many figures }

// measureAll opens all peers, measures them in turn, and closes them. A peer that cannot be opened is in the report with
// its reason.
func measureAll(ctx context.Context, all []Peer, env *Env, cfg Config) (*Report, error) {
	type open struct {
		call   Call
		closed func()
		err    error
	}
	var rounds [][]both
	opened := make([]open, len(all))
	defer func() {
		for _, o := range opened {
			if o.closed != nil {
				o.closed()
			}
		}
	}()
	for i, p := range all {
		fmt.Fprintf(env.Log, "start %s, %s\n", p.System, p.Durability)
		o := &opened[i]
		if o.call, o.closed, o.err = p.Open(ctx, env); o.err != nil {
			fmt.Fprintf(env.Log, "not measured: %v\n", o.err)
		} else if _, err := drive(ctx, o.call, cfg.Many, cfg.Calls/2, cfg.Longest); err != nil { // warm
			return nil, fmt.Errorf("%s: %w", p.System, err)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	for r := range cfg.Rounds {
		round := make([]both, len(all))
		for turn := range all {
			i := (turn + r) % len(all)
			if opened[i].err != nil {
				continue
			}
			b, err := measureOne(ctx, opened[i].call, cfg)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", all[i].System, err)
			}
			round[i] = b
		}
		rounds = append(rounds, round)
		fmt.Fprintf(env.Log, "round %d of %d\n", r+1, cfg.Rounds)
	}
	report := newReport(cfg)
	for i, p := range all {
		var own []both
		for _, r := range rounds {
			own = append(own, r[i])
		}
		report.add(p, own, opened[i].err)
	}
	return report, nil
}

func measureOne(ctx context.Context, call Call, cfg Config) (b both, err error) {
	if b.single, err = drive(ctx, call, 1, cfg.Single, cfg.Longest); err != nil {
		return b, err
	}
	b.many, err = drive(ctx, call, cfg.Many, cfg.Calls, cfg.Longest)
	return b, err
}

// drive makes n calls from inFlight goroutines, fewer when that takes too long, and times each.
func drive(ctx context.Context, call Call, inFlight, n int, longest time.Duration) (figures, error) {
	runtime.GC() // nobody pays for another's garbage
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	hung := time.AfterFunc(longest+startLimit, func() { cancel(fmt.Errorf("a call hangs for %s", startLimit)) })
	defer hung.Stop()
	latencies := make([]time.Duration, n)
	var next, done atomic.Int64
	var running sync.WaitGroup
	start := time.Now()
	for slot := range inFlight {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && time.Since(start) < longest; i = int(next.Add(1)) - 1 {
				from := time.Now()
				got, err := call(ctx, slot, question)
				if err == nil && got != question {
					err = errWrongAnswer
				}
				if err != nil {
					cancel(err)
					return
				}
				latencies[done.Add(1)-1] = time.Since(from)
			}
		})
	}
	running.Wait()
	elapsed := time.Since(start)
	if err := context.Cause(ctx); err != nil {
		return figures{}, err
	}
	latencies = latencies[:done.Load()]
	slices.Sort(latencies)
	return figures{
		p50: percentile(latencies, 50), p99: percentile(latencies, 99),
		rate: float64(len(latencies)) / elapsed.Seconds(), calls: len(latencies),
	}, nil
}

// percentile is by nearest rank, of sorted values that are not empty.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[max((len(sorted)*p+99)/100, 1)-1]
}
