package protocol

import (
	"encoding/json"
	"reflect"
)

// Event is one append to a session's log, the only truth about it. It is made of parts, folded in the order of the
// fields; a snapshot (State) stands alone. An event is not changed after its append and stays under MaxEvent bytes.
type Event struct {
	V        int    `json:"v"`
	ID       string `json:"id"`             // unique; tells a writer in doubt whether this append landed
	Epoch    uint64 `json:"epoch"`          // the writer's adoption number; it only grows along the log
	At       int64  `json:"at"`             // the writer's estimate of the broker's time, Unix milliseconds; never below its predecessor's
	Snapshot uint64 `json:"snap,omitempty"` // stream sequence of the newest snapshot before this event; 0 is none

	Adopt   *Adopt          `json:"adopt,omitempty"`
	Inputs  []FoldedInput   `json:"inputs,omitempty"`
	Answers []Answer        `json:"answers,omitempty"` // of the open turn, in call order; a refused call is answered by its turn
	Turn    *Turn           `json:"turn,omitempty"`
	Stop    *Stop           `json:"stop,omitempty"`
	State   json.RawMessage `json:"state,omitempty"` // a snapshot: the folded state up to here
}

// MaxEvent is the size limit of an event in bytes. The largest answers move to the object store to stay below it.
const MaxEvent = 512 << 10

// Adopt says which coordinator drives the session from here on. A session is owned while the last Adopt or Stop of its
// log is an Adopt.
type Adopt struct {
	Coordinator string `json:"coordinator"`     // answers on its own subject; new at each process start
	Adoption    string `json:"adoption"`        // id of this adoption and of its guard timer
	Guard       uint64 `json:"guard,omitempty"` // sequence in INPUT of the input that guards it, folded in this event and unacked until it has stopped; 0 is a timer
	Trace       string `json:"trace,omitempty"` // traceparent of the run's root span
}

// FoldedInput is an input that has become part of the log, accepted or refused.
type FoldedInput struct {
	ID      string    `json:"id"`
	Kind    InputKind `json:"kind"`
	Client  string    `json:"client"`            // subject token of the sender
	Seq     uint64    `json:"seq"`               // stream sequence in INPUT
	Sent    int64     `json:"sent"`              // JetStream timestamp, Unix milliseconds
	Trace   string    `json:"trace,omitempty"`   // the sender's traceparent
	Refused *Problem  `json:"refused,omitempty"` // why it changes nothing; nil is accepted

	Content    json.RawMessage            `json:"content,omitempty"`
	Call       *ClientCall                `json:"call,omitempty"`
	StateDelta map[string]json.RawMessage `json:"state_delta,omitempty"`
	Target     string                     `json:"target,omitempty"`   // of a cancel
	Decision   *FoldedDecision            `json:"decision,omitempty"` // of a decision; Client is the approver, Seq the sequence in APPROVAL
}

// StopKind is how a run came to rest.
type StopKind string

// The kinds of stops.
const (
	StopDone        StopKind = "done"        // answered, or failed with Problem
	StopParked      StopKind = "parked"      // calls wait for people or for results from outside; the run goes on with their answers
	StopCancelled   StopKind = "cancelled"   // somebody asked for it
	StopDrained     StopKind = "drained"     // its coordinator left; the guard stays and wakes another
	StopQuarantined StopKind = "quarantined" // too many adoptions without progress
	StopDeleted     StopKind = "deleted"     // the log is purged; ids are never reused
)

// Stop ends the ownership of a session.
type Stop struct {
	Kind       StopKind            `json:"kind"`
	Problem    *Problem            `json:"problem,omitempty"`    // why a run failed; nil is a good end
	Dispatched map[string]Dispatch `json:"dispatched,omitempty"` // open calls that were published before: not to be published again
	Listed     []string            `json:"listed,omitempty"`     // calls that PARK lists from here on, until the next stop
}

// Dispatch is where an open call that was published stands.
type Dispatch struct {
	Seq   uint64 `json:"seq,omitempty"`   // in CALLS; 0 is not known
	Taken bool   `json:"taken,omitempty"` // its time to be taken is over, and for all that is known a worker took it
}

// DecodeEvent reads an event from a log. What coordinators wrote is read in one pass; what the strict decoder would not take
// is a log's all the same.
func DecodeEvent(data []byte) (Event, error) {
	var ev Event
	into := reflect.ValueOf(&ev).Elem()
	if stored, err := walk(data, Limits{}, shapeOf(into.Type()), into); err != nil || !stored {
		ev = Event{}
		if err := json.Unmarshal(data, &ev); err != nil {
			return Event{}, Wrap(err, CodeBadMessage, "an event of the log cannot be read")
		}
	}
	return ev, CheckVersion(ev.V)
}
