package sim

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// Settled is a message of a work queue that left it by an ack, a term or a purge.
type Settled struct {
	Stream string
	Seq    uint64
	At     int // how many Records there were
	Time   time.Time
}

// Started is an entry of the effect ledger, which is outside the system and never forgets: a tool began its effect.
type Started struct {
	Call, Tool string
	Round      int // of the call
	Args       json.RawMessage
	At         int // how many Records there were
}

// Receipted is a receipt that a coordinator sent; core messages may be lost on their way.
type Receipted struct {
	Subject string
	Receipt protocol.Receipt
	At      int // how many Records there were
}

// Asked is an entry of the ledger of models: a model answered for a session, with an answer that no other is like.
type Asked struct {
	Session, Answer string
	Wrong           string // what was wrong with the request; empty is nothing
}

// Start notes in the effect ledger that a tool begins its effect now. Its process must be alive, as for Step; at is filled in.
func (b *Bus) Start(s Started) error {
	if err := b.Step(); err != nil {
		return err
	}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	s.At = len(b.w.records)
	b.w.starts = append(b.w.starts, s)
	b.w.log("%s starts the effect of %s", b.node, s.Call)
	return nil
}

// Ask notes in the ledger of models what a model answers.
func (b *Bus) Ask(a Asked) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.w.asked = append(b.w.asked, a)
	b.w.log("%s is answered %s", b.node, a.Answer)
}

// receipt notes a receipt among what a process sends.
func (b *Bus) receipt(m natswire.Msg) {
	var r protocol.Receipt
	if !match(b.w.names.ReceiptSubject("*", "*", "*"), m.Subject) || json.Unmarshal(m.Data, &r) != nil {
		return
	}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.w.receipts = append(b.w.receipts, Receipted{m.Subject, r, len(b.w.records)})
}

// leaves notes that a message leaves a work queue, or is settled in a stream that wakes sessions and keeps it. The caller
// holds mu.
func (s *stream) leaves(seq uint64) {
	if _, held := s.msgs[seq]; held && (s.workQueue || s.wakes()) {
		s.w.settled = append(s.w.settled, Settled{Stream: s.name, Seq: seq, At: len(s.w.records), Time: time.Now()})
	}
}

func (s *stream) wakes() bool { return s.name == s.w.names.Wake() || s.name == s.w.names.Approval() }

// unsettled is how many messages the consumers of a stream have or are to get.
func (s *stream) unsettled() int {
	n := 0
	for _, c := range s.consumers {
		st := c.state()
		n += st.AckPending + int(st.Pending)
	}
	return n
}

// Unsettled is how many messages of a stream its consumers have or are to get.
func (w *World) Unsettled(stream string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := w.stream(stream)
	if err != nil {
		return 0
	}
	return s.unsettled()
}

// RecordsFrom is Records without the first n.
func (w *World) RecordsFrom(n int) []Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.records[min(n, len(w.records)):])
}

// Holds is how many messages a stream has now. A call that was delivered too often is left out: when the broker's word of
// that is lost, only its age takes it away.
func (w *World) Holds(stream string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := w.stream(stream)
	if err != nil {
		return 0
	}
	return len(s.msgs) - len(s.orphans)
}
