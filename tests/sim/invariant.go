package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/toolfabric/toolfabric/protocol"
)

func (c *checker) foldedOnce() {
	for _, j := range c.journals() {
		ids, seqs := map[string]uint64{}, map[string]uint64{}
		for _, ev := range j.events {
			for _, in := range ev.Inputs {
				message := fmt.Sprint(in.Kind == protocol.InputDecision, in.Seq)
				if first, ok := ids[in.ID]; ok {
					c.add("I5", "log %s: input %s is folded by events %d and %d", j.name, in.ID, first, ev.seq)
				} else if first, ok := seqs[message]; ok {
					c.add("I5", "log %s: message %d of the inputs is folded by events %d and %d", j.name, in.Seq, first, ev.seq)
				}
				ids[in.ID], seqs[message] = ev.seq, ev.seq
			}
		}
	}
}

// allFolded lets go what a dead letter accounts for, and what was said to a session that was deleted.
func (c *checker) allFolded() {
	for _, r := range c.h.Records {
		app, _, session, ok := c.h.Names.ParseInput(r.Subject)
		if r.Stream != c.h.Names.Input() || !ok || !r.Acked || c.hasLetter(r.Stream, r.Seq) {
			continue
		}
		in, err := protocol.DecodeInput(r.Data)
		if err != nil {
			c.add("I4", "input message %d cannot be read (%v) and has no dead letter", r.Seq, err)
			continue
		}
		j := c.sessions[app+"."+session]
		if j == nil || !j.folds(in.ID) && !j.endsIn(protocol.StopDeleted) {
			c.add("I4", "input %s (message %d) to %s.%s was acked to its sender and never folded", in.ID, r.Seq, app, session)
		}
	}
}

func (j *journal) folds(id string) bool {
	return slices.ContainsFunc(j.events, func(ev entry) bool {
		return slices.ContainsFunc(ev.Inputs, func(in protocol.FoldedInput) bool { return in.ID == id })
	})
}

// endsIn reports whether the session's last adopt or stop is a stop of one of these kinds.
func (j *journal) endsIn(kinds ...protocol.StopKind) bool {
	for _, ev := range slices.Backward(j.events) {
		if ev.Stop != nil {
			return slices.Contains(kinds, ev.Stop.Kind)
		}
		if ev.Adopt != nil {
			return false
		}
	}
	return false
}

func (c *checker) dispatch() {
	for _, at := range slices.Sorted(maps.Keys(c.envelopes)) {
		r, env := c.h.Records[at], c.envelopes[at]
		s := c.standings[env.Call]
		if s == nil || s.at > at {
			c.add("I8", "call %s was dispatched as message %d before a turn recorded it", env.Call, r.Seq)
			continue
		}
		if env.Round >= len(s.stages) || s.stages[env.Round].sent < 0 || s.stages[env.Round].sent > at {
			c.add("I8", "round %d of call %s was dispatched as message %d before the log allowed it", env.Round, env.Call, r.Seq)
			continue
		}
		stage := s.stages[env.Round]
		switch {
		case !sameJSON(env.Args, stage.args) || env.Tool != s.Tool:
			c.add("I9", "call %s was dispatched as message %d with another tool or other arguments than its log's", env.Call, r.Seq)
		case env.Digest != s.Digest || env.Effect != s.effect(env.Round):
			c.add("I8", "call %s was dispatched as message %d with another verdict than its turn's: version %.12s and effect %s for %.12s and %s", env.Call, r.Seq, env.Digest, env.Effect, s.Digest, s.effect(env.Round))
		case (env.Confirmation != nil) != (stage.given != nil) || env.Confirmation != nil && (env.Confirmation.ID != stage.given.Confirmation || env.Confirmation.Confirmed != stage.given.Confirmed):
			c.add("I17", "call %s was dispatched as message %d with another word of people than its log's", env.Call, r.Seq)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.starts)) {
		for _, start := range c.starts[id] {
			s := c.standings[id]
			if s == nil || start.Round >= len(s.stages) || s.stages[start.Round].sent < 0 || s.stages[start.Round].sent >= start.At {
				c.add("I8", "the effect of round %d of call %s was started before the log allowed it", start.Round, id)
			} else if g := s.stages[start.Round]; g.gated && (g.given == nil || !g.given.Confirmed) {
				c.add("I17", "the effect of call %s was started without an approval", id)
			}
		}
	}
}

// first compares an answer with the result that was stored first.
func (c *checker) first(j *journal, ev entry, call *standing, a protocol.Answer) {
	at, ok := c.firsts[c.mailbox(call, a.Round)]
	if !ok || at > ev.at {
		if a.Seq != 0 {
			c.add("I11", "log %s: event %d answers call %s from message %d, which was not stored by then", j.name, ev.seq, a.Call, a.Seq)
		}
		return
	}
	r := c.h.Records[at]
	var stored protocol.Result
	if a.Seq != r.Seq {
		c.add("I11", "log %s: event %d answers call %s from message %d, the first result is %d", j.name, ev.seq, a.Call, a.Seq, r.Seq)
	} else if json.Unmarshal(r.Data, &stored) == nil && (stored.Outcome != a.Outcome || stored.Worker != a.Worker ||
		stored.Attempt != a.Attempt || a.Body == nil && !sameJSON(stored.Value, a.Value)) {
		c.add("I11", "log %s: event %d answers call %s otherwise than result %d", j.name, ev.seq, a.Call, r.Seq)
	}
}

// sameJSON compares what may have been spaced or escaped otherwise on its way.
func sameJSON(a, b json.RawMessage) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// allAnswered lets go the calls of sessions that ended without their consent.
func (c *checker) allAnswered() {
	for _, id := range slices.Sorted(maps.Keys(c.calls)) {
		call := c.standings[id]
		if call == nil {
			continue
		}
		_, stored := c.firsts[c.mailbox(call, call.round())]
		switch {
		case call.ended || call.journal.endsIn(protocol.StopQuarantined):
		case !call.journal.endsIn(protocol.StopDeleted):
			c.add("I10", "log %s: call %s has no answer", call.journal.name, id)
		case !stored && !call.waits():
			c.add("I10", "log %s: call %s was left alone when its session was deleted", call.journal.name, id)
		}
	}
}

func (c *checker) deleted() {
	for _, j := range c.journals() {
		var gone uint64
		for _, ev := range j.events {
			if gone != 0 {
				c.add("I26", "log %s: event %d follows its deletion by event %d", j.name, ev.seq, gone)
			}
			if ev.Stop != nil && ev.Stop.Kind == protocol.StopDeleted {
				gone = ev.seq
			}
		}
	}
}

// atRest takes drained for unrest: its guard must have woken another coordinator.
func (c *checker) atRest() {
	for _, j := range c.journals() {
		if !j.endsIn(protocol.StopDone, protocol.StopCancelled, protocol.StopQuarantined, protocol.StopDeleted) {
			c.add("I7", "session %s did not come to rest", j.name)
		}
	}
}
