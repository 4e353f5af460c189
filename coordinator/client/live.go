package client

import (
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// maxEvents is how many republished events are kept for a slow reader; of more it reads the log. Each has at most
// protocol.MaxEvent bytes.
const maxEvents = 16

// event keeps an event that was republished. It spares the reader a look at the log.
func (f *feed) event(m natswire.Msg) {
	f.mu.Lock()
	if len(f.events) < maxEvents {
		f.events = append(f.events, m)
	} else {
		f.missed = true
	}
	f.mu.Unlock()
	f.nudge()
}

// hear yields the events that were republished and follow what was yielded before, without a gap: *next is the first sequence
// that was not. missed reports that only the log can tell what comes next, ok whether to go on.
func (f *feed) hear(next *uint64, yield func(Update, error) bool) (missed, ok bool) {
	f.mu.Lock()
	events, missed := f.events, f.missed
	f.events, f.missed = nil, false
	f.mu.Unlock()
	for _, m := range events {
		s, after, whole := natswire.Republished(m)
		switch {
		case whole && s.Seq < *next:
			continue // read before it was heard
		case !whole || after >= *next:
			return true, true
		}
		ev, err := protocol.DecodeEvent(s.Data)
		if err != nil {
			return true, true // the log tells whether it is so there
		}
		*next = s.Seq + 1
		if !yield(Update{Entry: &Entry{Seq: s.Seq, Time: s.Time.UTC(), Event: ev}}, nil) {
			return false, false
		}
	}
	return missed, true
}
