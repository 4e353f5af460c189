package fold

import (
	"encoding/json"

	"github.com/toolfabric/toolfabric/protocol"
)

// State is a session as its log tells it. The zero value with App and Session set is a session without a log. It holds
// control, not history, so its size is bounded; it is encoded whole in snapshots.
type State struct {
	App     string `json:"app"`
	Session string `json:"session"`
	User    string `json:"user,omitempty"` // the client of the first input

	Seq           uint64 `json:"-"` // stream sequence of the last folded event; 0 is no log
	At            int64  `json:"at"`
	Snapshot      uint64 `json:"-"` // sequence of the newest snapshot; 0 is none
	SinceSnapshot int    `json:"-"` // events folded since then

	Epoch       uint64            `json:"epoch"`
	Coordinator string            `json:"coordinator,omitempty"` // of the last adoption
	Adoption    string            `json:"adoption,omitempty"`
	Guard       uint64            `json:"guard,omitempty"`      // sequence in INPUT of the input that guards the adoption; 0 is a timer
	GuardID     string            `json:"guard_id,omitempty"`   // of that input
	Stopped     protocol.StopKind `json:"stopped,omitempty"`    // of the last adoption; empty while it owns the session
	StoppedAt   int64             `json:"stopped_at,omitempty"` // of the last stop
	Barren      int               `json:"barren,omitempty"`     // adoptions in a row with no other part

	Seen   Seen                       `json:"seen,omitempty"`
	Values map[string]json.RawMessage `json:"values,omitempty"` // session state
	Run    *Run                       `json:"run,omitempty"`    // nil when there is nothing to do
	Spoke  string                     `json:"spoke,omitempty"`  // the agent of the newest turn
	Later  []Later                    `json:"later,omitempty"`  // calls of ended turns whose final answer may still come
	Past   Past                       `json:"past,omitempty"`
	Listed []string                   `json:"listed,omitempty"` // calls that PARK lists since the last stop, and not longer than to the next
	Gone   []string                   `json:"gone,omitempty"`   // calls that the last stop takes from PARK

	trace   string                     // traceparent of the newest adoption
	arrived map[string]protocol.Answer // answers that are stored but not in the log, by call
}

// Run is the work from an input to its final answer.
type Run struct {
	Began      int64                      `json:"began"`             // At of the event that began it
	Trace      string                     `json:"trace,omitempty"`   // traceparent of the adoption that drives it
	LastInput  uint64                     `json:"last_input"`        // sequence of the newest event with a message to the agent
	Asked      uint64                     `json:"asked,omitempty"`   // sequence that the newest answered request was built from
	Agent      string                     `json:"agent,omitempty"`   // whose turn it is; empty is not decided: the run is new
	Skip       bool                       `json:"skip,omitempty"`    // a call of the last turn asked for the end of the run
	Entered    string                     `json:"entered,omitempty"` // the agent whose callbacks were asked before it began; empty is none
	ModelCalls int                        `json:"model_calls"`
	Tokens     int                        `json:"tokens,omitempty"`
	Cancelled  bool                       `json:"cancelled,omitempty"` // somebody asked for its end: nothing more is begun
	Temp       map[string]json.RawMessage `json:"temp,omitempty"`      // temp: state
	Open       *OpenTurn                  `json:"open,omitempty"`      // the turn whose calls have not all ended
}

// OpenTurn is a recorded turn with calls.
type OpenTurn struct {
	Seq        uint64                       `json:"seq"`
	At         int64                        `json:"at"`
	Client     bool                         `json:"client,omitempty"` // asked for by a client, not a model
	Agent      string                       `json:"agent,omitempty"`
	Calls      []protocol.Call              `json:"calls"`
	Answers    map[string]protocol.Answer   `json:"answers,omitempty"`    // in the log, by call
	Dispatched map[string]protocol.Dispatch `json:"dispatched,omitempty"` // published in its round before a stop: not to be published again
	Rounds     map[string]*Round            `json:"rounds,omitempty"`     // of the calls that people or the outside have a say in
}

