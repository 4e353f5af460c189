package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// The broker's limits.
const (
	MaxPayload   = 1 << 20         // of one message, in bytes
	dedupeWindow = 2 * time.Minute // how long a stream remembers message ids
	day          = 24 * time.Hour
)

// stream is one stream's settings and messages.
type stream struct {
	w         *World
	name      string
	subjects  []string
	workQueue bool
	perSubj   int  // most messages of one subject; 0 is unlimited
	mailbox   bool // a full subject refuses; otherwise it drops its oldest
	keeps     bool // single messages cannot be removed
	ttl       bool // messages may have a time to live
	schedules bool
	maxAge    time.Duration
	ageing    bool                        // age is armed
	republish func(subject string) string // core subject for a stored one; empty is none
	maxMsgs   int                         // the stream is full; 0 is unlimited
	stalled   bool                        // its consumers hand nothing out

	last      uint64
	first     uint64 // no message is older
	msgs      map[uint64]natswire.Stored
	bySubject map[string][]uint64
	ids       map[string]seen
	consumers map[string]*consumer
	orphans   map[uint64]bool // delivered too often: they stay until somebody removes them or they are too old
}

type seen struct {
	seq uint64
	at  time.Time
}

// endless is more events than any history has whose fabric does not run away: the log is full then, and nothing comes to rest.
const endless = 1000

func newStreams(w *World) []*stream {
	n, ns := w.names, w.names.Namespace()
	streams := []*stream{
		{name: n.Input(), subjects: []string{n.InputSubject("*", "*", "*")}, workQueue: true},
		{name: n.Log(), subjects: []string{n.LogSubject("*", "*")}, keeps: true, maxMsgs: endless, republish: func(s string) string {
			app, session, _ := n.ParseLog(s)
			return n.LiveSubject(app, session)
		}},
		{name: n.Calls(), subjects: []string{n.CallSubject("*")}, workQueue: true, perSubj: natswire.DefaultQueueLimit, mailbox: true, ttl: true, maxAge: 7 * day},
		{name: n.Results(), subjects: []string{ns + ".result.*.*.*.*", ns + ".claim.*.*.*"}, perSubj: 1, mailbox: true, maxAge: 30 * day,
			republish: func(s string) string {
				_, session, _, _, ok := n.ParseResult(s)
				if !ok {
					return ""
				}
				return n.DoneSubject(session)
			}},
		{name: n.Wake(), subjects: []string{n.WakeFilter("*")}, perSubj: 1, mailbox: true, maxAge: 30 * day,
			republish: func(s string) string {
				_, _, session, _, _, ok := n.ParseWake(s)
				if !ok {
					return ""
				}
				return n.DoneSubject(session)
			}},
		{name: n.Approval(), subjects: []string{n.ApprovalFilter("*")}, maxAge: 30 * day},
		{name: n.ParkStream(), subjects: []string{"$KV." + n.Park() + ".>"}, perSubj: 1, keeps: true, ttl: true},
		{name: n.Timers(), subjects: []string{n.TimerSubject("*", "*", "*"), n.DueSubject("*", "*")}, workQueue: true, schedules: true},
		{name: n.Registry(), subjects: []string{n.RegistrationSubject("*", "*")}, perSubj: 1, ttl: true},
		{name: n.DeadLetters(), maxAge: 30 * day, subjects: []string{ns + ".dlq.>",
			n.AdvisorySubject(natswire.AdvisoryMaxDeliveries, "*"), n.AdvisorySubject(natswire.AdvisoryTerminated, "*")}},
		{name: n.ToolsStream(), subjects: []string{"$KV." + n.Tools() + ".>"}, perSubj: 1, keeps: true},
	}
	for _, s := range streams {
		s.w, s.first = w, 1
		s.msgs, s.bySubject = map[uint64]natswire.Stored{}, map[string][]uint64{}
		s.ids, s.consumers = map[string]seen{}, map[string]*consumer{}
		s.orphans = map[uint64]bool{}
	}
	return streams
}

func (w *World) stream(name string) (*stream, error) {
	for _, s := range w.streams {
		if s.name == name {
			return s, nil
		}
	}
	return nil, protocol.Errorf(protocol.CodeNotFound, "no stream %s", name)
}

