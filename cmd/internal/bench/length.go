package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// long is one session that is spoken with again and again.
type long struct {
	s      *sessions
	id     string
	talk   *talk
	events atomic.Int64 // of its log so far
	mute   func()
}

func openLong(s *sessions) (*long, error) {
	l := &long{s: s, id: protocol.NewID()}
	l.talk = s.f.model.begin("conversation " + l.id)
	var err error
	l.mute, err = s.f.conn.Subscribe(s.f.conn.Names().LiveSubject(appName, l.id), func(natswire.Msg) { l.events.Add(1) })
	return l, err
}

func (l *long) close() {
	l.mute()
	l.s.f.model.forget(l.talk)
}

// say begins a run and returns when the model was asked.
func (l *long) say(ctx context.Context) (*running, error) {
	r := &running{talk: l.talk, end: make(chan error, 1)}
	l.s.mu.Lock()
	l.s.ends[l.id] = r.end
	l.s.mu.Unlock()
	if err := l.add(ctx); err != nil {
		return nil, err
	}
	return r, r.heard(ctx, 0)
}

// add sends a message. All are the same, so that the model knows the conversation by its first one.
func (l *long) add(ctx context.Context) error {
	_, err := l.s.f.client.Send(ctx, appName, l.id, client.Text(l.talk.key))
	return err
}

// turn has the model ask for a call and returns when it is asked again. asked is the time that took, and built how much
// of it went into the request.
func (l *long) turn(ctx context.Context, r *running) (asked, built time.Duration, err error) {
	before, from := l.s.f.built.Load(), time.Now()
	r.answer <- callsOf(1)
	err = r.heard(ctx, 1)
	return time.Since(from), time.Duration(l.s.f.built.Load() - before), err
}

// rest ends the run. A message that came after the model was asked has it asked once more.
func (l *long) rest(ctx context.Context, r *running) error {
	r.answer <- lastWord()
	for {
		select {
		case <-r.asked:
			r.answer <- lastWord()
		case err := <-r.end:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// grow has runs of usual length until the log has so many events: as many messages as turns, half of them said while the
// model is asked.
func (l *long) grow(ctx context.Context, events int) error {
	for l.events.Load() < int64(events) {
		r, err := l.say(ctx)
		if err != nil {
			return err
		}
		for range min(sessionTurns, (events-int(l.events.Load()))/2) {
			if err := l.add(ctx); err != nil {
				return err
			}
			r.answer <- callsOf(1)
			select {
			case <-r.asked:
			case err := <-r.end:
				return fmt.Errorf("a run ended early: %w", cmp.Or(err, errors.New("without a problem")))
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err := l.rest(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// stretch is what was measured in one session in one round: medians.
type stretch struct{ turn, turnBuilt, run, runBuilt time.Duration }

// measure has one run of n turns, and n runs of one call.
func (l *long) measure(ctx context.Context, n int) (m stretch, err error) {
	var turns, turnsBuilt, runs, runsBuilt []time.Duration
	r, err := l.say(ctx)
	if err != nil {
		return m, err
	}
	runtime.GC() // the turns do not pay for what was read to make the first request
	for range n {
		took, built, err := l.turn(ctx, r)
		if err != nil {
			return m, err
		}
		turns, turnsBuilt = append(turns, took-built), append(turnsBuilt, built)
	}
	if err := l.rest(ctx, r); err != nil {
		return m, err
	}
	for range n {
		runtime.GC()
		before, from := l.s.f.built.Load(), time.Now()
		r, err := l.say(ctx)
		if err == nil {
			_, _, err = l.turn(ctx, r)
		}
		if err == nil {
			err = l.rest(ctx, r)
		}
		if err != nil {
			return m, err
		}
		took, built := time.Since(from), time.Duration(l.s.f.built.Load()-before)
		runs, runsBuilt = append(runs, took-built), append(runsBuilt, built)
	}
	for _, d := range [][]time.Duration{turns, turnsBuilt, runs, runsBuilt} {
		slices.Sort(d)
	}
	return stretch{percentile(turns, 50), percentile(turnsBuilt, 50), percentile(runs, 50), percentile(runsBuilt, 50)}, nil
}

// measureLength measures the same in a session with a short log and in one with a long log, in turn. The short one is
// new in each round, so that it is short.
func measureLength(ctx context.Context, s *sessions, cfg GrowthConfig) ([]Length, error) {
	mute, err := s.watch()
	if err != nil {
		return nil, err
	}
	defer mute()
	longOne, err := openLong(s)
	if err != nil {
		return nil, err
	}
	defer longOne.close()
	if err := longOne.grow(ctx, cfg.Long); err != nil {
		return nil, fmt.Errorf("grow a log to %d events: %w", cfg.Long, err)
	}
	fmt.Fprintf(cfg.Progress, "a log has %d events\n", longOne.events.Load())
	rounds := make([][2]stretch, cfg.Rounds)
	for i := range rounds {
		shortOne, err := openLong(s)
		if err != nil {
			return nil, err
		}
		if err := shortOne.grow(ctx, cfg.Short); err != nil {
			return nil, fmt.Errorf("grow a log to %d events: %w", cfg.Short, err)
		}
		both := [2]*long{shortOne, longOne}
		for turn := range both {
			which := (turn + i) % 2
			if rounds[i][which], err = both[which].measure(ctx, cfg.Measured); err != nil {
				return nil, err
			}
		}
		shortOne.close()
		fmt.Fprintf(cfg.Progress, "round %d of %d\n", i+1, cfg.Rounds)
	}
	return []Length{
		compare(NameTurn, rounds, func(s stretch) (own, built time.Duration) { return s.turn, s.turnBuilt }),
		compare(NameRun, rounds, func(s stretch) (own, built time.Duration) { return s.run, s.runBuilt }),
	}, nil
}

func compare(subject string, rounds [][2]stretch, of func(stretch) (own, built time.Duration)) Length {
	var short, long, ratios, buildShort, buildLong []float64
	for _, r := range rounds {
		own, built := of(r[0])
		ownLong, builtLong := of(r[1])
		short, buildShort = append(short, micros(own)), append(buildShort, micros(built))
		long, buildLong = append(long, micros(ownLong)), append(buildLong, micros(builtLong))
		ratios = append(ratios, ratio(micros(ownLong), micros(own)))
	}
	return Length{
		Subject: subject, Short: median(short), Long: median(long), Ratio: median(ratios),
		BuildShort: median(buildShort), BuildLong: median(buildLong),
	}
}
