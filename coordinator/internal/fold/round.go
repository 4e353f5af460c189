package fold

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
)

// Round is where a call stands in which people or the outside have a say. A call that was only ever sent to its pool has
// none: its round is 0 and counts from its turn's At.
type Round struct {
	N  int   `json:"n,omitempty"` // interim answers folded so far
	At int64 `json:"at"`          // of the event that began the round, or allowed its dispatch

	Asks    *protocol.Confirmation `json:"asks,omitempty"`    // the open question: nothing is sent before it is decided
	Agreed  []string               `json:"agreed,omitempty"`  // approvers who said yes to it
	Args    json.RawMessage        `json:"args,omitempty"`    // edited arguments; nil is the call's own
	Given   *protocol.Confirmed    `json:"given,omitempty"`   // what people said: goes with the call to its pool
	Outside bool                   `json:"outside,omitempty"` // the result comes from outside: there is nothing to send
	Cancel  bool                   `json:"cancel,omitempty"`  // somebody asked for its end
}

// Later is a call that its turn does not wait for any more, because the model is told an interim answer: the final one may
// still come and is shown to the model then.
type Later struct {
	Call  protocol.Call `json:"call"`
	Agent string        `json:"agent,omitempty"`
	Round int           `json:"round"`
	At    int64         `json:"at"`
	Seq   uint64        `json:"seq"` // of its turn

	Cancel bool `json:"cancel,omitempty"` // somebody asked for its end
}

// until is when a wait for people or for the outside ends, Unix milliseconds.
func until(c *protocol.Call, r *Round) int64 {
	if r.Asks != nil {
		return r.Asks.Expires
	}
	return r.At + c.Park
}

// waits reports whether nothing is to be sent for the call now.
func (r *Round) waits() bool { return r != nil && (r.Asks != nil || r.Outside) }

// Wakes reports whether the call's answer in this round, nil for one that has none, is stored where it wakes a parked session.
func Wakes(c *protocol.Call, r *Round) bool {
	return c.AnswersTo == protocol.MailboxWake || r != nil && (r.N > 0 || r.Given != nil)
}

// round is the call's round in the open turn; nil for one that has none.
func (s *State) round(call string) *Round {
	if s.Run == nil || s.Run.Open == nil {
		return nil
	}
	return s.Run.Open.Rounds[call]
}

// RoundOf is the number of the round that an open call is in.
func (s *State) RoundOf(call string) int {
	if r := s.round(call); r != nil {
		return r.N
	}
	return 0
}

// Wait is one call that waits for people or for the outside.
type Wait struct {
	Call  protocol.Call
	Agent string
	Round Round
	Until int64
	Seq   uint64 // of its turn
	Told  bool   // the model was told of it and goes on: nobody's turn is held up
}

// Waiting lists the calls that wait for people or for the outside, those of the open turn first.
func (s *State) Waiting() []Wait {
	var all []Wait
	for c := range s.open {
		if r := s.round(c.ID); r.waits() {
			all = append(all, Wait{Call: perform(s, c, r).Call, Agent: s.Run.Open.Agent, Round: *r, Until: until(c, r), Seq: s.Run.Open.Seq})
		}
	}
	for _, l := range s.Later {
		all = append(all, Wait{Call: l.Call, Agent: l.Agent, Round: Round{N: l.Round, At: l.At, Outside: true, Cancel: l.Cancel}, Until: l.At + l.Call.Park, Seq: l.Seq, Told: true})
	}
	return all
}

// roundAt is when an open call was allowed that is in round r.
func (s *State) roundAt(r *Round) int64 {
	if r == nil {
		return s.Run.Open.At
	}
	return r.At
}

