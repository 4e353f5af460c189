package sim

import (
	"slices"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
)

// allHeard wants each accepted message, and each result that a model was told to wait for, to be followed by a turn whose request holds it, or by the end of its run for
// another reason.
func (c *checker) allHeard() {
	for _, j := range c.journals() {
		for i, ev := range j.events {
			for _, in := range ev.Inputs {
				if in.Kind == protocol.InputMessage && in.Refused == nil && !j.hears(i) {
					c.add("I4", "log %s: input %s was folded by event %d and no turn answers it", j.name, in.ID, ev.seq)
				}
			}
		}
		for _, s := range c.readings[j.name].news {
			if i := slices.IndexFunc(j.events, func(ev entry) bool { return ev.seq == s.by.seq }); !j.hears(i) && !j.endsIn(protocol.StopQuarantined) {
				c.add("I4", "log %s: the result of call %s came with event %d and the model was not told", j.name, s.ID, s.by.seq)
			}
		}
	}
}

// hears reports whether what event i says was answered.
func (j *journal) hears(i int) bool {
	return slices.ContainsFunc(j.events[i:], func(ev entry) bool {
		return ev.Turn != nil && ev.Turn.RequestSeq >= j.events[i].seq || ev.Stop != nil && ev.Stop.Problem != nil ||
			ev.Stop != nil && (ev.Stop.Kind == protocol.StopDeleted || ev.Stop.Kind == protocol.StopCancelled)
	})
}

// buried wants a dead letter for each session that was given up.
func (c *checker) buried() {
	for _, j := range c.journals() {
		for _, ev := range j.events {
			if ev.Stop != nil && ev.Stop.Kind == protocol.StopQuarantined && !c.letterOf(j, ev.at) {
				c.add("I23", "session %s was quarantined by event %d and has no dead letter", j.name, ev.seq)
			}
		}
	}
}

func (c *checker) letterOf(j *journal, after int) bool {
	return slices.ContainsFunc(c.h.Records[after:], func(r Record) bool {
		_, session, _ := strings.Cut(j.name, ".")
		return r.Subject == c.h.Names.DeadLetterSubject("session", session)
	})
}
