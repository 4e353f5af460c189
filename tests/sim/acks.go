package sim

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
)

// acks looks at each message that left a work queue: the log, or a mailbox, must have shown by then that nobody needs it.
func (c *checker) acks() {
	for _, s := range c.h.Settled {
		at, ok := c.stored[place(s.Stream, s.Seq)]
		if letter, has := c.letters[place(s.Stream, s.Seq)]; !ok || has && letter < s.At {
			continue
		}
		r := c.h.Records[at]
		switch s.Stream {
		case c.h.Names.Input():
			c.ackedInput(r, s)
		case c.h.Names.Timers():
			c.ackedGuard(r, s)
		case c.h.Names.Calls():
			c.ackedCall(r, s)
		case c.h.Names.Wake():
			c.ackedWake(r, s)
		case c.h.Names.Approval():
			c.ackedDecision(r, s)
		}
	}
}

func (c *checker) ackedInput(r Record, s Settled) {
	app, _, session, _ := c.h.Names.ParseInput(r.Subject)
	in, err := protocol.DecodeInput(r.Data)
	if err != nil {
		c.add("I6", "input message %d cannot be read and was acked without a dead letter", r.Seq)
		return
	}
	j := c.sessions[app+"."+session].until(s.At)
	guarded := j.guardedBy(r.Seq)
	switch {
	case j.endsIn(protocol.StopDeleted):
	case !j.folds(in.ID):
		c.add("I6", "input %s (message %d) to %s.%s was acked before it was folded", in.ID, r.Seq, app, session)
	case guarded != "" && !j.endsIn(protocol.StopDone, protocol.StopParked, protocol.StopCancelled, protocol.StopQuarantined):
		c.add("I6", "input %s (message %d), the guard of adoption %s of %s.%s, was acked before that stopped", in.ID, r.Seq, guarded, app, session)
	}
}

// ackedGuard wants a guard to be acked or removed only when its adoption has stopped for good or another event stands in
// its place.
func (c *checker) ackedGuard(r Record, s Settled) {
	t := strings.Split(strings.TrimPrefix(r.Subject, c.h.Names.Namespace()+"."), ".") // timer or due, app, session
	var g protocol.Guard
	if len(t) < 3 || json.Unmarshal(r.Data, &g) != nil {
		return
	}
	app, session := t[1], t[2]
	j := c.sessions[app+"."+session].until(s.At)
	adoption, tail := "", uint64(0)
	for _, ev := range j.events {
		tail = ev.seq
		if ev.Adopt != nil {
			adoption = ev.Adopt.Adoption
		}
	}
	if g.Park {
		c.ackedTimer(app+"."+session, j, g, adoption, tail, s)
		return
	}
	switch {
	case adoption != g.Adoption && tail <= g.Expected:
		c.add("I6", "the guard of adoption %s of %s.%s went before the log showed what became of it", g.Adoption, app, session)
	case adoption == g.Adoption && !j.endsIn(protocol.StopDone, protocol.StopParked, protocol.StopCancelled, protocol.StopQuarantined, protocol.StopDeleted):
		c.add("I6", "the guard of adoption %s of %s.%s went before the adoption stopped", g.Adoption, app, session)
	}
}

// ackedTimer wants the timer of a parked session to go only when another event stands in its place, or another timer.
func (c *checker) ackedTimer(name string, j *journal, g protocol.Guard, adoption string, tail uint64, s Settled) {
	if adoption != g.Adoption || tail < g.Expected || j.endsIn(protocol.StopDeleted, protocol.StopQuarantined) {
		if adoption != g.Adoption && tail <= g.Expected {
			c.add("I6", "the timer of adoption %s of %s went before the log went on", g.Adoption, name)
		}
		return
	}
	armed := 0 // timers of this adoption that are left
	for _, r := range c.h.Records[:s.At] {
		var o protocol.Guard
		if r.Stream == c.h.Names.Timers() && json.Unmarshal(r.Data, &o) == nil && o.Park && o.Adoption == g.Adoption && strings.Contains(r.Subject, ".timer.") {
			armed++
		}
	}
	if armed < 2 {
		c.add("I16", "the timer of adoption %s of %s went while the session was parked", g.Adoption, name)
	}
}

