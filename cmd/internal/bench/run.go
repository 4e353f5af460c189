package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// Config says what to measure. The zero value of a number is its default.
type Config struct {
	// Dir is where the brokers keep their files, each in a folder of its own. It must exist. The files stay.
	Dir string
	// SyncAlways has every broker sync each stored message before its ack. false syncs every 100 ms.
	SyncAlways bool
	// Command is the command that calls Serve with this configuration and its own stdin and stdout, not started yet. nil
	// leaves out the separate broker.
	Command func(ServeConfig) *exec.Cmd
	// NoEmbedded leaves out the broker in this process.
	NoEmbedded bool
	// Subjects are measured beside core request-reply and the raw round trip.
	Subjects []Opener
	// Rounds is how often all is measured; figures are medians over rounds. 0 is 5.
	Rounds int
	// SingleCalls is the number of calls of a round at 1 in flight. 0 is 500.
	SingleCalls int
	// Calls is the number of calls of a round at each number in flight of InFlight. 0 is 5000.
	Calls int
	// InFlight is how many calls are open at once where throughput is measured. nil is 64 and 256.
	InFlight []int
	// Progress gets a line per place and round, for people. nil is nobody.
	Progress io.Writer
}

// runLimit ends a Run that hangs.
const runLimit = 2 * time.Minute

func (cfg *Config) validate() error {
	if cfg.Rounds < 0 || cfg.SingleCalls < 0 || cfg.Calls < 0 || slices.ContainsFunc(cfg.InFlight, func(k int) bool { return k < 1 }) {
		return errors.New("bench: rounds, calls and calls in flight are positive numbers")
	}
	if info, err := os.Stat(cfg.Dir); err != nil || !info.IsDir() {
		return fmt.Errorf("bench: the directory for the brokers' files %q does not exist", cfg.Dir)
	}
	if cfg.Rounds == 0 {
		cfg.Rounds = 5
	}
	if cfg.SingleCalls == 0 {
		cfg.SingleCalls = 500
	}
	if cfg.Calls == 0 {
		cfg.Calls = 5000
	}
	if cfg.InFlight == nil {
		cfg.InFlight = []int{64, 256}
	}
	if cfg.Progress == nil {
		cfg.Progress = io.Discard
	}
	return nil
}

// Run measures and reports. It fails as a whole: a report is complete or there is none.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	report := newReport(cfg)
	var places []string
	if !cfg.NoEmbedded {
		places = append(places, PlaceEmbedded)
	}
	if cfg.Command != nil {
		places = append(places, PlaceSeparate)
	}
	for _, place := range places {
		rows, err := measurePlace(ctx, cfg, place)
		if err != nil {
			return nil, fmt.Errorf("bench, %s broker: %w", place, err)
		}
		report.Places = append(report.Places, Place{Name: place, Rows: rows})
	}
	return report, nil
}

func measurePlace(ctx context.Context, cfg Config, place string) ([]Row, error) {
	b, err := startBroker(ctx, cfg, place)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	var subjects []Subject
	for _, open := range slices.Concat([]Opener{OpenCore, OpenRaw}, cfg.Subjects) {
		s, closeSubject, err := open(ctx, b)
		if err != nil {
			return nil, err
		}
		defer closeSubject()
		subjects = append(subjects, s)
	}
	loads := append([]load{{inFlight: 1, calls: cfg.SingleCalls}}, make([]load, len(cfg.InFlight))...)
	for i, k := range cfg.InFlight {
		loads[i+1] = load{inFlight: k, calls: cfg.Calls}
	}
	// One round that does not count: connections, caches and the heap reach their size.
	if _, err := measureRound(ctx, b, subjects, []load{{1, min(cfg.SingleCalls, 100)}, {64, min(cfg.Calls, 500)}}, 0); err != nil {
		return nil, err
	}
	rounds := make([]round, cfg.Rounds)
	for i := range rounds {
		from := time.Now()
		if rounds[i], err = measureRound(ctx, b, subjects, loads, i); err != nil {
			return nil, err
		}
		_, _ = fmt.Fprintf(cfg.Progress, "%s broker: round %d of %d took %.1fs\n", place, i+1, cfg.Rounds, time.Since(from).Seconds())
	}
	names := make([]string, len(subjects))
	for i, s := range subjects {
		names[i] = s.Name()
	}
	return summarise(names, loads, rounds), nil
}

func startBroker(ctx context.Context, cfg Config, place string) (*Broker, error) {
	serve := ServeConfig{Dir: filepath.Join(cfg.Dir, place), SyncAlways: cfg.SyncAlways}
	if place == PlaceSeparate {
		return StartSeparate(ctx, cfg.Command(serve))
	}
	return StartEmbedded(serve)
}

// load is how hard a subject is driven.
type load struct{ inFlight, calls int }

// figures is what one Run under one load gave.
type figures struct {
	p50, p99 time.Duration
	rate     float64       // calls per second
	cpu      time.Duration // per call
}

// round holds figures by subject, then by load.
type round [][]figures

// measureRound drives every subject under each load. Subjects take turns within a load, and who begins changes from
// round to round.
func measureRound(ctx context.Context, b *Broker, subjects []Subject, loads []load, begin int) (round, error) {
	r := make(round, len(subjects))
	for i := range r {
		r[i] = make([]figures, len(loads))
	}
	for l, load := range loads {
		for turn := range subjects {
			s := (begin + turn) % len(subjects)
			f, err := measure(ctx, b, subjects[s], load)
			if err != nil {
				return nil, fmt.Errorf("%s, %d in flight: %w", subjects[s].Name(), load.inFlight, err)
			}
			r[s][l] = f
		}
	}
	return r, nil
}

func measure(ctx context.Context, b *Broker, s Subject, load load) (figures, error) {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	runtime.GC() // nobody pays for another's garbage
	before, err := b.CPU(ctx)
	if err != nil {
		return figures{}, err
	}
	sample, err := s.Run(ctx, load.inFlight, load.calls)
	if err != nil {
		return figures{}, err
	}
	after, err := b.CPU(ctx)
	if err != nil {
		return figures{}, err
	}
	if len(sample.Latencies) != load.calls || sample.Elapsed <= 0 {
		return figures{}, fmt.Errorf("%d latencies in %s for %d calls", len(sample.Latencies), sample.Elapsed, load.calls)
	}
	slices.Sort(sample.Latencies)
	return figures{
		p50:  percentile(sample.Latencies, 50),
		p99:  percentile(sample.Latencies, 99),
		rate: float64(load.calls) / sample.Elapsed.Seconds(),
		cpu:  (after - before + sample.OutsideCPU - sample.AsideCPU) / time.Duration(load.calls),
	}, nil
}

// percentile is by nearest rank, of sorted values that are not empty.
func percentile(sorted []time.Duration, p int) time.Duration {
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}
