package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// History is what a run left behind, to be judged.
type History struct {
	Names    natswire.Names
	Records  []Record // as World.Records has them
	Settled  []Settled
	Starts   []Started // the effect ledger
	Asked    []Asked   // the ledger of models
	Receipts []Receipted
	Parked   []natswire.Stored // what PARK holds in the end
	Timers   []natswire.Stored // what TIMERS holds in the end
	Heard    []string          // the subjects that somebody listens on in the end
	Left     map[string]int    // how many messages each stream and each subject of LOG holds in the end, as Holds counts them

	// Lost says that PARK or TIMERS were lost and no walk over the logs can have brought back yet what they held.
	Lost bool

	// ModelCalls is the limit of model calls in a run, Deliveries that of a call's message.
	ModelCalls, Deliveries int
	WallTime               time.Duration // of a run, without the time for which it was parked
}

// History is what the World holds of a run.
func (w *World) History() History {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := History{Names: w.names, Records: slices.Clone(w.records), Settled: slices.Clone(w.settled), Starts: slices.Clone(w.starts), Asked: slices.Clone(w.asked), Receipts: slices.Clone(w.receipts), Left: map[string]int{}}
	for _, sub := range w.subs {
		h.Heard = append(h.Heard, sub.subject)
	}
	for _, s := range w.streams {
		h.Left[s.name] = len(s.msgs) - len(s.orphans)
		switch {
		case s.wakes():
			h.Left[s.name] = s.unsettled()
		case s.name == w.names.ParkStream():
			h.Parked = s.read(">", 0, s.last)
		case s.name == w.names.Timers():
			h.Timers = s.read(">", 0, s.last)
		}
		if s.name == w.names.Log() {
			for subject, seqs := range s.bySubject {
				h.Left[subject] = len(seqs)
			}
		}
	}
	return h
}

// Violation is a broken invariant. ID is the number it has in the design's list.
type Violation struct {
	ID, Text string
}

func (v Violation) String() string { return v.ID + ": " + v.Text }

// Check tells what must never happen and did, whenever the run was cut: I1, I2, I3, I5, I6, I8 to I14, I21, I23 and I26 to I28.
func Check(h History) []Violation { return read(h).check() }

func (c *checker) check() []Violation {
	c.waits()
	c.chain()
	c.epochs()
	c.replays()
	c.foldedOnce()
	c.guarded()
	c.acks()
	c.dispatch()
	c.effects()
	c.limits()
	c.models()
	c.deleted()
	c.listed()
	c.wasted()
	c.overtime()
	c.speakers()
	return c.found
}

// CheckQuiet is Check and, for a run whose faults ended and that had living coordinators and time until nothing was due:
// every acked input is folded and answered (I4), every call has its answer (I10), nothing is held any more (I15), what was
// given up has its dead letter (I23), every session ended owned by nobody.
func CheckQuiet(h History) []Violation {
	c := read(h)
	c.check()
	c.allFolded()
	c.allHeard()
	c.allAnswered()
	c.receipted()
	c.nothingHeld()
	c.buried()
	c.atRest()
	return c.found
}

// checker holds a history by session.
type checker struct {
	h         History
	sessions  map[string]*journal // by app.session
	calls     map[string]*asked   // of all turns, by call id
	firsts    map[string]int      // place of the first message stored on each subject of RESULTS and WAKE
	letters   map[string]int      // place of the dead letter of a message, by stream and sequence
	stored    map[string]int      // place of a message, by stream and sequence
	starts    map[string][]Started
	envelopes map[int]protocol.Envelope // the calls that were published, by place
	readings  map[string]*reading       // by app.session
	standings map[string]*standing      // by call
	decisions map[string][]int          // places of the decisions on a confirmation
	found     []Violation
}

// journal is a session's log, with all that was purged.
type journal struct {
	name   string
	events []entry
}

type entry struct {
	protocol.Event
	seq uint64
	at  int // place in History.Records
}

// asked is a call with where its turn is.
type asked struct {
	protocol.Call
	journal *journal
	at      int // of the turn in History.Records
	event   int // of the turn in the journal
}

func read(h History) *checker {
	c := &checker{h: h, sessions: map[string]*journal{}, calls: map[string]*asked{}, firsts: map[string]int{}, letters: map[string]int{}, stored: map[string]int{}, starts: map[string][]Started{}, envelopes: map[int]protocol.Envelope{},
		readings: map[string]*reading{}, standings: map[string]*standing{}, decisions: map[string][]int{}}
	for _, s := range h.Starts {
		c.starts[s.Call] = append(c.starts[s.Call], s)
	}
	for at, r := range h.Records {
		c.stored[place(r.Stream, r.Seq)] = at
		switch r.Stream {
		case h.Names.Calls():
			var env protocol.Envelope
			if json.Unmarshal(r.Data, &env) == nil && env.Call != "" {
				c.envelopes[at] = env
			}
		case h.Names.Approval():
			if _, _, confirmation, _, ok := h.Names.ParseApproval(r.Subject); ok {
				c.decisions[confirmation] = append(c.decisions[confirmation], at)
			}
		case h.Names.Results(), h.Names.Wake():
			if _, ok := c.firsts[r.Subject]; !ok {
				c.firsts[r.Subject] = at
			}
		case h.Names.DeadLetters():
			var letter protocol.DeadLetter
			if json.Unmarshal(r.Data, &letter) == nil {
				if _, ok := c.letters[place(letter.Stream, letter.Seq)]; !ok {
					c.letters[place(letter.Stream, letter.Seq)] = at
				}
			}
		}
		app, session, ok := h.Names.ParseLog(r.Subject)
		if r.Stream != h.Names.Log() || !ok {
			continue
		}
		name := app + "." + session
		j := c.sessions[name]
		if j == nil {
			j = &journal{name: name}
			c.sessions[name] = j
		}
		ev, err := protocol.DecodeEvent(r.Data)
		if err != nil {
			c.add("I1", "log %s has an event %d that cannot be read: %v", name, r.Seq, err)
			continue
		}
		j.events = append(j.events, entry{ev, r.Seq, at})
		if ev.Turn == nil {
			continue
		}
		for _, call := range ev.Turn.Calls {
			if c.calls[call.ID] != nil {
				c.add("I9", "call id %s is in two turns, of %s and %s", call.ID, c.calls[call.ID].journal.name, name)
				continue
			}
			c.calls[call.ID] = &asked{call, j, at, len(j.events) - 1}
		}
	}
	return c
}

func (c *checker) hasLetter(stream string, seq uint64) bool {
	_, ok := c.letters[place(stream, seq)]
	return ok
}

// until is the log as it was when there were n records. A log that was never written is empty.
func (j *journal) until(n int) *journal {
	if j == nil {
		return &journal{}
	}
	cut := *j
	for len(cut.events) > 0 && cut.events[len(cut.events)-1].at >= n {
		cut.events = cut.events[:len(cut.events)-1]
	}
	return &cut
}

func place(stream string, seq uint64) string { return fmt.Sprint(stream, " ", seq) }

func (c *checker) add(id, format string, args ...any) {
	c.found = append(c.found, Violation{id, fmt.Sprintf(format, args...)})
}

func (c *checker) journals() []*journal {
	return slices.SortedFunc(maps.Values(c.sessions), func(a, b *journal) int { return cmp.Compare(a.name, b.name) })
}
