package fold

import (
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
)

// Effect is one thing that the log allows and does not show done. All of them may be carried out again.
type Effect interface{ effect() }

// Ask is a model request that is due.
type Ask struct{}

// Finish ends a run whose last calls asked that no model is told of their results.
type Finish struct{}

// Perform is an allowed call without an answer: publish it unless it was, and wait for its result. Its arguments and
// effect class are those of the round.
type Perform struct {
	Call  protocol.Call
	Round int
	Agent string
	At    int64               // of the event that allowed it: its deadlines count from here
	Sent  *protocol.Dispatch  // where it was published before; nil when that is not certain
	Wakes bool                // its answer goes where it wakes a parked session
	Given *protocol.Confirmed // what people said; nil when nobody was asked
}

// Revoke is an open call whose end somebody asked for: take its claim, tell its runner, and wait for its answer.
type Revoke struct{ Perform }

// Retract is a wait whose end somebody asked for: nobody runs the call. Result is its answer unless its mailbox has another.
type Retract struct {
	Wait
	Result protocol.Result
}

// Index brings PARK in line with the log for the calls that a stop leaves waiting and those that it does not any more.
type Index struct{ Gone []string }

// Arm sets the timer of a session at rest for the first instant at which one of its calls ends without an answer.
type Arm struct {
	Adoption string
	At       int64 // Unix milliseconds
}

// Disarm removes the guard of an adoption that has stopped. It is the last effect of a stop.
type Disarm struct{ Adoption string }

// Rouse fires the guard of a drained adoption at once, so that another coordinator takes over.
type Rouse struct{ Adoption string }

// Withdraw takes back the open calls of a deleted session.
type Withdraw struct{ Calls []Perform }

// Report stores a dead-letter record of a quarantined session.
type Report struct{}

// Erase drops the log of a deleted session but its last event.
type Erase struct{}

func (Ask) effect()      {}
func (Finish) effect()   {}
func (Perform) effect()  {}
func (Revoke) effect()   {}
func (Retract) effect()  {}
func (Index) effect()    {}
func (Arm) effect()      {}
func (Disarm) effect()   {}
func (Rouse) effect()    {}
func (Withdraw) effect() {}
func (Report) effect()   {}
func (Erase) effect()    {}

// Pending lists what is to be done now, in order.
func Pending(s State) []Effect {
	switch s.Stopped {
	case protocol.StopDrained:
		if fault.Mutant("guard-gone-on-drain") {
			return []Effect{Disarm{s.Adoption}}
		}
		return []Effect{Rouse{s.Adoption}}
	case protocol.StopDeleted:
		var effects []Effect
		if open := performs(&s); len(open) > 0 && !fault.Mutant("delete-keeps-calls") {
			effects = append(effects, Withdraw{open})
		}
		effects = append(effects, index(&s)...) // what is listed stands in the log only
		return append(effects, Erase{}, Disarm{s.Adoption})
	case protocol.StopQuarantined:
		return append(append([]Effect{Report{}}, index(&s)...), Disarm{s.Adoption})
	case protocol.StopDone, protocol.StopCancelled, protocol.StopParked:
		effects := append(index(&s), retract(&s)...)
		if fault.Mutant("guard-gone-before-park") {
			effects = append([]Effect{Disarm{s.Adoption}}, effects...)
		}
		if due := s.Due(); due > 0 && !(fault.Mutant("timer-forgotten-later") && s.Epoch > 1) {
			effects = append(effects, Arm{s.Adoption, due})
		}
		return append(effects, Disarm{s.Adoption})
	}
	effects := retract(&s)
	if s.Run == nil {
		return effects
	}
	if !s.Waits() {
		if s.App == protocol.CallsApp {
			return effects
		}
		if s.Finished() {
			return append(effects, Finish{})
		}
		return append(effects, Ask{})
	}
	for c := range s.open {
		r := s.round(c.ID)
		switch {
		case r.waits():
		case s.cancelled(r):
			effects = append(effects, Revoke{perform(&s, c, r)})
		default:
			effects = append(effects, perform(&s, c, r))
		}
	}
	return effects
}

// retract is the waits that are to end because somebody asked for it.
func retract(s *State) []Effect {
	var effects []Effect
	for _, w := range s.Waiting() {
		if w.Round.Asks != nil && fault.Mutant("cancelled-still-asked") {
			continue
		}
		if w.Round.Cancel || !w.Told && s.Run.Cancelled {
			effects = append(effects, Retract{w, unasked(&w.Round)})
		}
	}
	return effects
}

func perform(s *State, c *protocol.Call, r *Round) Perform {
	open := s.Run.Open
	p := Perform{Call: *c, Agent: open.Agent, At: open.At, Wakes: Wakes(c, r)}
	if d, ok := open.Dispatched[c.ID]; ok {
		p.Sent = &d
	}
	if r == nil {
		return p
	}
	p.Round, p.At, p.Given = r.N, r.At, r.Given
	if r.Args != nil {
		p.Call.Args = r.Args
	}
	if r.Given != nil {
		p.Call.Effect = protocol.EffectAtMostOnce // one approval is used once
	}
	return p
}

// performs is the open calls that a pool may have.
func performs(s *State) []Perform {
	var all []Perform
	for c := range s.open {
		if r := s.round(c.ID); !r.waits() {
			all = append(all, perform(s, c, r))
		}
	}
	return all
}

func index(s *State) []Effect {
	if len(s.Listed)+len(s.Gone) == 0 {
		return nil
	}
	return []Effect{Index{s.Gone}}
}