// ackedCall wants a call to leave its queue only when it has a result or a claim, when its time is over, or when a copy of
// it stays.
func (c *checker) ackedCall(r Record, s Settled) {
	env, err := protocol.DecodeEnvelope(r.Data)
	if err != nil {
		c.add("I6", "call message %d cannot be read and was acked without a dead letter", r.Seq)
		return
	}
	before := func(subject string) bool {
		at, ok := c.firsts[subject]
		return ok && at < s.At
	}
	now := s.Time.UnixMilli()
	mailbox := c.h.Names.ResultSubject(env.Tool, env.Session, env.Call, env.Round)
	if env.AnswersTo == protocol.MailboxWake {
		mailbox = c.h.Names.WakeSubject(env.App, env.Tool, env.Session, env.Call, env.Round)
	}
	if before(mailbox) || before(c.h.Names.ClaimSubject(env.Tool, env.Call, env.Round)) ||
		env.StartBy != 0 && now >= env.StartBy || env.Deadline != 0 && now >= env.Deadline || c.copies(env.Call, env.Round, s.At) > 0 {
		return
	}
	c.add("I6", "call %s (message %d) was acked before it had a result", env.Call, r.Seq)
}

// copies is how many messages of a call the queue holds after what was settled before at and the one that is settled then.
func (c *checker) copies(call string, round, at int) int {
	n := 0
	for i, r := range c.h.Records[:at] {
		if env, ok := c.envelopes[i]; ok && env.Call == call && env.Round == round && r.Stream == c.h.Names.Calls() {
			n++
		}
	}
	for _, s := range c.h.Settled {
		if env := c.envelopes[c.stored[place(s.Stream, s.Seq)]]; s.Stream == c.h.Names.Calls() && s.At <= at && env.Call == call && env.Round == round {
			n--
		}
	}
	return n
}

// guarded wants a guard to be set before each adoption is appended.
func (c *checker) guarded() {
	guards := map[string]int{}
	for at, r := range c.h.Records {
		var g protocol.Guard
		if r.Stream == c.h.Names.Timers() && json.Unmarshal(r.Data, &g) == nil && !g.Park {
			if _, ok := guards[g.Adoption]; !ok {
				guards[g.Adoption] = at
			}
		}
	}
	for _, j := range c.journals() {
		for _, ev := range j.events {
			if ev.Adopt == nil {
				continue
			}
			if ev.Adopt.Guard != 0 && c.held(ev) {
				continue
			}
			if at, ok := guards[ev.Adopt.Adoption]; !ok || at > ev.at {
				c.add("I7", "log %s: adoption %s at %d was appended without a guard", j.name, ev.Adopt.Adoption, ev.seq)
			}
		}
	}
}

// guardedBy is the adoption that the log ends in, if an input is its guard; empty otherwise.
func (j *journal) guardedBy(input uint64) string {
	for _, ev := range slices.Backward(j.events) {
		if ev.Adopt != nil && ev.Adopt.Guard == input {
			return ev.Adopt.Adoption
		}
		if ev.Adopt != nil {
			break
		}
	}
	return ""
}

// held reports whether the input that an adoption names as its guard was folded with it, and is in INPUT at that time.
func (c *checker) held(ev entry) bool {
	stored, ok := c.stored[place(c.h.Names.Input(), ev.Adopt.Guard)]
	if !ok || stored > ev.at || !slices.ContainsFunc(ev.Inputs, func(in protocol.FoldedInput) bool { return in.Seq == ev.Adopt.Guard }) {
		return false
	}
	return !slices.ContainsFunc(c.h.Settled, func(s Settled) bool {
		return s.Stream == c.h.Names.Input() && s.Seq == ev.Adopt.Guard && s.At < ev.at
	})
}

// nothingHeld wants work queues to be empty, but for their sentinels, and deleted logs to be their last event.
func (c *checker) nothingHeld() {
	for _, stream := range []string{c.h.Names.Input(), c.h.Names.Timers(), c.h.Names.Calls(), c.h.Names.Wake(), c.h.Names.Approval()} {
		if n := c.h.Left[stream]; n > 0 {
			c.add("I15", "stream %s still holds %d messages", stream, n)
		}
	}
	for _, subject := range c.h.Heard {
		if strings.HasPrefix(subject, c.h.Names.Namespace()+".done.") {
			c.add("I15", "somebody still listens on %s", subject)
		}
	}
	for _, j := range c.journals() {
		if n := c.h.Left[c.h.Names.Namespace()+".log."+j.name]; j.endsIn(protocol.StopDeleted) && n != 1 {
			c.add("I26", "the log of deleted session %s holds %d messages, not 1", j.name, n)
		}
	}
}
