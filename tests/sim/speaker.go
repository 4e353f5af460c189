package sim

import "github.com/toolfabric/toolfabric/protocol"

// speakers wants each turn to be of the agent that the run is with: the one that spoke before, or the one that the answers to
// its calls handed the run over to. No model is asked after a turn of which an answer said that nobody is to be told, unless
// somebody has spoken since.
func (c *checker) speakers() {
	for _, j := range c.journals() {
		s := speaking{c: c, j: j}
		for _, ev := range j.events {
			s.read(ev)
		}
	}
}

// speaking follows who speaks in a session.
type speaking struct {
	c     *checker
	j     *journal
	agent string // whose turn it is; empty is anybody's
	ends  bool   // the run is over unless somebody has spoken
	spoke uint64 // sequence of the newest event that a model is to be asked about
	asked uint64 // sequence that the newest turn's request was built from

	calls  []protocol.Call // of the open turn
	ended  map[string]*protocol.Actions
	closed map[string]bool // calls of earlier turns
}

func (s *speaking) read(ev entry) {
	for _, in := range ev.Inputs {
		if in.Refused == nil && in.Kind == protocol.InputMessage {
			s.spoke = ev.seq
		}
	}
	for _, a := range ev.Answers {
		if s.closed[a.Call] {
			s.spoke = ev.seq // what a model was told to wait for
		}
		if a.Outcome != protocol.OutcomeAsks && (a.Outcome != protocol.OutcomePending || len(a.Value) > 0) {
			s.end(a.Call, a.Actions)
		}
	}
	if t := ev.Turn; t != nil && len(t.Content) > 0 {
		s.turn(ev, t)
	}
	if ev.Stop != nil && ev.Stop.Kind != protocol.StopParked && ev.Stop.Kind != protocol.StopDrained {
		s.agent, s.ends, s.calls = "", false, nil
	}
}

func (s *speaking) turn(ev entry, t *protocol.Turn) {
	if s.agent != "" && t.Agent != s.agent {
		s.c.add("I28", "log %s: event %d is a turn of %s, but the run is with %s", s.j.name, ev.seq, t.Agent, s.agent)
	}
	if s.ends && s.spoke <= s.asked {
		s.c.add("I28", "log %s: event %d is a turn after one that ended the run", s.j.name, ev.seq)
	}
	s.agent, s.ends, s.asked = t.Agent, false, t.RequestSeq
	s.calls, s.ended = t.Calls, map[string]*protocol.Actions{}
	for i := range t.Calls {
		if r := t.Calls[i].Recorded(); r != nil {
			s.end(t.Calls[i].ID, r.Actions)
		}
	}
}

// end notes how a call of the open turn ended; the last end says what comes of the turn.
func (s *speaking) end(call string, asked *protocol.Actions) {
	of := false
	for _, c := range s.calls {
		of = of || c.ID == call
	}
	if _, twice := s.ended[call]; !of || twice {
		return
	}
	s.ended[call] = asked
	if len(s.ended) < len(s.calls) {
		return
	}
	if s.closed == nil {
		s.closed = map[string]bool{}
	}
	to := ""
	for _, c := range s.calls {
		s.closed[c.ID] = true
		if a := s.ended[c.ID]; a != nil {
			s.ends = s.ends || a.SkipSummarization
			if a.TransferToAgent != "" {
				to = a.TransferToAgent
			}
		}
	}
	if to != "" {
		s.agent, s.ends = to, false
	}
	s.calls = nil
}
