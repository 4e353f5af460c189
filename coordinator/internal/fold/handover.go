package fold

import (
	"slices"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
)

// What the answers of a turn ask of the run. It counts once all of the turn's calls have ended, in call order, whatever the
// calls waited for in between: of several agents to hand over to the last one is next, and one call that wants no summary is
// enough to end the run. Handing over goes before ending: ADK follows a transfer before it looks at the flag. A message that
// no model has seen yet is answered all the same.

// next is whose turn it is once the calls of the open turn have ended, and whether nobody is to be asked. It reads also the
// answers that the log does not hold yet.
func (s *State) next() (agent string, skip bool) {
	agent, skip = s.Run.Agent, s.Run.Skip
	if s.Run.Open == nil || s.Run.Open.Client {
		return agent, skip
	}
	handed := false
	for i := range s.Run.Open.Calls {
		a, _ := s.answer(s.Run.Open.Calls[i].ID)
		if a.Actions == nil {
			continue
		}
		skip = skip || a.Actions.SkipSummarization
		if to := a.Actions.TransferToAgent; to != "" && !fault.Mutant("transfer-unheard") {
			agent, handed = to, true
		}
	}
	return agent, skip && !handed
}

// Speaker is the agent whose turn it is when all calls have ended; empty when that is not decided, because the run is new.
func (s *State) Speaker() string {
	if s.Run == nil {
		return ""
	}
	agent, _ := s.next()
	return agent
}

// Finished reports whether the run ends although its last turn made calls: all have ended, one of them asked for that, and
// no message waits.
func (s *State) Finished() bool {
	if s.Run == nil || s.App == protocol.CallsApp || s.Waits() || s.Run.LastInput > s.Run.Asked || fault.Mutant("skip-unheard") {
		return false
	}
	_, skip := s.next()
	return skip
}

// Finished ends a run that Finished says is at its end. Turn is what callbacks said and set at that; nil for nothing.
type Finished struct{ Turn *protocol.Turn }

func (in Finished) step(s *State, ev *protocol.Event) bool {
	if !s.Owned() || !s.Finished() {
		return false
	}
	ev.Answers = s.settled()
	ev.Turn = in.Turn
	ev.Stop = &protocol.Stop{Kind: protocol.StopDone}
	return true
}

// finishes reports whether a turn that is about to be recorded, all of whose calls it answers itself, is the run's last.
func finishes(s *State, ev *protocol.Event) bool {
	if len(ev.Turn.Calls) == 0 || !slices.ContainsFunc(ev.Turn.Calls, func(c protocol.Call) bool { return c.Verdict == protocol.VerdictAnswer }) {
		return false
	}
	next := s.after(ev)
	return next.Finished()
}
