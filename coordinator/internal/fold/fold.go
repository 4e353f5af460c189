package fold

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
)

// Fold reads one event, stored at sequence seq, into the state. Events come in log order; parts in the order adopt, inputs,
// answers, turn, stop. It returns an error only for a snapshot that cannot be read.
func Fold(s State, seq uint64, ev protocol.Event) (State, error) {
	if ev.State != nil {
		return foldSnapshot(s, seq, ev)
	}
	s.Seq, s.At, s.Snapshot = seq, ev.At, ev.Snapshot
	s.SinceSnapshot++
	progress := len(ev.Inputs) > 0 || len(ev.Answers) > 0 || ev.Turn != nil
	if ev.Adopt != nil {
		foldAdopt(&s, ev)
	}
	for _, in := range ev.Inputs {
		foldInput(&s, seq, ev.At, in)
	}
	for _, a := range ev.Answers {
		foldAnswer(&s, seq, ev.At, a)
	}
	if ev.Turn != nil {
		foldTurn(&s, seq, ev.At, *ev.Turn)
	}
	if progress {
		s.Barren = 0
	}
	if ev.Stop != nil {
		foldStop(&s, ev.At, *ev.Stop, ev.Adopt != nil && !progress)
	}
	return s, nil
}

func foldSnapshot(s State, seq uint64, ev protocol.Event) (State, error) {
	read := State{}
	if err := json.Unmarshal(ev.State, &read); err != nil {
		return s, protocol.Wrap(err, protocol.CodeInternal, "the snapshot at %d of session %s cannot be read", seq, s.Session)
	}
	read.App, read.Session = s.App, s.Session
	read.Seq, read.Snapshot, read.At = seq, seq, ev.At
	read.arrived = s.arrived
	return read, nil
}

func foldAdopt(s *State, ev protocol.Event) {
	s.Epoch = ev.Epoch
	if s.Run != nil && s.Stopped == protocol.StopParked && !fault.Mutant("wall-time-while-parked") {
		s.Run.Began += max(ev.At-s.StoppedAt, 0) // waiting is not running
	}
	if s.Guard != 0 {
		s.Seen = s.Seen.renew(s.GuardID) // it may still come again, however long it was held
	}
	s.Coordinator, s.Adoption, s.Guard, s.GuardID = ev.Adopt.Coordinator, ev.Adopt.Adoption, ev.Adopt.Guard, ""
	if s.Run != nil && fault.Mutant("speaker-forgotten") {
		s.Run.Agent = ""
	}
	s.Stopped = ""
	s.Barren++
	s.trace = ev.Adopt.Trace
	if s.Run != nil {
		s.Run.Trace = ev.Adopt.Trace
	}
}

func foldInput(s *State, seq uint64, at int64, in protocol.FoldedInput) {
	s.Seen = s.Seen.add(in.ID)
	if s.Guard != 0 && in.Seq == s.Guard && in.Decision == nil {
		s.GuardID = in.ID
	}
	if in.Refused != nil {
		return
	}
	switch in.Kind {
	case protocol.InputDecision:
		foldDecision(s, at, in)
		s.apply(in.StateDelta) // of a callback that was asked about it
		return
	case protocol.InputCancel:
		foldCancel(s, at, in.Target)
		return
	}
	if s.User == "" {
		s.User = in.Client
	}
	if in.Kind == protocol.InputMessage {
		s.speak(seq, at)
	}
	s.apply(in.StateDelta)
}

// speak notes that the model has something new to answer.
func (s *State) speak(seq uint64, at int64) {
	if s.Run == nil {
		s.Run = &Run{Began: at, Trace: s.trace}
	}
	s.Run.LastInput = seq
}

func foldCancel(s *State, at int64, target string) {
	if i := slices.IndexFunc(s.Later, func(l Later) bool { return l.Call.ID == target }); i >= 0 {
		s.Later = slices.Clone(s.Later)
		s.Later[i].Cancel = true
		return
	}
	if s.Run == nil {
		return
	}
	if target == "" {
		s.Run.Cancelled = true
		return
	}
	if s.isOpen(target) {
		s.enter(target, at).Cancel = true
	}
}

// enter is the round of an open call, made if it has none.
func (s *State) enter(call string, at int64) *Round {
	open := s.Run.Open
	r := open.Rounds[call]
	if r == nil {
		if open.Rounds == nil {
			open.Rounds = map[string]*Round{}
		}
		r = &Round{At: at}
		open.Rounds[call] = r
	}
	return r
}

