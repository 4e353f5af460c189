package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// ParkConfig says how many sessions wait for a person. The zero value of a number is its default.
type ParkConfig struct {
	Config       // Dir, SyncAlways, Command, which is required, and Progress
	Sessions int // that wait; 0 is 100,000
	InFlight int // sessions that are on their way to their wait at once; 0 is 256
	Replies  int // approvals, and ordinary calls of each kind, that are timed, 1 at a time; 0 is 200
}

func (cfg *ParkConfig) validate() error {
	if cfg.Command == nil || cfg.Sessions < 0 || cfg.InFlight < 0 || cfg.Replies < 0 {
		return errors.New("bench: sessions and replies are positive numbers, and the server is a process of its own")
	}
	for n, otherwise := range map[*int]int{&cfg.Sessions: 100_000, &cfg.InFlight: 256, &cfg.Replies: 200} {
		if *n == 0 {
			*n = otherwise
		}
	}
	cfg.Replies = min(cfg.Replies, cfg.Sessions)
	return cfg.Config.validate()
}

// MeasurePark has many sessions come to wait for a person's word, reads what they cost the coordinator and the broker when a
// tenth, half and all of them wait, and then times what is done with so many: listing, finding one, and from a reply to the
// start of the worker. It fails when anything stays of the sessions that wait no more.
func MeasurePark(ctx context.Context, cfg ParkConfig) (*Parking, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	dir := filepath.Join(cfg.Dir, PlaceSeparate)
	b, err := StartSeparate(ctx, cfg.Command(ServeConfig{Dir: dir, SyncAlways: cfg.SyncAlways}))
	if err != nil {
		return nil, err
	}
	defer b.Close()
	p, err := openParking(ctx, b)
	if err != nil {
		return nil, err
	}
	defer p.fabric.close()
	r := &Parking{Machine: thisMachine(cfg.SyncAlways), Sessions: cfg.Sessions, InFlight: cfg.InFlight}
	if err := r.grow(ctx, cfg, p, b, dir); err != nil {
		return nil, fmt.Errorf("park %d sessions: %w", cfg.Sessions, err)
	}
	if r.FirstPage, r.Find, err = p.look(ctx, cfg.Sessions); err != nil {
		return nil, fmt.Errorf("look among %d parked sessions: %w", cfg.Sessions, err)
	}
	_, _ = fmt.Fprintf(cfg.Progress, "listed and found; %d replies follow\n", cfg.Replies)
	if r.Replies, err = p.replies(ctx, cfg.Replies); err != nil {
		return nil, fmt.Errorf("reply to parked sessions: %w", err)
	}
	if _, err := p.settle(ctx, parkWarmth+cfg.Sessions-cfg.Replies); err != nil {
		return nil, fmt.Errorf("sessions that wait no more: %w", err)
	}
	return r, nil
}

// parkWarmth is how many sessions park before anything is read: connections, caches and the heap reach their size.
const parkWarmth = 512

// grow parks the sessions and reads, on the way, what those cost that wait.
func (r *Parking) grow(ctx context.Context, cfg ParkConfig, p *parking, b *Broker, dir string) error {
	if err := p.park(ctx, cfg.InFlight, parkWarmth); err != nil {
		return err
	}
	read := func(parked int) error {
		step, streams, err := p.read(ctx, b, dir, parkWarmth+parked)
		if err != nil {
			return err
		}
		step.Parked = parked
		r.Steps = append(r.Steps, step)
		r.total(streams)
		return nil
	}
	if err := read(0); err != nil {
		return err
	}
	var parking time.Duration
	parked, told := 0, time.Now()
	for _, until := range []int{cfg.Sessions / 10, cfg.Sessions / 2, cfg.Sessions} {
		for parked < until {
			some, from := min(1000, until-parked), time.Now()
			if err := p.park(ctx, cfg.InFlight, some); err != nil {
				return err
			}
			parking += time.Since(from)
			if parked += some; time.Since(told) > time.Second {
				told = time.Now()
				_, _ = fmt.Fprintf(cfg.Progress, "%d of %d sessions wait, %.0f a second\n", parked, cfg.Sessions, float64(parked)/parking.Seconds())
			}
		}
		if err := read(parked); err != nil {
			return err
		}
	}
	r.Rate, r.Session = float64(parked)/parking.Seconds(), each(r.Steps)
	return nil
}

// read waits until the last sessions rest, and reads what those cost that wait.
func (p *parking) read(ctx context.Context, b *Broker, dir string, parked int) (ParkStep, []natswire.StreamState, error) {
	streams, err := p.settle(ctx, parked)
	if err != nil {
		return ParkStep{}, nil, err
	}
	step := ParkStep{Goroutines: settled(), Heap: ownHeap()}
	if step.ServerHeap, err = b.Heap(ctx); err != nil {
		return step, nil, err
	}
	step.Disk, err = size(dir)
	return step, streams, err
}

// settleLimit is how long it may take until only what waits is left: more than a guard's delay.
const settleLimit = time.Minute

// settle waits until the broker holds nothing of parked sessions but what it holds for as long as they wait: one message for
// each on TIMERS beside the sentinel, and none of their inputs.
func (p *parking) settle(ctx context.Context, parked int) ([]natswire.StreamState, error) {
	n := p.fabric.conn.Names()
	ctx, cancel := context.WithTimeoutCause(ctx, settleLimit, fmt.Errorf("after %s the broker still holds more or less than one timer for each of %d parked sessions", settleLimit, parked))
	defer cancel()
	for {
		var all []natswire.StreamState
		rest := true
		for _, stream := range n.Streams() {
			s, err := p.fabric.conn.StreamState(ctx, stream)
			if err != nil {
				return nil, err
			}
			all = append(all, s)
			switch stream {
			case n.Timers():
				rest = rest && s.Messages == uint64(parked)+1
			case n.Input():
				rest = rest && s.Messages == 1
			}
		}
		if rest {
			return all, nil
		}
		if natswire.Sleep(ctx, natswire.SystemClock{}, 100*time.Millisecond) != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// size is the size of all files below a directory. Some may go while it looks.
func size(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				total += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return total, err
}