// owner is the stream that stores a subject; nil for a core subject.
func (w *World) owner(subject string) *stream {
	for _, s := range w.streams {
		if slices.ContainsFunc(s.subjects, func(p string) bool { return match(p, subject) }) {
			return s
		}
	}
	return nil
}

// publish is what the broker does with a message for a stream.
func (w *World) publish(m natswire.Msg) (natswire.Ack, error) {
	w.route(m) // also what is refused below (N17)
	s := w.owner(m.Subject)
	if s == nil {
		return natswire.Ack{}, protocol.Errorf(protocol.CodeUnreachable, "no stream stores %s", m.Subject)
	}
	if w.hit(w.faults.Forget) {
		clear(s.ids)
	}
	if m.TTL != 0 && (!s.ttl || m.TTL < time.Second) {
		return natswire.Ack{}, protocol.Errorf(protocol.CodeInternal, "stream %s refuses a time to live of %s", s.name, m.TTL)
	}
	if scheduled := !m.At.IsZero(); scheduled && (!s.schedules || w.owner(m.Target) != s || m.Target == m.Subject) {
		return natswire.Ack{}, protocol.Errorf(protocol.CodeInternal, "stream %s cannot schedule for %s", s.name, m.Target)
	}
	old, known := s.ids[m.ID]
	known = known && m.ID != "" && time.Since(old.at) < dedupeWindow
	duplicate := natswire.Ack{Seq: old.seq, Duplicate: true}
	if known && w.hit(0.5) && w.faults != (Faults{}) { // R3 looks at ids first, R1 at the expectation (N5)
		return duplicate, nil
	}
	has := s.bySubject[m.Subject]
	if m.Expect != nil {
		var tail uint64 // of what is there: a purge of all resets the fence (N9)
		if len(has) > 0 {
			tail = has[len(has)-1]
		}
		if tail != *m.Expect {
			return natswire.Ack{}, protocol.Errorf(protocol.CodeFenced, "%s is at sequence %d, not %d", m.Subject, tail, *m.Expect)
		}
	}
	if known {
		return duplicate, nil
	}
	if s.mailbox && len(has) >= s.perSubj {
		if s.perSubj == 1 {
			return natswire.Ack{}, protocol.Errorf(protocol.CodeAnswered, "%s has its message", m.Subject)
		}
		return natswire.Ack{}, protocol.Errorf(protocol.CodeStorageFull, "%s holds %d messages", m.Subject, len(has))
	}
	if s.maxMsgs > 0 && len(s.msgs) >= s.maxMsgs {
		return natswire.Ack{}, protocol.Errorf(protocol.CodeStorageFull, "stream %s is full", s.name)
	}
	return natswire.Ack{Seq: s.store(m)}, nil
}

// store appends a message that was accepted, arms what belongs to it and offers it to the consumers.
func (s *stream) store(m natswire.Msg) uint64 {
	w, prev := s.w, uint64(0)
	if has := s.bySubject[m.Subject]; len(has) > 0 {
		prev = has[len(has)-1]
	}
	if !m.At.IsZero() { // one timer per subject
		for _, seq := range slices.Clone(s.bySubject[m.Subject]) {
			s.remove(seq)
		}
	}
	s.last++
	seq := s.last
	msg := natswire.Stored{Subject: m.Subject, Header: maps.Clone(m.Header), Data: m.Data, Seq: seq, Time: time.Now()}
	s.msgs[seq] = msg
	s.bySubject[m.Subject] = append(s.bySubject[m.Subject], seq)
	if has := s.bySubject[m.Subject]; !s.mailbox && s.perSubj > 0 && len(has) > s.perSubj {
		s.remove(has[0])
	}
	if m.ID != "" {
		s.ids[m.ID] = seen{seq, msg.Time}
	}
	if s.name != w.names.Registry() {
		w.records = append(w.records, Record{Stream: s.name, Stored: msg})
	}
	key := fmt.Sprintf("~%s %d", s.name, seq)
	if m.TTL > 0 {
		w.submit(m.TTL, key+" ages", func() { s.remove(seq); s.offer() })
	}
	if s.maxAge > 0 && !s.ageing {
		s.ageing = true
		s.age()
	}
	if !m.At.IsZero() {
		late := time.Duration(0)
		if w.rng != nil {
			late = time.Duration(w.rng.IntN(250)) * time.Millisecond
		}
		w.submit(max(0, time.Until(m.At))+late, key+" fires", func() { s.fire(seq, m.Target) })
	}
	if s.republish != nil {
		if to := s.republish(m.Subject); to != "" {
			h := natswire.Header{}
			maps.Copy(h, m.Header)
			maps.Copy(h, natswire.Header{"Nats-Stream": s.name, "Nats-Subject": m.Subject, "Nats-Sequence": fmt.Sprint(seq), "Nats-Last-Sequence": fmt.Sprint(prev),
				"Nats-Time-Stamp": s.msgs[seq].Time.UTC().Format(time.RFC3339Nano)})
			w.route(natswire.Msg{Subject: to, Header: h, Data: m.Data})
		}
	}
	s.offer()
	return seq
}

