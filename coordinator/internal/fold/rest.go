package fold

import (
	"slices"

	"github.com/toolfabric/toolfabric/protocol"
)

// rest adds to an event the stop that it leads to by itself: the run was cancelled and its last call has ended, a client's
// call has ended, or nothing is left to do before people or the outside speak.
func rest(s *State, ev *protocol.Event) {
	if ev.Stop != nil || ev.State != nil || !restless(s, ev) {
		return
	}
	next := s.after(ev)
	if !next.Owned() {
		return // refused by event, without a run
	}
	stop := protocol.Stop{}
	switch {
	case next.Run == nil || !next.Waits() && next.App == protocol.CallsApp:
		stop.Kind = protocol.StopDone
	case next.Run.Cancelled && !next.Waits():
		stop.Kind = protocol.StopCancelled
	case next.AtRest(ev.At):
		stop.Kind = protocol.StopParked
	default:
		return
	}
	for _, a := range s.settled() {
		if !answers(ev, a.Call) {
			ev.Answers = append(ev.Answers, a)
		}
	}
	ev.Stop = &stop
}

// restless reports whether an event may lead to such a stop. The answer is no for runs in which nobody outside has a say.
func restless(s *State, ev *protocol.Event) bool {
	if ev.Turn != nil {
		return slices.ContainsFunc(ev.Turn.Calls, func(c protocol.Call) bool { return c.Verdict == protocol.VerdictAsk })
	}
	if s.Run == nil && s.Owned() && ev.Adopt == nil {
		if due := s.Due(); due == 0 || due > ev.At {
			return true // what it was held for has come
		}
	}
	if len(ev.Answers) > 0 || s.Run != nil && (s.Run.Cancelled || s.Run.Open != nil && len(s.Run.Open.Rounds) > 0) {
		return true
	}
	return slices.ContainsFunc(ev.Inputs, func(in protocol.FoldedInput) bool {
		return in.Kind == protocol.InputCancel || in.Kind == protocol.InputDecision
	})
}