func foldAnswer(s *State, seq uint64, at int64, a protocol.Answer) {
	delete(s.arrived, a.Call)
	if s.later(a.Call) != nil || s.Run == nil || s.Run.Open == nil || !s.Run.Open.has(a.Call) {
		foldLater(s, seq, at, a)
		return
	}
	open := s.Run.Open
	if _, twice := open.Answers[a.Call]; twice {
		return // the first one in the log stands
	}
	if s.holdsUp(a) {
		if a.Actions != nil {
			s.apply(a.Actions.StateDelta) // what a tool keeps for its next stage
		}
		r := s.enter(a.Call, at)
		given := r.Given
		*r = Round{N: a.Round + 1, At: at, Args: r.Args, Asks: a.Confirmation, Outside: a.Outcome == protocol.OutcomePending, Cancel: r.Cancel}
		if given != nil && fault.Mutant("approval-reused") {
			r.Given, r.Asks = given, nil
		}
		delete(open.Dispatched, a.Call)
		return
	}
	s.end(a)
	if open.Answers == nil {
		open.Answers = map[string]protocol.Answer{}
	}
	open.Answers[a.Call] = a
	if a.Outcome == protocol.OutcomePending && len(s.Later) < MaxLater { // its result may come before the turn's other calls end
		for _, c := range open.Calls {
			if c.ID == a.Call {
				s.Later = append(slices.Clip(s.Later), Later{Call: c, Agent: open.Agent, Round: a.Round + 1, At: at, Seq: open.Seq, Cancel: s.cancelled(s.round(a.Call))})
			}
		}
	}
	if len(open.Answers) < len(open.Calls) {
		return
	}
	for _, c := range open.Calls { // the turn has ended: merge its actions in call order
		a := open.Answers[c.ID]
		if a.Actions != nil {
			s.apply(a.Actions.StateDelta)
		}
	}
	s.Run.Agent, s.Run.Skip = s.next()
	s.Run.Open = nil
}

// holdsUp reports whether the turn waits for another answer of the call after a: the model is not told of a question, nor
// of a result that is to come from outside when there is nothing to tell. A client that made the call is told the end only.
func (s *State) holdsUp(a protocol.Answer) bool {
	return a.Outcome == protocol.OutcomeAsks || a.Outcome == protocol.OutcomePending && (len(a.Value) == 0 || s.Run.Open.Client)
}

// end remembers the end of a call of the open turn for those whose word on it comes too late.
func (s *State) end(a protocol.Answer) {
	for i := range s.Run.Open.Calls {
		c := &s.Run.Open.Calls[i]
		if c.ID != a.Call {
			continue
		}
		r := s.round(c.ID)
		if r != nil && r.Asks != nil {
			code := protocol.CodeCancelled
			if a.Outcome == protocol.OutcomeExpired {
				code = protocol.CodeExpired
			}
			if _, decided := s.Past.Find(r.Asks.ID); !decided {
				s.Past.add(Ended{ID: r.Asks.ID, Code: code})
			}
		}
		if (r != nil || c.AnswersTo == protocol.MailboxWake) && !a.Outcome.Interim() {
			s.Past.add(Ended{ID: c.ID, Code: protocol.CodeAnswered})
		}
		return
	}
}

// foldLater folds an answer of a call whose turn has ended. The model is asked again when there is news for it: not when
// the fabric gave up waiting.
func foldLater(s *State, seq uint64, at int64, a protocol.Answer) {
	i := slices.IndexFunc(s.Later, func(l Later) bool { return l.Call.ID == a.Call && l.Round == a.Round })
	if i < 0 {
		return
	}
	later := s.Later[i]
	s.Later = slices.Delete(slices.Clone(s.Later), i, i+1)
	if a.Actions != nil {
		s.apply(a.Actions.StateDelta)
	}
	if a.Outcome.Interim() {
		later.Round, later.At = a.Round+1, at
		s.Later = append(s.Later, later)
	} else {
		s.Past.add(Ended{ID: a.Call, Code: protocol.CodeAnswered})
	}
	if a.Code == protocol.CodeExpired || a.Code == protocol.CodeCancelled || fault.Mutant("later-answer-untold") {
		return
	}
	next, skip := later.Agent, false
	if w := a.Actions; w != nil {
		skip = w.SkipSummarization && w.TransferToAgent == ""
		next = cmp.Or(w.TransferToAgent, next)
	}
	if skip {
		return // the result is in the log, and that is all that was wanted
	}
	begins := s.Run == nil
	s.speak(seq, at)
	if begins {
		s.Run.Agent = next // who was waiting for it
	}
}