// Due is the first instant, Unix milliseconds, at which a call of a session at rest may end without an answer; 0 is never. A
// call that its pool has ends with its budget, one of which that is not known when its time to be taken is over.
func (s *State) Due() int64 {
	due := int64(0)
	sooner := func(at int64) {
		if due == 0 || at < due {
			due = at
		}
	}
	for c := range s.open {
		if r := s.round(c.ID); r.waits() {
			sooner(until(c, r))
		} else if at := s.roundAt(r); s.Run.Open.Dispatched[c.ID].Taken {
			sooner(at + c.Budget)
		} else {
			sooner(at + c.Queue)
		}
	}
	for _, l := range s.Later {
		sooner(l.At + l.Call.Park)
	}
	return due
}

// AtRest reports whether a run has nothing to do at the instant now, Unix milliseconds, until people or the outside speak.
func (s *State) AtRest(now int64) bool {
	if s.Run == nil || s.Run.Open == nil || s.Run.Cancelled {
		return false
	}
	some := false
	for c := range s.open {
		r := s.round(c.ID)
		if !r.waits() || r.Cancel || until(c, r) <= now {
			return false
		}
		some = true
	}
	return some
}

// Holds reports whether the log holds an answer of the call for that round, or its end, and whether it knows the call at all.
func (s *State) Holds(call string, round int) (logged, known bool) {
	if l := s.later(call); l != nil {
		return round < l.Round, true
	}
	if s.Run != nil && s.Run.Open != nil && s.Run.Open.has(call) {
		_, ended := s.Run.Open.Answers[call]
		return ended || round < s.RoundOf(call) && !fault.Mutant("answer-of-older-round"), true
	}
	_, ended := s.Past.Find(call)
	return ended, ended
}

// later is a call that the model was told of and whose final answer may still come; nil for others.
func (s *State) later(call string) *Later {
	for i := range s.Later {
		if s.Later[i].Call.ID == call {
			return &s.Later[i]
		}
	}
	return nil
}

// Arrived reports whether an answer of the call for that round is known and waits to be logged with others.
func (s *State) Arrived(call string, round int) bool {
	a, ok := s.arrived[call]
	return ok && a.Round == round
}

// Call is a call that is open, or whose final answer may still come, with the arguments of its round.
func (s *State) Call(id string) (protocol.Call, bool) {
	for c := range s.open {
		if c.ID == id {
			return perform(s, c, s.round(id)).Call, true
		}
	}
	if l := s.later(id); l != nil {
		return l.Call, true
	}
	return protocol.Call{}, false
}

// Listing is what PARK lists of a session at rest: the calls that wait, and those that their pools have.
func (s *State) Listing() []Wait {
	if s.Closed() != nil {
		return nil
	}
	all := s.Waiting()
	if s.Stopped != protocol.StopParked {
		return all
	}
	for _, p := range performs(s) {
		all = append(all, Wait{Call: p.Call, Agent: p.Agent, Round: Round{N: p.Round, At: p.At}, Until: p.At + p.Call.Budget, Seq: s.Run.Open.Seq})
	}
	return all
}

// after is the state that ev will make, for looking only.
func (s *State) after(ev *protocol.Event) State {
	dry := *s
	dry.Seen, dry.Past = Seen{}, Past{}
	dry.Values = maps.Clone(s.Values)
	dry.Later = slices.Clone(s.Later)
	dry.arrived = maps.Clone(s.arrived)
	if s.Run != nil {
		run := *s.Run
		run.Temp = maps.Clone(run.Temp)
		if run.Open != nil {
			open := *run.Open
			open.Answers, open.Dispatched = maps.Clone(open.Answers), maps.Clone(open.Dispatched)
			open.Rounds = maps.Clone(open.Rounds)
			for id, r := range open.Rounds {
				copied := *r
				copied.Agreed = slices.Clone(r.Agreed)
				open.Rounds[id] = &copied
			}
			run.Open = &open
		}
		dry.Run = &run
	}
	next, err := Fold(dry, s.Seq+1, *ev)
	if err != nil {
		return *s
	}
	return next
}
