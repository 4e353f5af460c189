package journal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/coordinator/internal/journal"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/sim"
)

const app, session = "assistant", "s1"

// doctored is a Bus on which single calls go wrong. Nil functions leave a call as it is.
type doctored struct {
	natswire.Bus
	publish func(try int, send func() (natswire.Ack, error)) (natswire.Ack, error)
	read    func(try int, got []natswire.Stored) []natswire.Stored

	published, reads int
	largest          int // messages asked for in one Read
	from             uint64
}

func (d *doctored) Publish(ctx context.Context, m natswire.Msg) (natswire.Ack, error) {
	send := func() (natswire.Ack, error) { return d.Bus.Publish(ctx, m) }
	if d.published++; d.publish == nil {
		return send()
	}
	return d.publish(d.published, send)
}

func (d *doctored) Read(ctx context.Context, stream, subject string, from uint64, max int) ([]natswire.Stored, error) {
	got, err := d.Bus.Read(ctx, stream, subject, from, max)
	if d.reads++; d.reads == 1 {
		d.from = from
	}
	if d.largest = max; d.read != nil {
		got = d.read(d.reads, got)
	}
	return got, err
}

func (d *doctored) reset() { d.published, d.reads = 0, 0 }

var unreachable = protocol.Errorf(protocol.CodeUnreachable, "no answer")

type fixture struct {
	*testing.T
	journal.Journal
	w   *sim.World
	bus *doctored
	ids int
}

// inBubble runs a test on a plain World in virtual time.
func inBubble(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n, err := natswire.NewNames("")
		if err != nil {
			t.Fatal(err)
		}
		w := sim.New(sim.Config{Names: n})
		defer w.Close()
		bus := w.Connect("c1")
		d := &doctored{Bus: bus}
		test(t, &fixture{T: t, Journal: journal.Journal{Bus: d, Names: n, Clock: bus.Clock()}, w: w, bus: d})
	})
}

func (f *fixture) event(ev protocol.Event) *protocol.Event {
	f.ids++
	ev.V, ev.ID, ev.Epoch = protocol.Version, fmt.Sprint("e", f.ids), 1
	return &ev
}

// said is an event with one input.
func (f *fixture) said(after uint64) *protocol.Event {
	id := fmt.Sprint("in-", f.ids)
	return f.event(protocol.Event{Inputs: []protocol.FoldedInput{{ID: id, Kind: protocol.InputMessage, Client: "me", Content: json.RawMessage(`{}`)}}})
}

// grow appends n events, the first of a log being an adoption, and returns the last sequence.
func (f *fixture) grow(after uint64, n int, snapshot uint64) uint64 {
	f.Helper()
	for range n {
		ev := f.said(after)
		if after == 0 {
			ev.Adopt = &protocol.Adopt{Coordinator: "c1", Adoption: "a1"}
		}
		ev.Snapshot = snapshot
		after = f.append(after, ev)
	}
	return after
}

func (f *fixture) append(after uint64, ev *protocol.Event) uint64 {
	f.Helper()
	seq, err := f.Append(f.Context(), app, session, after, ev)
	if err != nil {
		f.Fatal(err)
	}
	return seq
}

func (f *fixture) load() (fold.State, []journal.Entry, bool) {
	f.Helper()
	s, entries, whole, err := f.Load(f.Context(), app, session)
	if err != nil {
		f.Fatal(err)
	}
	return s, entries, whole
}

// stored is how many events the log holds.
func (f *fixture) stored() int { return len(f.w.Messages(f.Names.Log())) }

func TestEmptyLogIsASessionWithoutOne(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		s, entries, whole := f.load()
		if s.Seq != 0 || s.App != app || s.Session != session || len(entries) != 0 || !whole {
			t.Errorf("%+v, %d entries, whole %t", s, len(entries), whole)
		}
	})
}

func TestLoadBeginsAtTheNewestSnapshot(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		last := f.grow(0, 5, 0)
		s, _, _ := f.load()
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		snap := f.append(last, f.event(protocol.Event{State: data}))
		f.bus.reset()
		atSnapshot, entries, whole := f.load()
		if f.bus.reads != 0 || len(entries) != 1 || whole || atSnapshot.Seq != snap || atSnapshot.Snapshot != snap {
			t.Errorf("a snapshot at the tail: %d reads, %d entries, whole %t, %+v", f.bus.reads, len(entries), whole, atSnapshot)
		}
		last = f.grow(snap, 3, snap)
		f.bus.reset()
		s, entries, whole = f.load()
		if f.bus.from != snap || len(entries) != 4 || entries[0].Seq != snap || whole {
			t.Errorf("read from %d on, %d entries, whole %t; want the four from %d on", f.bus.from, len(entries), whole, snap)
		}
		if s.Seq != last || s.SinceSnapshot != 3 || !s.Seen.Has("in-0") || !s.Seen.Has("in-8") {
			t.Errorf("%+v", s)
		}
	})
}

func TestLoadWaitsForAReplicaThatIsBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		last := f.grow(0, 4, 0)
		f.bus.read = func(try int, got []natswire.Stored) []natswire.Stored {
			return got[:min(len(got), max(0, try-3))] // three reads see nothing, then one message more each time
		}
		s, entries, whole := f.load()
		if s.Seq != last || len(entries) != 4 || !whole {
			t.Errorf("at %d with %d entries, whole %t; want %d", s.Seq, len(entries), whole, last)
		}
		f.bus.read = func(int, []natswire.Stored) []natswire.Stored { return nil }
		if _, _, _, err := f.Load(f.Context(), app, session); protocol.CodeOf(err) != protocol.CodeUnreachable {
			t.Errorf("a replica that stays behind: %v", err)
		}
	})
}

func TestLoadStopsAtTheEventItBeganWith(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		last := f.grow(0, 3, 0)
		f.bus.read = func(try int, got []natswire.Stored) []natswire.Stored {
			if try == 1 { // somebody appends between the reads
				f.bus.read = nil
				f.grow(last, 1, 0)
				return got[:1]
			}
			return got
		}
		if s, entries, _ := f.load(); s.Seq != last || len(entries) != 3 {
			t.Errorf("at %d with %d entries, want %d", s.Seq, len(entries), last)
		}
	})
}

func TestLongLogIsReadInBoundedPages(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		last := f.grow(0, 1000, 0)
		f.bus.reset()
		s, entries, _ := f.load()
		if s.Seq != last || len(entries) != 1000 {
			t.Errorf("at %d with %d entries", s.Seq, len(entries))
		}
		if f.bus.reads != 4 || f.bus.largest != 256 {
			t.Errorf("%d reads of up to %d messages, want 4 of 256", f.bus.reads, f.bus.largest)
		}
	})
}

func TestDeletedSessionIsItsTombstone(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		last := f.grow(0, 3, 0)
		tomb := f.event(protocol.Event{Snapshot: 1, Stop: &protocol.Stop{Kind: protocol.StopDeleted}}) // its snapshot is gone, too
		last = f.append(last, tomb)
		if err := f.Bus.Purge(f.Context(), f.Names.Log(), f.Names.LogSubject(app, session), 1); err != nil {
			t.Fatal(err)
		}
		s, entries, _ := f.load()
		if s.Stopped != protocol.StopDeleted || s.Seq != last || len(entries) != 1 || s.Closed() == nil {
			t.Errorf("%+v, %d entries", s, len(entries))
		}
	})
}

func TestSecondWriterIsFenced(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		last := f.grow(0, 1, 0)
		f.grow(last, 1, 0)
		if _, err := f.Append(t.Context(), app, session, last, f.said(last)); protocol.CodeOf(err) != protocol.CodeFenced {
			t.Errorf("%v, want fenced", err)
		}
		if _, err := f.Append(t.Context(), app, session, 0, f.said(0)); protocol.CodeOf(err) != protocol.CodeFenced {
			t.Errorf("a first event behind others: %v, want fenced", err)
		}
		if n := f.stored(); n != 2 {
			t.Errorf("the log holds %d events", n)
		}
	})
}

func TestAppendFindsItsOwnEvent(t *testing.T) {
	for name, publish := range map[string]func(f *fixture) func(try int, send func() (natswire.Ack, error)) (natswire.Ack, error){
		"the ack was lost": func(*fixture) func(int, func() (natswire.Ack, error)) (natswire.Ack, error) {
			return func(_ int, send func() (natswire.Ack, error)) (natswire.Ack, error) {
				_, _ = send()
				return natswire.Ack{}, unreachable
			}
		},
		"it lands after it was given up": func(f *fixture) func(int, func() (natswire.Ack, error)) (natswire.Ack, error) {
			return func(try int, send func() (natswire.Ack, error)) (natswire.Ack, error) {
				if try > 1 {
					return send()
				}
				time.AfterFunc(50*time.Millisecond, func() { _, _ = send() })
				return natswire.Ack{}, unreachable
			}
		},
		"the broker says wrong last sequence": func(*fixture) func(int, func() (natswire.Ack, error)) (natswire.Ack, error) {
			return func(_ int, send func() (natswire.Ack, error)) (natswire.Ack, error) {
				_, _ = send()
				return send() // what a retry inside the client meets
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fixture) {
				last := f.grow(0, 1, 0)
				f.bus.reset()
				f.bus.publish = publish(f)
				seq := f.append(last, f.said(last))
				if s, entries, _ := f.load(); s.Seq != seq || len(entries) != 2 || f.stored() != 2 {
					t.Errorf("it is said to be at %d, the log ends at %d with %d events", seq, s.Seq, f.stored())
				}
			})
		})
	}
}

