package client

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// stillClock never fires: nothing is looked at because of the time.
type stillClock struct{ natswire.SystemClock }

func (stillClock) After(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// ear is a Bus that counts reads and does not hear some of what is republished of logs.
type ear struct {
	natswire.Bus
	reads atomic.Int64
	heard atomic.Int64
	loses func(n int64) bool // the n-th message from 1
}

func (e *ear) Read(ctx context.Context, stream, subject string, from uint64, limit int) ([]natswire.Stored, error) {
	e.reads.Add(1)
	return e.Bus.Read(ctx, stream, subject, from, limit)
}

func (e *ear) Subscribe(subject string, deliver func(natswire.Msg)) (func(), error) {
	return e.Bus.Subscribe(subject, func(m natswire.Msg) {
		if !e.loses(e.heard.Add(1)) {
			deliver(m)
		}
	})
}

// listener is a client with an ear, and with a clock that stands still.
func (f *fabric) listener(loses func(n int64) bool) (*Client, *ear) {
	f.t.Helper()
	e := &ear{Bus: f.conn, loses: loses}
	c, err := New(Config{Bus: e, Names: f.conn.Names(), Clock: stillClock{}})
	if err != nil {
		f.t.Fatal(err)
	}
	return c, e
}

// watched watches a session, appends an event each time one is seen, and returns the sequences that were seen.
func (f *fabric) watched(c *Client, events int) []uint64 {
	f.t.Helper()
	f.append("helper", "s1", protocol.Event{Turn: says("0")})
	var seen []uint64
	for u, err := range c.watch(soon(f.t), "helper", "s1", 0, false) {
		if err != nil {
			f.t.Fatal(err)
		}
		if u.Entry == nil {
			continue
		}
		if got := string(u.Entry.Event.Turn.Content); got != string(says(strconv.Itoa(len(seen))).Content) || u.Entry.Time.IsZero() {
			f.t.Fatalf("event %d is %s of %s", len(seen), got, u.Entry.Time)
		}
		if seen = append(seen, u.Entry.Seq); len(seen) == events {
			break
		}
		f.append("helper", "s2", protocol.Event{Turn: says("another session")})
		f.append("helper", "s1", protocol.Event{Turn: says(strconv.Itoa(len(seen)))})
	}
	return seen
}

func TestEventsThatAreHeardAreNotReadAgain(t *testing.T) {
	f := newFabric(t)
	c, ear := f.listener(func(int64) bool { return false })
	seen := f.watched(c, 20)
	if !slices.IsSorted(seen) || len(slices.Compact(seen)) != 20 {
		t.Errorf("seen %v", seen)
	}
	if n := ear.reads.Load(); n != 1 {
		t.Errorf("the log was read %d times, want once, at the beginning", n)
	}
}

func TestAnEventThatWasNotHeardIsRead(t *testing.T) {
	f := newFabric(t)
	c, ear := f.listener(func(n int64) bool { return n == 1 })
	f.append("helper", "s1", protocol.Event{Turn: says("0")})
	var seen []uint64
	for u, err := range c.watch(soon(t), "helper", "s1", 0, false) {
		if err != nil {
			t.Fatal(err)
		}
		if u.Entry == nil {
			continue
		}
		if seen = append(seen, u.Entry.Seq); len(seen) == 1 {
			f.append("helper", "s1", protocol.Event{Turn: says("unheard")})
			f.append("helper", "s1", protocol.Event{Turn: says("heard")})
		}
		if len(seen) == 3 {
			break
		}
	}
	if !slices.Equal(seen, []uint64{1, 2, 3}) || ear.reads.Load() != 2 {
		t.Errorf("seen %v with %d reads", seen, ear.reads.Load())
	}
}

func TestOnlyWhatFollowsWithoutAGapIsTakenFromHearing(t *testing.T) {
	event := func(seq, after uint64) natswire.Msg {
		data := encode(t, protocol.Event{V: protocol.Version, ID: "e" + epoch(seq), Turn: says("x")})
		return natswire.Msg{Data: data, Header: natswire.Header{
			"Nats-Sequence": epoch(seq), "Nats-Last-Sequence": epoch(after), "Nats-Time-Stamp": time.Now().Format(time.RFC3339Nano),
		}}
	}
	without := func(key string) natswire.Msg {
		m := event(5, 0)
		delete(m.Header, key)
		return m
	}
	garbled := event(5, 4)
	garbled.Data = []byte("{")
	crowd := make([]natswire.Msg, maxEvents+1)
	for i := range crowd {
		crowd[i] = event(uint64(i+5), uint64(i+4))
	}
	for name, c := range map[string]struct {
		next   uint64
		heard  []natswire.Msg
		seen   int
		missed bool
	}{
		"the first of a log":         {1, []natswire.Msg{event(5, 0)}, 1, false},
		"the next ones":              {5, []natswire.Msg{event(9, 4), event(12, 9)}, 2, false},
		"known already":              {10, []natswire.Msg{event(9, 4), event(12, 9)}, 1, false},
		"all known":                  {13, []natswire.Msg{event(9, 4), event(12, 9)}, 0, false},
		"a gap":                      {5, []natswire.Msg{event(9, 8)}, 0, true},
		"a gap behind the next":      {5, []natswire.Msg{event(9, 4), event(12, 10), event(13, 12)}, 1, true},
		"a sign without a sequence":  {5, []natswire.Msg{without("Nats-Sequence")}, 0, true},
		"of unknown place":           {5, []natswire.Msg{without("Nats-Last-Sequence")}, 0, true},
		"of unknown time":            {5, []natswire.Msg{without("Nats-Time-Stamp")}, 0, true},
		"unreadable":                 {5, []natswire.Msg{garbled}, 0, true},
		"more than a reader's share": {5, crowd, maxEvents, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := &feed{signal: make(chan struct{}, 1)}
			for _, m := range c.heard {
				f.event(m)
			}
			seen, next := 0, c.next
			missed, ok := f.hear(&next, func(u Update, err error) bool {
				seen++
				return u.Entry != nil && err == nil && u.Entry.Seq+1 == next
			})
			if !ok || seen != c.seen || missed != c.missed {
				t.Errorf("%d events, missed %t, going on %t", seen, missed, ok)
			}
		})
	}
}
