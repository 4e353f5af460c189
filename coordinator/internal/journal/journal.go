// Package journal reads and appends the logs of sessions. An append is the fence: it names the sequence it follows, so
// that of two writers one is refused, and whoever is refused stops.
package journal

import (
	"context"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// Journal is the logs of one namespace. Safe for concurrent use.
type Journal struct {
	Bus   natswire.Bus
	Names natswire.Names
	Clock natswire.Clock
}

// Entry is an event with its place in the stream.
type Entry struct {
	Seq   uint64
	Event protocol.Event
}

const page = 256 // messages read at once

// Load reads a session's state: its last event, the snapshot that names, and what follows. A session without a log has
// Seq 0; of one that was deleted and erased only the last event is left. The entries are those that were read, from the first event of the log on when whole is true.
func (j *Journal) Load(ctx context.Context, app, session string) (s fold.State, entries []Entry, whole bool, err error) {
	s = fold.State{App: app, Session: session}
	last, err := j.Bus.Last(ctx, j.Names.Log(), j.Names.LogSubject(app, session))
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return s, nil, true, nil
	}
	if err != nil {
		return s, nil, false, err
	}
	tail, err := protocol.DecodeEvent(last.Data)
	if err != nil {
		return s, nil, false, err
	}
	from := tail.Snapshot
	if tail.State != nil {
		from = last.Seq
	}
	if from == last.Seq {
		entries = []Entry{{last.Seq, tail}}
	} else if entries, err = j.Range(ctx, app, session, from, last.Seq); err != nil {
		return s, nil, false, err
	}
	for _, e := range entries {
		if s, err = fold.Fold(s, e.Seq, e.Event); err != nil {
			return s, nil, false, err
		}
	}
	return s, entries, tail.Snapshot == 0 && tail.State == nil, nil
}

// Resume brings a state that was folded from a session's log earlier up to its tail. The entries are those that were read:
// none when nothing happened. ok is false for a log that does not go on from there, which has to be loaded.
func (j *Journal) Resume(ctx context.Context, from fold.State) (s fold.State, entries []Entry, ok bool, err error) {
	last, err := j.Bus.Last(ctx, j.Names.Log(), j.Names.LogSubject(from.App, from.Session))
	switch {
	case protocol.CodeOf(err) == protocol.CodeNotFound:
		return s, nil, false, nil
	case err != nil:
		return s, nil, false, err
	case last.Seq == from.Seq:
		return from, nil, true, nil
	}
	tail, err := protocol.DecodeEvent(last.Data)
	if err != nil {
		return s, nil, false, err
	}
	if last.Seq < from.Seq || tail.Stop != nil && tail.Stop.Kind == protocol.StopDeleted {
		return s, nil, false, nil // of a deleted session what came before its last event may be gone
	}
	if entries, err = j.Range(ctx, from.App, from.Session, from.Seq+1, last.Seq); err != nil {
		return s, nil, false, err
	}
	s = from
	for _, e := range entries {
		if s, err = fold.Fold(s, e.Seq, e.Event); err != nil {
			return s, nil, false, err
		}
	}
	return s, entries, true, nil
}

// Range reads the events from sequence from (0 is the first) up to and with sequence to, which is known to exist.
func (j *Journal) Range(ctx context.Context, app, session string, from, to uint64) ([]Entry, error) {
	var entries []Entry
	for stale := 0; ; {
		msgs, err := j.Bus.Read(ctx, j.Names.Log(), j.Names.LogSubject(app, session), max(from, 1), page)
		if err != nil {
			return nil, err
		}
		for _, m := range msgs {
			if m.Seq > to {
				return entries, nil
			}
			ev, err := protocol.DecodeEvent(m.Data)
			if err != nil {
				return nil, protocol.Wrap(err, protocol.CodeInternal, "session %s: event at sequence %d", session, m.Seq)
			}
			entries = append(entries, Entry{m.Seq, ev})
			from = m.Seq + 1
		}
		if from > to {
			return entries, nil
		}
		if len(msgs) > 0 {
			continue
		}
		// The read came from a replica that is behind: the event at to exists.
		if stale++; stale > 20 {
			return nil, protocol.Errorf(protocol.CodeUnreachable, "session %s: replicas lag behind sequence %d of its log", session, to)
		}
		if err := natswire.Sleep(ctx, j.Clock, time.Duration(stale)*10*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// Append stores ev behind sequence after and returns its sequence. It returns code fenced when somebody else appended
// first, too_large for an event over protocol.MaxEvent, and storage_full; after any other error it is unknown whether the
// event is or will be in the log, and the caller must give the session up. An ack that was lost on the way is found out
// by reading the tail: the event's own id means that it landed.
func (j *Journal) Append(ctx context.Context, app, session string, after uint64, ev *protocol.Event) (uint64, error) {
	data, err := protocol.Encode(ev)
	if err != nil {
		return 0, err
	}
	if len(data) > protocol.MaxEvent {
		return 0, protocol.Errorf(protocol.CodeTooLarge, "an event of session %s has %d bytes, more than %d", session, len(data), protocol.MaxEvent)
	}
	subject := j.Names.LogSubject(app, session)
	began := j.Clock.Now()
	msg := natswire.Msg{Subject: subject, Data: data, Expect: &after}
	if fault.Mutant("append-unfenced") {
		msg.Expect = nil
	}
	for try := 1; ; try++ {
		fault.Point("K5")
		ack, err := j.Bus.Publish(ctx, msg)
		fault.Point("K6")
		if err == nil {
			return ack.Seq, nil
		}
		if code := protocol.CodeOf(err); code == protocol.CodeStorageFull || code == protocol.CodeForbidden || code == protocol.CodeTooLarge {
			return 0, err
		}
		seq, ours, terr := j.landed(ctx, subject, after, ev.ID)
		switch {
		case fault.Mutant("append-taken-for-granted"):
			return after + 1, nil
		case terr == nil && !ours && seq != after && fault.Mutant("rebase-on-conflict"):
			after = seq
			continue
		case terr == nil && ours:
			return seq, nil
		case terr == nil && seq != after:
			return 0, protocol.Errorf(protocol.CodeFenced, "session %s was taken over at sequence %d", session, seq)
		case j.Clock.Now().Sub(began) > appendPatience || ctx.Err() != nil:
			return 0, protocol.Wrap(err, protocol.CodeUnreachable, "append to session %s", session)
		}
		if err := natswire.Sleep(ctx, j.Clock, min(time.Duration(try)*100*time.Millisecond, time.Second)); err != nil {
			return 0, err
		}
	}
}

// appendPatience is how long an append is tried while the broker is away: a little less than it takes until somebody asks
// whether the writer still lives.
const appendPatience = 12 * time.Second

// landed reads the tail of a log: its sequence, and whether the event with that id is the tail.
func (j *Journal) landed(ctx context.Context, subject string, after uint64, id string) (seq uint64, ours bool, err error) {
	tail, err := j.Bus.Last(ctx, j.Names.Log(), subject)
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	ev, err := protocol.DecodeEvent(tail.Data)
	return tail.Seq, err == nil && ev.ID == id, err
}