// Limits of a state.
const (
	MaxSeen     = 1024      // input ids remembered for deduplication; each snapshot holds them
	MaxValues   = 256 << 10 // bytes of session state
	MaxInputs   = 448 << 10 // bytes of the inputs of one event; a larger input is refused
	MaxLater    = 64        // calls of ended turns whose final answer may still come; a further one is final at once
	MaxBarren   = 5         // adoptions in a row without progress before quarantine
	SnapshotGap = 100       // events between snapshots
)

// Owned reports whether some coordinator drives the session.
func (s *State) Owned() bool { return s.Seq > 0 && s.Stopped == "" }

// Closed reports whether the session takes no more input, and why.
func (s *State) Closed() *protocol.Problem {
	switch s.Stopped {
	case protocol.StopDeleted:
		return &protocol.Problem{Code: protocol.CodeSessionClosed, Message: "the session was deleted; start another one"}
	case protocol.StopQuarantined:
		return &protocol.Problem{Code: protocol.CodeSessionClosed, Message: "the session is quarantined: its runs kept dying without progress; see the dead letters"}
	}
	return nil
}

// Cancelling reports whether a run is on its way to its end because somebody asked for that. A message waits for the end: it
// begins the next run.
func (s *State) Cancelling() bool { return s.Run != nil && s.Run.Cancelled && s.Closed() == nil }

// Open is the calls of the open turn that have no answer yet, neither in the log nor arrived.
func (s *State) Open() []protocol.Call {
	var open []protocol.Call
	for c := range s.open {
		open = append(open, *c)
	}
	return open
}

// Waits reports whether Open has any calls.
func (s *State) Waits() bool {
	for range s.open {
		return true
	}
	return false
}

// open yields what Open lists. The calls are not to be changed.
func (s *State) open(yield func(*protocol.Call) bool) {
	if s.Run == nil || s.Run.Open == nil {
		return
	}
	for i := range s.Run.Open.Calls {
		if c := &s.Run.Open.Calls[i]; !s.answered(c.ID) && !yield(c) {
			return
		}
	}
}

func (s *State) isOpen(call string) bool {
	for c := range s.open {
		if c.ID == call {
			return true
		}
	}
	return false
}

func (s *State) answered(call string) bool {
	_, logged := s.Run.Open.Answers[call]
	_, arrived := s.arrived[call]
	return logged || arrived
}

func (s *State) answer(call string) (protocol.Answer, bool) {
	if a, ok := s.Run.Open.Answers[call]; ok {
		return a, true
	}
	a, ok := s.arrived[call]
	return a, ok
}

// Answers is the answers of the open turn that are known, in call order; nil without an open turn.
func (s *State) Answers() []protocol.Answer {
	if s.Run == nil || s.Run.Open == nil {
		return nil
	}
	known := make([]protocol.Answer, 0, len(s.Run.Open.Calls))
	for _, c := range s.Run.Open.Calls {
		if a, ok := s.answer(c.ID); ok {
			known = append(known, a)
		}
	}
	return known
}

// View is the state that the next model request and the next calls see: the session's values and the run's temp: values,
// with the deltas of the open turn's answers merged in call order. It is the caller's; nil when there is nothing in it.
func (s *State) View() map[string]json.RawMessage {
	if !s.hasValues() {
		return nil
	}
	view := make(map[string]json.RawMessage, len(s.Values))
	for k, v := range s.Values {
		view[k] = v
	}
	if s.Run == nil {
		return view
	}
	for k, v := range s.Run.Temp {
		view[k] = v
	}
	for _, a := range s.Answers() {
		if a.Actions != nil {
			mergeInto(view, a.Actions.StateDelta)
		}
	}
	return view
}

// hasValues reports whether View may hold anything.
func (s *State) hasValues() bool {
	if len(s.Values) > 0 {
		return true
	}
	if s.Run == nil {
		return false
	}
	if len(s.Run.Temp) > 0 {
		return true
	}
	for _, a := range s.arrived {
		if a.Actions != nil {
			return true
		}
	}
	if s.Run.Open != nil {
		for _, a := range s.Run.Open.Answers {
			if a.Actions != nil {
				return true
			}
		}
	}
	return false
}

func mergeInto(values, delta map[string]json.RawMessage) {
	for k, v := range delta {
		if string(v) == "null" {
			delete(values, k)
		} else {
			values[k] = v
		}
	}
}