func TestAppendIsTriedAgainWhileTheBrokerIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		f.bus.publish = func(try int, send func() (natswire.Ack, error)) (natswire.Ack, error) {
			if try < 4 {
				return natswire.Ack{}, unreachable
			}
			return send()
		}
		f.append(0, f.said(0))
		if n := f.stored(); n != 1 || f.bus.published != 4 {
			t.Errorf("the log holds %d events after %d tries", n, f.bus.published)
		}
		began := time.Now()
		f.w.Cut("c1")
		if _, err := f.Append(t.Context(), app, session, 1, f.said(1)); protocol.CodeOf(err) != protocol.CodeUnreachable {
			t.Errorf("%v, want bus_unreachable", err)
		}
		if took := time.Since(began); took < 10*time.Second || took > 15*time.Second {
			t.Errorf("it was given up after %s: somebody else asks for the writer after 15 s", took)
		}
	})
}

func TestAppendIsNotTriedAgainWhenTheBrokerRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		last := f.grow(0, 1, 0)
		if err := f.w.Fill(f.Names.Log(), 1); err != nil {
			t.Fatal(err)
		}
		for _, want := range []protocol.Code{protocol.CodeStorageFull, protocol.CodeForbidden} {
			f.bus.reset()
			if _, err := f.Append(t.Context(), app, session, last, f.said(last)); protocol.CodeOf(err) != want || f.bus.published != 1 {
				t.Errorf("%v after %d tries, want %s after one", err, f.bus.published, want)
			}
			f.bus.publish = func(int, func() (natswire.Ack, error)) (natswire.Ack, error) {
				return natswire.Ack{}, protocol.Errorf(protocol.CodeForbidden, "no")
			}
		}
		f.bus.reset()
		large := f.said(last)
		large.Inputs[0].Content = json.RawMessage(`"` + strings.Repeat("x", protocol.MaxEvent) + `"`)
		if _, err := f.Append(t.Context(), app, session, last, large); protocol.CodeOf(err) != protocol.CodeTooLarge || f.bus.published != 0 {
			t.Errorf("%v after %d tries, want too_large after none", err, f.bus.published)
		}
	})
}

func TestEventThatCannotBeReadStopsTheLoad(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		last := f.grow(0, 1, 0)
		if _, err := f.Bus.Publish(t.Context(), natswire.Msg{Subject: f.Names.LogSubject(app, session), Data: []byte(`{"v":9}`)}); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := f.Load(t.Context(), app, session); protocol.CodeOf(err) != protocol.CodeUnsupportedVersion {
			t.Errorf("at the tail: %v", err)
		}
		f.grow(last+1, 1, 0)
		if _, _, _, err := f.Load(t.Context(), app, session); err == nil || !strings.Contains(err.Error(), "sequence 2") {
			t.Errorf("before the tail: %v", err)
		}
	})
}

func TestResumeEndsWhereLoadDoes(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		last := f.grow(0, 5, 0)
		early, _, _ := f.load()
		encoded := func(s fold.State) string {
			data, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(s.Seq, s.Snapshot, s.SinceSnapshot, string(data))
		}
		resume := func(want int) {
			t.Helper()
			s, entries, ok, err := f.Resume(f.Context(), early)
			loaded, _, _ := f.load()
			if err != nil || !ok || len(entries) != want || encoded(s) != encoded(loaded) {
				t.Errorf("%t, %v, %d entries, want %d; state %s, want %s", ok, err, len(entries), want, encoded(s), encoded(loaded))
			}
		}
		resume(0)
		last = f.grow(last, 3, 0)
		resume(3)
		s, _, _ := f.load()
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		snap := f.append(last, f.event(protocol.Event{State: data}))
		f.grow(snap, 2, snap)
		resume(6)
	})
}

func TestResumeLeavesAForeignLogToLoad(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fixture) {
		if _, _, ok, err := f.Resume(f.Context(), fold.State{App: app, Session: session, Seq: 3}); ok || err != nil {
			t.Errorf("a log that is gone: %t, %v", ok, err)
		}
		last := f.grow(0, 5, 0)
		s, _, _ := f.load()
		ahead := s
		ahead.Seq += 10
		if _, _, ok, err := f.Resume(f.Context(), ahead); ok || err != nil {
			t.Errorf("a log that ends before the state: %t, %v", ok, err)
		}
		f.append(last, f.event(protocol.Event{Stop: &protocol.Stop{Kind: protocol.StopDeleted}}))
		if _, _, ok, err := f.Resume(f.Context(), s); ok || err != nil {
			t.Errorf("a deleted session: %t, %v", ok, err)
		}
	})
}
