package fold

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
)

// Stamp is what an event needs and a pure function cannot make.
type Stamp struct {
	ID func() string // gives an unguessable id, new for each event
	At int64         // the broker's time as the writer knows it, Unix milliseconds
}

// Input is something the outside says to a session: Adopt, Arrive, Answered, Entered, Modelled, Failed, Park, Settle, Drain or
// Snapshot.
type Input interface {
	// step changes what is not in the log, and fills in the parts of an event to propose; it reports whether there is one.
	step(s *State, ev *protocol.Event) bool
}

// Step takes in. It returns the state with what is not in the log brought up to date, and the event to append, or nil.
// The event has no effect before it is appended at Seq and folded.
func Step(s State, in Input, stamp Stamp) (State, *protocol.Event) {
	ev := &protocol.Event{V: protocol.Version, Epoch: s.Epoch, At: max(stamp.At, s.At), Snapshot: s.Snapshot}
	if !in.step(&s, ev) {
		return s, nil
	}
	if a, ok := in.(Adopt); !ok || !a.Awaits {
		rest(&s, ev)
	}
	if ev.Stop != nil && (ev.Stop.Kind == protocol.StopParked || len(s.Later) > 0) {
		next := s.after(ev)
		ev.Stop.Listed = next.Listed
	}
	ev.ID = stamp.ID()
	return s, ev
}

// Arrival is an input that was delivered, or the answer of a call. Turn is the judged turn of an input of kind call, whose
// verdict needs the catalogue of tools; nil for the other kinds. Ends is what callbacks made of the call that a decision is
// about: its answer in the round that was decided; nil when the decision alone says how it goes on.
type Arrival struct {
	Input  protocol.FoldedInput
	Turn   *protocol.Turn
	Ends   *protocol.Answer
	Answer *protocol.Answer // nil for an input
}

// Adopt takes an ownerless session, with what was delivered for it, in stream order. Awaits says that more was delivered and
// comes when callbacks have seen it: the session is held for that. Guard is the sequence of the input that is to guard the
// adoption; the event names it only if it folds that input.
type Adopt struct {
	Coordinator, Adoption, Trace string
	Guard                        uint64
	Arrivals                     []Arrival
	Awaits                       bool
}

func (in Adopt) step(s *State, ev *protocol.Event) bool {
	if s.Closed() != nil {
		return Arrive{in.Arrivals}.step(s, ev) // refused by event, without a run
	}
	ev.Epoch = s.Epoch + 1
	if fault.Mutant("epoch-kept") {
		ev.Epoch = s.Epoch
	}
	ev.Adopt = &protocol.Adopt{Coordinator: in.Coordinator, Adoption: in.Adoption, Trace: in.Trace}
	arrive(s, ev, in.Arrivals)
	if slices.ContainsFunc(ev.Inputs, func(folded protocol.FoldedInput) bool { return folded.Seq == in.Guard && folded.Decision == nil }) {
		ev.Adopt.Guard = in.Guard
	}
	if ev.Stop != nil {
		return true
	}
	due := s.Due()
	switch work := in.Awaits || s.unfinished() || ev.Turn != nil || accepted(ev.Inputs) || len(ev.Answers) > 0 || due > 0 && due <= ev.At; {
	case work && s.Barren+1 > MaxBarren && len(ev.Inputs) == 0 && !fault.Mutant("poison-for-ever"):
		ev.Stop = &protocol.Stop{Kind: protocol.StopQuarantined, Problem: &protocol.Problem{Code: protocol.CodePoison,
			Message: "coordinators kept dying on this session without progress"}}
	case !work && !fault.Mutant("idle-adoption"):
		ev.Stop = &protocol.Stop{Kind: protocol.StopDone}
	case ev.Turn != nil && ended(*ev.Turn):
		ev.Stop = &protocol.Stop{Kind: protocol.StopDone}
	}
	return true
}

// unfinished reports whether the log leaves something to do.
func (s *State) unfinished() bool {
	return s.Run != nil && (s.App != protocol.CallsApp || s.Run.Open != nil)
}