// age removes what is too old and comes back when the next message will be.
func (s *stream) age() {
	defer s.offer()
	for ; s.first <= s.last; s.remove(s.first) {
		if left := s.maxAge - time.Since(s.msgs[s.first].Time); left > 0 {
			s.w.submit(left, "~"+s.name+" ages", s.age)
			return
		}
	}
	s.ageing = false
}

// fire turns a timer that is still armed into a message on its target.
func (s *stream) fire(seq uint64, target string) {
	m, armed := s.msgs[seq]
	if !armed {
		return
	}
	s.remove(seq)
	h := natswire.Header{"Nats-Scheduler": m.Subject, "Nats-Schedule-Next": "purge"}
	maps.Copy(h, m.Header)
	s.w.log("broker fires %s on %s as %d", m.Subject, target, s.last+1)
	s.store(natswire.Msg{Subject: target, Header: h, Data: m.Data})
}

func (s *stream) offer() {
	for _, name := range slices.Sorted(maps.Keys(s.consumers)) {
		s.consumers[name].pump()
	}
}

func (s *stream) remove(seq uint64) {
	m, ok := s.msgs[seq]
	if !ok {
		return
	}
	delete(s.msgs, seq)
	delete(s.orphans, seq)
	has := s.bySubject[m.Subject]
	i, _ := slices.BinarySearch(has, seq)
	if has = slices.Delete(has, i, i+1); len(has) == 0 {
		delete(s.bySubject, m.Subject)
	} else {
		s.bySubject[m.Subject] = has
	}
	for s.first <= s.last && s.msgs[s.first].Seq == 0 {
		s.first++
	}
	for _, c := range s.consumers {
		delete(c.flights, seq)
	}
}

func (s *stream) purge(filter string, keep int) {
	subjects := []string{filter}
	if strings.ContainsAny(filter, "*>") {
		subjects = slices.Sorted(maps.Keys(s.bySubject))
	}
	for _, subject := range subjects {
		if match(filter, subject) {
			has := slices.Clone(s.bySubject[subject])
			for _, seq := range has[:max(0, len(has)-keep)] {
				s.leaves(seq)
				s.remove(seq)
			}
		}
	}
	s.offer()
}

// read lists messages of a subject in stream order between two sequences.
func (s *stream) read(filter string, from, to uint64) []natswire.Stored {
	var out []natswire.Stored
	if !strings.ContainsAny(filter, "*>") {
		for _, seq := range s.bySubject[filter] {
			if seq >= from && seq <= to {
				out = append(out, s.copyOf(seq))
			}
		}
		return out
	}
	for seq := max(from, s.first); seq <= to; seq++ {
		if m, ok := s.msgs[seq]; ok && match(filter, m.Subject) {
			out = append(out, s.copyOf(seq))
		}
	}
	return out
}

// copyOf is a message for a reader, who owns what it gets.
func (s *stream) copyOf(seq uint64) natswire.Stored {
	m := s.msgs[seq]
	m.Header, m.Data = maps.Clone(m.Header), slices.Clone(m.Data)
	return m
}

// match reports whether a subject fits a filter with the broker's wildcards.
func match(filter, subject string) bool {
	for filter != subject {
		f, fs, more := strings.Cut(filter, ".")
		t, ts, tmore := strings.Cut(subject, ".")
		if f == ">" {
			return t != ""
		}
		if f != "*" && f != t || more != tmore {
			return false
		}
		if !more {
			return true
		}
		filter, subject = fs, ts
	}
	return true
}
