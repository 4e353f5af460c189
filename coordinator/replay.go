package coordinator

import (
	"bytes"
	"encoding/json"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
)

// Replay folds a session's whole log, whose events were stored at seqs, and folds it again from a snapshot of each state on
// the way: all must end in one state. It returns that state, encoded, or code bad_message for an event that cannot be read,
// and code internal when two replays differ.
func Replay(app, session string, seqs []uint64, events []protocol.Event) (json.RawMessage, error) {
	start := fold.State{App: app, Session: session}
	states := make([]json.RawMessage, len(events))
	s := start
	var err error
	for i, ev := range events {
		if s, err = fold.Fold(s, seqs[i], ev); err != nil {
			return nil, err
		}
		if states[i], err = json.Marshal(s); err != nil {
			return nil, protocol.Wrap(err, protocol.CodeInternal, "the state of session %s cannot be encoded", session)
		}
	}
	for i := range events {
		s, err = fold.Fold(start, seqs[i], protocol.Event{At: events[i].At, State: states[i]})
		for k := i + 1; k < len(events) && err == nil; k++ {
			s, err = fold.Fold(s, seqs[k], events[k])
		}
		if err != nil {
			return nil, err
		}
		if again, err := json.Marshal(s); err != nil || !bytes.Equal(again, states[len(states)-1]) {
			return nil, protocol.Errorf(protocol.CodeInternal, "session %s: replay from a snapshot at sequence %d ends in another state than replay from the start", session, seqs[i])
		}
	}
	if len(states) == 0 {
		return nil, nil
	}
	return states[len(states)-1], nil
}