// Arrive hands inputs to a session that is owned by the caller, or closed.
type Arrive struct{ Arrivals []Arrival }

func (in Arrive) step(s *State, ev *protocol.Event) bool {
	arrive(s, ev, in.Arrivals)
	return len(ev.Inputs) > 0 || len(ev.Answers) > 0
}

// arrive judges inputs and adds those that are new to the event, with what they entail, as many as fit: at least the first.
func arrive(s *State, ev *protocol.Event, arrivals []Arrival) {
	taken := map[string]bool{}
	room := MaxInputs
	stops := false // the run, by a cancel of this event
	for _, a := range arrivals {
		if a.Answer != nil {
			if s.Takes(*a.Answer) && !answers(ev, a.Answer.Call) {
				ev.Answers = append(ev.Answers, s.bounded(*a.Answer))
			}
			continue
		}
		in := a.Input
		if (s.Seen.Has(in.ID) || taken[in.ID]) && !fault.Mutant("input-forgotten") {
			continue
		}
		if in.Kind == protocol.InputMessage && (s.Cancelling() || stops) {
			continue // it begins the next run
		}
		if in.Kind == protocol.InputDecision {
			if refused, known := s.JudgeDecision(in); refused != nil || !known || taken[in.Decision.Confirmation] {
				continue // refused ones are told so, and are not of the log; a second one is judged after the first
			}
			if c, _ := s.question(in.Decision.Confirmation); answers(ev, c.ID) {
				continue // this event ends the call: judged after it
			}
			taken[in.Decision.Confirmation] = true
		} else if in.Refused == nil {
			in.Refused = judge(s, in)
		}
		if in.Refused == nil {
			if room -= weight(in); room < 0 {
				return // the rest comes again
			}
		}
		taken[in.ID] = true
		if in.Refused == nil && in.Kind == protocol.InputCall && ev.Turn != nil {
			in.Refused = &protocol.Problem{Code: protocol.CodeUnsupported, Message: "a session of the app calls makes one call; use a new session for each"}
		}
		if in.Refused != nil {
			in.Content, in.Call, in.StateDelta = nil, nil, nil
		}
		ev.Inputs = append(ev.Inputs, in)
		if in.Refused != nil {
			continue
		}
		switch in.Kind {
		case protocol.InputCall:
			ev.Turn = a.Turn
		case protocol.InputDecision:
			if c, r := s.question(in.Decision.Confirmation); a.Ends != nil && a.Ends.Call == c.ID && a.Ends.Round == r.N {
				ev.Answers = append(ev.Answers, s.bounded(*a.Ends))
			} else if !in.Decision.Confirmed && !r.Asks.ToolDecides && !answers(ev, c.ID) && !fault.Mutant("denial-unheard") {
				ev.Answers = append(ev.Answers, protocol.Answer{Call: c.ID, Round: r.N, Result: denied(c)})
			}
		case protocol.InputCancel:
			stops = stops || in.Target == ""
			cancel(s, ev, in.Target)
		case protocol.InputDelete:
			ev.Stop = &protocol.Stop{Kind: protocol.StopDeleted}
			return // what came after it comes again and is refused
		}
	}
}

// Takes reports whether a call that is open, or whose final answer may still come, has no answer for a's round yet.
func (s *State) Takes(a protocol.Answer) bool {
	if s.isOpen(a.Call) {
		return a.Round == s.RoundOf(a.Call) || a.Round < s.RoundOf(a.Call) && fault.Mutant("answer-of-older-round")
	}
	return slices.ContainsFunc(s.Later, func(l Later) bool { return l.Call.ID == a.Call && l.Round == a.Round })
}

func answers(ev *protocol.Event, call string) bool {
	return slices.ContainsFunc(ev.Answers, func(a protocol.Answer) bool { return a.Call == call })
}

