package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// CheckAtRest judges the sessions that are at rest at this moment, whose last stop has been carried out: PARK lists of each
// exactly what its log says that it waits for, and nobody listens for it any more (I15).
func CheckAtRest(h History) []Violation {
	c := read(h)
	c.waits()
	c.found = nil
	c.listed()
	return c.found
}

// concluded reports whether a session's last event is a stop whose guard is gone: whoever removes it has done the rest.
func (c *checker) concluded(j *journal) bool {
	if len(j.events) == 0 || j.events[len(j.events)-1].Stop == nil || j.endsIn(protocol.StopDrained) {
		return false
	}
	adoption, guard := "", uint64(0)
	for _, ev := range j.events {
		if ev.Adopt != nil {
			adoption, guard = ev.Adopt.Adoption, ev.Adopt.Guard
		}
	}
	if guard != 0 && !slices.ContainsFunc(c.h.Settled, func(s Settled) bool { return s.Stream == c.h.Names.Input() && s.Seq == guard }) {
		return false
	}
	return !slices.ContainsFunc(c.h.Timers, func(m natswire.Stored) bool {
		var g protocol.Guard
		return json.Unmarshal(m.Data, &g) == nil && g.Adoption == adoption && !g.Park
	})
}

// listed compares PARK with the logs of the sessions whose last stop is carried out.
func (c *checker) listed() {
	if c.h.Lost {
		return
	}
	held := map[string]protocol.Parked{}
	for _, m := range c.h.Parked {
		var p protocol.Parked
		if !natswire.KeyDeleted(m.Header) && json.Unmarshal(m.Data, &p) == nil {
			held[m.Subject] = p
		}
	}
	for _, j := range c.journals() {
		if !c.concluded(j) {
			continue
		}
		app, session, _ := strings.Cut(j.name, ".")
		parked := j.endsIn(protocol.StopParked)
		closed := j.endsIn(protocol.StopDeleted, protocol.StopQuarantined)
		for _, s := range c.readings[j.name].calls {
			subject := c.h.Names.ParkSubject(app, session, s.ID)
			p, ok := held[subject]
			delete(held, subject)
			wants := !s.ended && !closed && (s.told || parked)
			switch {
			case wants && !ok:
				c.add("I16", "session %s is at rest and PARK does not list call %s, which waits", j.name, s.ID)
			case !wants && ok:
				c.add("I16", "session %s is at rest and PARK lists call %s, which does not wait", j.name, s.ID)
			case ok:
				c.matches(s, p)
			}
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(held)) {
		if p := held[subject]; c.sessions[p.App+"."+p.Session] == nil {
			c.add("I16", "PARK lists %s, of no session", subject)
		}
	}
}

func (c *checker) matches(s *standing, p protocol.Parked) {
	id := func(q *protocol.Confirmation) string {
		if q == nil {
			return ""
		}
		return q.ID
	}
	if p.Round != s.round() || id(p.Confirmation) != id(s.asks) || p.Until != s.until() || !sameJSON(p.Args, s.now().args) || !slices.Equal(p.Approvers, s.agreed) {
		c.add("I16", "PARK lists call %s of %s otherwise than its log: round %d until %d, question %q, agreed %v for round %d until %d, question %q, agreed %v", s.ID, s.journal.name,
			p.Round, p.Until, id(p.Confirmation), p.Approvers, s.round(), s.until(), id(s.asks), s.agreed)
	}
}

// receipted wants each decision to have had its receipt, of the right kind.
func (c *checker) receipted() {
	sent := map[uint64][]protocol.Receipt{}
	for _, r := range c.h.Receipts {
		sent[r.Receipt.Seq] = append(sent[r.Receipt.Seq], r.Receipt)
	}
	for _, rec := range c.h.Records {
		app, session, confirmation, _, ok := c.h.Names.ParseApproval(rec.Subject)
		if rec.Stream != c.h.Names.Approval() || !ok {
			continue
		}
		j := c.sessions[app+"."+session]
		folded := j != nil && j.foldsSeq(rec.Seq)
		if len(sent[rec.Seq]) == 0 {
			c.add("I18", "decision %d on %s has no receipt", rec.Seq, rec.Subject)
		}
		for _, r := range sent[rec.Seq] {
			_, err := protocol.DecodeDecision(rec.Data, confirmation)
			wrong := folded != (r.Code == "")
			switch r.Code {
			case protocol.CodeSessionClosed: // an erased log does not say any more what it held
				wrong = !j.endsIn(protocol.StopDeleted, protocol.StopQuarantined)
			case protocol.CodeUnknownConfirm:
				wrong = wrong || j != nil && c.readings[j.name].questions[confirmation] != nil
			case protocol.CodeExpired:
				s := c.questioned(j, confirmation)
				wrong = wrong || s == nil
			case protocol.CodeDecided, protocol.CodeConflict, protocol.CodeForbidden, protocol.CodeDigestMismatch, protocol.CodeCancelled:
				wrong = wrong || c.questioned(j, confirmation) == nil
			}
			if (err != nil) != (r.Code == protocol.CodeBadMessage) && r.Code != protocol.CodeTooLarge {
				wrong = true
			}
			if wrong {
				c.add("I18", "decision %d on %s, folded: %t, got a receipt with code %q", rec.Seq, rec.Subject, folded, r.Code)
			}
		}
	}
}

func (c *checker) questioned(j *journal, confirmation string) *standing {
	if j == nil {
		return nil
	}
	return c.readings[j.name].questions[confirmation]
}

// ackedWake wants the log to hold an answer, or to know that nobody waits for it, before its delivery is acked.
func (c *checker) ackedWake(r Record, s Settled) {
	app, tool, session, call, round, ok := c.h.Names.ParseWake(r.Subject)
	if !ok {
		return
	}
	j := c.sessions[app+"."+session].until(s.At)
	st := c.standings[call]
	if j.endsIn(protocol.StopDeleted, protocol.StopQuarantined) || st != nil && st.Tool != tool {
		return
	}
	for _, ev := range j.events {
		for _, a := range ev.Answers {
			if a.Call == call && (a.Round >= round || !a.Outcome.Interim()) {
				return
			}
		}
	}
	c.add("I6", "answer %d of round %d of call %s was acked before %s.%s held it", r.Seq, round, call, app, session)
}

// ackedDecision wants the log to hold a decision, or its sender to be told why not, before its delivery is acked.
func (c *checker) ackedDecision(r Record, s Settled) {
	app, session, _, _, _ := c.h.Names.ParseApproval(r.Subject)
	if j := c.sessions[app+"."+session]; j != nil && j.until(s.At).foldsSeq(r.Seq) {
		return
	}
	if !slices.ContainsFunc(c.h.Receipts, func(x Receipted) bool { return x.Receipt.Seq == r.Seq && x.Receipt.Code != "" && x.At <= s.At }) {
		c.add("I6", "decision %d on %s was acked before it was folded or refused", r.Seq, r.Subject)
	}
}

// wasted wants no answer of a round that a call really had to become a dead letter.
func (c *checker) wasted() {
	for _, rec := range c.h.Records {
		app, tool, session, call, round, ok := c.h.Names.ParseWake(rec.Subject)
		s := c.standings[call]
		if rec.Stream != c.h.Names.Wake() || !ok || !c.hasLetter(rec.Stream, rec.Seq) {
			continue
		}
		if s != nil && s.Tool == tool && s.journal.name == app+"."+session && round < len(s.stages) {
			c.add("I16", "answer %d of round %d of call %s of %s.%s is a dead letter", rec.Seq, round, call, app, session)
		}
	}
}