// cancelled reports whether somebody asked for the end of an open call in round r.
func (s *State) cancelled(r *Round) bool { return s.Run.Cancelled || r != nil && r.Cancel }

func (o *OpenTurn) has(call string) bool {
	return slices.ContainsFunc(o.Calls, func(c protocol.Call) bool { return c.ID == call })
}

func foldTurn(s *State, seq uint64, at int64, t protocol.Turn) {
	client := len(t.Content) == 0
	if s.Run == nil {
		s.Run = &Run{Began: at, Trace: s.trace}
	}
	if t.Agent != "" && t.By != protocol.SpeakerBeforeAgent {
		s.Run.Entered = t.Agent
	}
	if !client {
		s.Spoke = t.Agent
		s.Run.Agent, s.Run.Asked, s.Run.Skip = t.Agent, t.RequestSeq, false
	}
	if !client && t.By != protocol.SpeakerBeforeAgent && t.By != protocol.SpeakerAfterAgent {
		s.Run.ModelCalls++
		if t.Usage != nil {
			s.Run.Tokens += t.Usage.Total
		}
	}
	s.apply(t.StateDelta)
	s.arrived = nil
	if len(t.Calls) == 0 {
		return
	}
	open := &OpenTurn{Seq: seq, At: at, Client: client, Agent: t.Agent, Calls: t.Calls}
	s.Run.Open = open
	for _, c := range t.Calls {
		switch c.Verdict {
		case protocol.VerdictRefuse, protocol.VerdictAnswer:
			foldAnswer(s, seq, at, protocol.Answer{Call: c.ID, Result: recorded(c)})
		case protocol.VerdictAsk:
			s.enter(c.ID, at).Asks = c.Confirmation
		}
	}
}

// recorded is the answer that a turn holds of a call. A call without it is in no log of ours, but a log must always be readable.
func recorded(c protocol.Call) protocol.Result {
	if r := c.Recorded(); r != nil {
		return *r
	}
	return protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeFailed, Code: protocol.CodeInternal, Value: protocol.ErrorValue("the call was not run: its turn holds no answer")}
}

func foldStop(s *State, at int64, stop protocol.Stop, onlyAdopt bool) {
	s.Stopped, s.StoppedAt = stop.Kind, at
	if s.Run != nil && s.Run.Open != nil && len(stop.Dispatched) > 0 {
		open := s.Run.Open
		if open.Dispatched == nil {
			open.Dispatched = map[string]protocol.Dispatch{}
		}
		for id, d := range stop.Dispatched {
			if d.Taken && !open.Dispatched[id].Taken {
				s.Barren = 0 // what it was adopted for is settled
			}
			open.Dispatched[id] = d
		}
	}
	if stop.Kind == protocol.StopDrained {
		s.Barren = 0
		return // the next owner stops for both
	}
	if onlyAdopt && (stop.Kind == protocol.StopDone || stop.Kind == protocol.StopParked) {
		s.Barren-- // an adoption that found nothing to run does not count
	}
	s.list(stop.Kind)
	s.arrived = nil
	if stop.Kind == protocol.StopParked {
		if s.Run != nil && s.Run.Open != nil && fault.Mutant("park-forgets-answers") {
			s.Run.Open.Answers = nil
		}
		return
	}
	if stop.Kind == protocol.StopDeleted {
		s.Values, s.Later = nil, nil // the run stays: its open calls are to be withdrawn
		return
	}
	s.Run = nil
}

// list notes what a stop leaves in PARK: the calls that are still open or may be answered later.
func (s *State) list(stop protocol.StopKind) {
	var now []string
	if stop == protocol.StopParked {
		for c := range s.open {
			now = append(now, c.ID)
		}
	}
	if stop != protocol.StopDeleted && stop != protocol.StopQuarantined {
		for _, l := range s.Later {
			now = append(now, l.Call.ID)
		}
	}
	s.Gone = slices.DeleteFunc(slices.Clone(s.Listed), func(id string) bool { return slices.Contains(now, id) })
	s.Listed = now
}

// apply merges a delta into the session's values, temp: keys into the run's.
func (s *State) apply(delta map[string]json.RawMessage) {
	for k, v := range delta {
		target := &s.Values
		if strings.HasPrefix(k, "temp:") {
			if s.Run == nil {
				continue
			}
			target = &s.Run.Temp
		}
		if *target == nil {
			*target = map[string]json.RawMessage{}
		}
		mergeInto(*target, map[string]json.RawMessage{k: v})
	}
}