// cancel answers the calls that a cancel ends and nobody can answer otherwise: those that people are asked about. The others
// are revoked first, as their mailboxes may have their answers.
func cancel(s *State, ev *protocol.Event, target string) {
	for c := range s.open {
		if r := s.round(c.ID); (target == "" || target == c.ID) && r != nil && r.Asks != nil && !answers(ev, c.ID) && !fault.Mutant("cancelled-still-asked") {
			ev.Answers = append(ev.Answers, protocol.Answer{Call: c.ID, Round: r.N, Result: unasked(r)})
		}
	}
}

func accepted(inputs []protocol.FoldedInput) bool {
	for _, in := range inputs {
		if in.Refused == nil && in.Kind == protocol.InputMessage {
			return true
		}
	}
	return false
}

// ended reports whether a turn needs nothing more when it was made by a client.
func ended(t protocol.Turn) bool {
	for _, c := range t.Calls {
		if c.Verdict != protocol.VerdictRefuse && c.Verdict != protocol.VerdictAnswer {
			return false
		}
	}
	return true
}

// Answered brings a call's stored result. The first one for a round of a call stands. An answer that ends a call which was
// only sent to its pool needs no event: it is durable where it is, and the next event carries it.
type Answered struct{ Answer protocol.Answer }

func (in Answered) step(s *State, ev *protocol.Event) bool {
	if !s.Takes(in.Answer) {
		return false
	}
	if !s.isOpen(in.Answer.Call) {
		ev.Answers = []protocol.Answer{s.bounded(in.Answer)}
		return true
	}
	if s.arrived == nil {
		s.arrived = map[string]protocol.Answer{}
	}
	s.arrived[in.Answer.Call] = s.bounded(in.Answer)
	ends := (s.Run.Open.Client || s.Run.Cancelled) && !s.Waits()
	if !ends && !in.Answer.Outcome.Interim() && s.round(in.Answer.Call) == nil {
		return false
	}
	ev.Answers = s.settled()
	return true
}

// bounded refuses the state that an answer sets when there is no room for it.
func (s *State) bounded(a protocol.Answer) protocol.Answer {
	if a.Actions == nil || len(a.Actions.StateDelta) == 0 || size(s.View())+size(a.Actions.StateDelta) <= MaxValues {
		return a
	}
	a.Outcome, a.Code, a.Actions = protocol.OutcomeFailed, protocol.CodeTooLarge, nil
	a.Value = protocol.ErrorValue("the tool ran, but its state changes were dropped: the session's state would be larger than 256 KiB")
	return a
}

// Resized replaces an answer that has arrived by one that takes less room: the same answer with its body moved.
type Resized struct{ Answer protocol.Answer }

func (in Resized) step(s *State, _ *protocol.Event) bool {
	if _, ok := s.arrived[in.Answer.Call]; ok {
		s.arrived[in.Answer.Call] = in.Answer
	}
	return false
}

// settled is the answers that have arrived and are not in the log, in call order.
func (s *State) settled() []protocol.Answer {
	if s.Run == nil || s.Run.Open == nil {
		return nil
	}
	out := make([]protocol.Answer, 0, len(s.arrived))
	for _, c := range s.Run.Open.Calls {
		if _, logged := s.Run.Open.Answers[c.ID]; logged {
			continue
		}
		if a, ok := s.arrived[c.ID]; ok {
			out = append(out, a)
		}
	}
	return out
}

// Modelled brings a model's answer, judged. All calls of the open turn have ended.
type Modelled struct {
	Turn    protocol.Turn
	Problem *protocol.Problem // set when the answer is recorded but ends the run as failed
	Asks    bool              // callbacks are asked before the run ends by its calls: it does not end with this event
}

func (in Modelled) step(s *State, ev *protocol.Event) bool {
	if s.Run == nil || s.Waits() {
		return false
	}
	ev.Answers = s.settled()
	ev.Turn = &in.Turn
	late := s.Run.LastInput > in.Turn.RequestSeq && !fault.Mutant("late-input-unanswered") // somebody spoke after the request was built
	switch {
	case in.Problem != nil:
		ev.Stop = &protocol.Stop{Kind: protocol.StopDone, Problem: in.Problem}
	case len(in.Turn.Calls) == 0 && !late, !in.Asks && finishes(s, ev):
		ev.Stop = &protocol.Stop{Kind: protocol.StopDone}
	}
	return true
}

