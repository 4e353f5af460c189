package bench

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
)

// Names of the subjects that OpenTurnWrites and OpenSessionWrites open.
const (
	NameTurnWrites    = "writes of a call alone"
	NameSessionWrites = "writes of a session alone"
)

// floor is what the fabric asks of the broker for a call, from a bare client: the raw round trip, and around it the events
// of a log, each appended with the sequence that it follows. It is how near to raw anything with these guarantees can come.
type floor struct {
	raw
	name  string
	whole bool // a session of its own around each call: its input, adoption and end as well
	log   string
	seqs  []uint64 // by slot: the tail of its log
	since int      // sessions so far
}

// OpenTurnWrites opens the measurement of the writes that a call in a running session consists of.
func OpenTurnWrites(ctx context.Context, b *Broker) (Subject, func(), error) {
	return openFloor(ctx, b, &floor{raw: raw{at: "turn"}, name: NameTurnWrites})
}

// OpenSessionWrites opens the measurement of the writes that a session of one call consists of.
func OpenSessionWrites(ctx context.Context, b *Broker) (Subject, func(), error) {
	return openFloor(ctx, b, &floor{raw: raw{at: "session"}, name: NameSessionWrites, whole: true})
}

func openFloor(ctx context.Context, b *Broker, f *floor) (Subject, func(), error) {
	if err := f.open(ctx, b); err != nil {
		f.close()
		return nil, nil, fmt.Errorf("%s: %w", f.name, err)
	}
	return f, f.close, nil
}

func (f *floor) open(ctx context.Context, b *Broker) error {
	if err := f.raw.open(ctx, b); err != nil {
		return err
	}
	f.log = "bench." + string(f.at) + ".log."
	_, err := f.calls.CreateStream(ctx, jetstream.StreamConfig{
		Name: "BENCH_LOG_" + string(f.at), Subjects: []string{f.log + "*"}, Discard: jetstream.DiscardNew, AllowDirect: true,
	})
	if err != nil {
		return err
	}
	if err != nil {
		return err
	}
	_, err = f.calls.CreateStream(ctx, jetstream.StreamConfig{Name: "BENCH_INPUT_" + string(f.at), Subjects: []string{f.input()}, Discard: jetstream.DiscardNew})
	return err
}

func (f *floor) input() string { return "bench." + string(f.at) + ".input" }

func (f *floor) Name() string { return f.name }

func (f *floor) Run(ctx context.Context, inFlight, n int) (Sample, error) {
	f.since++
	f.seqs = make([]uint64, inFlight)
	ran := make([]int, inFlight)
	return f.run(ctx, inFlight, n, func(ctx context.Context, slot int, call func() error) error {
		name := strconv.Itoa(f.since) + "-" + strconv.Itoa(slot)
		if !f.whole {
			if err := f.append(ctx, name, slot); err != nil {
				return err
			}
			return call()
		}
		ran[slot]++
		f.seqs[slot] = 0
		return f.session(ctx, name+"-"+strconv.Itoa(ran[slot]), slot, call)
	})
}

// session is a run of one call: its input, the adoption, the turn, the call, the end.
func (f *floor) session(ctx context.Context, name string, slot int, call func() error) error {
	if _, err := f.calls.Publish(ctx, f.input(), make([]byte, payloadSize)); err != nil {
		return fmt.Errorf("store the input: %w", err)
	}
	for range 2 {
		if err := f.append(ctx, name, slot); err != nil {
			return err
		}
	}
	if err := call(); err != nil {
		return err
	}
	return f.append(ctx, name, slot)
}

// append is one event of a log.
func (f *floor) append(ctx context.Context, name string, slot int) error {
	ack, err := f.calls.Publish(ctx, f.log+name, make([]byte, payloadSize), jetstream.WithExpectLastSequencePerSubject(f.seqs[slot]))
	if err != nil {
		return fmt.Errorf("append to a log: %w", err)
	}
	f.seqs[slot] = ack.Sequence
	return nil
}