// Entered records what the callbacks set that were asked before the run went into an agent.
type Entered struct{ Turn protocol.Turn }

func (in Entered) step(s *State, ev *protocol.Event) bool {
	if s.Run == nil || s.Waits() {
		return false
	}
	ev.Answers = s.settled()
	ev.Turn = &in.Turn
	return true
}

// Settle stops a session that was held for something that turned out to be nothing.
type Settle struct{}

func (Settle) step(s *State, ev *protocol.Event) bool {
	if !s.Owned() || s.Run != nil {
		return false
	}
	ev.Stop = &protocol.Stop{Kind: protocol.StopDone}
	return true
}

// Failed ends a run without open calls: the model could not be asked, or a cap was reached.
type Failed struct{ Problem protocol.Problem }

func (in Failed) step(s *State, ev *protocol.Event) bool {
	if s.Run == nil || s.Waits() {
		return false
	}
	ev.Answers = s.settled()
	ev.Stop = &protocol.Stop{Kind: protocol.StopDone, Problem: &in.Problem}
	return true
}

// Drain hands the session to another coordinator. Dispatched is the open calls whose publishing is certain.
type Drain struct{ Dispatched map[string]protocol.Dispatch }

func (in Drain) step(s *State, ev *protocol.Event) bool {
	if !s.Owned() {
		return false
	}
	ev.Answers = s.settled()
	ev.Stop = &protocol.Stop{Kind: protocol.StopDrained}
	ev.Stop.Dispatched = s.dispatched(in.Dispatched)
	return true
}

// dispatched is the open calls that are certainly stored in their queues: sent, and those of earlier stops.
func (s *State) dispatched(sent map[string]protocol.Dispatch) map[string]protocol.Dispatch {
	var all map[string]protocol.Dispatch
	for c := range s.open {
		d, now := sent[c.ID]
		before, earlier := s.Run.Open.Dispatched[c.ID]
		if !now && !earlier || s.round(c.ID).waits() {
			continue
		}
		if all == nil {
			all = map[string]protocol.Dispatch{}
		}
		all[c.ID] = protocol.Dispatch{Seq: cmp.Or(d.Seq, before.Seq), Taken: d.Taken || before.Taken}
	}
	return all
}

// Park lets go of a session whose open calls all wait for people, for the outside, or for a pool that answers where it
// wakes the session. Dispatched is those that are certainly published.
type Park struct{ Dispatched map[string]protocol.Dispatch }

func (in Park) step(s *State, ev *protocol.Event) bool {
	if !s.Owned() || !s.Waits() || s.Run.Cancelled {
		return false
	}
	sent := s.dispatched(in.Dispatched)
	for c := range s.open {
		r := s.round(c.ID)
		if _, stored := sent[c.ID]; r != nil && r.Cancel || !r.waits() && (!Wakes(c, r) || !stored) {
			return false
		}
	}
	ev.Answers = s.settled()
	ev.Stop = &protocol.Stop{Kind: protocol.StopParked, Dispatched: sent}
	return true
}

// SnapshotDue reports whether enough events have passed since the last snapshot for Snapshot to write another one.
func (s *State) SnapshotDue() bool { return s.Owned() && s.SinceSnapshot >= SnapshotGap }

// Snapshot writes the state down when that is due.
type Snapshot struct{}

func (Snapshot) step(s *State, ev *protocol.Event) bool {
	if !s.SnapshotDue() {
		return false
	}
	data, err := json.Marshal(s)
	if err != nil || len(data) > protocol.MaxEvent-1024 {
		return false // the next one may fit; replay from the older snapshot stays right
	}
	ev.State = data
	return true
}
