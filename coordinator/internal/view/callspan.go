package view

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
)

// callSpan is an open call's dispatch span and what it waits for.
type callSpan struct {
	*Span
	round int
	since time.Time              // when the round could begin
	wait  *Span                  // nil while nobody but a worker is waited for
	asks  *protocol.Confirmation // the question of wait; nil when it waits for a result
	agree map[string]bool        // approvers so far
}

func newCallSpan(s *Span, asks *protocol.Confirmation) *callSpan {
	c := &callSpan{Span: s, since: s.Start}
	if asks != nil {
		c.ask(opConfirm, asks, s.Start)
	}
	return c
}

// ask begins a wait: of opConfirm for a person, of opResult for a result, without a question.
func (c *callSpan) ask(op string, asks *protocol.Confirmation, at time.Time) {
	tool := strings.TrimPrefix(c.Name, opTool+" ")
	c.wait = &Span{Name: op + " " + tool, Process: c.Process, Role: "wait", Call: c.Call, Start: at, Status: statusRunning}
	c.asks, c.agree = asks, map[string]bool{}
	c.Children = append(c.Children, c.wait)
}

// resume ends the wait.
func (c *callSpan) resume(at time.Time, status, detail string) {
	if c.wait != nil {
		c.wait.End, c.wait.Status, c.wait.Detail = at, status, detail
		c.wait, c.asks, c.since = nil, nil, at
	}
}

// decision ends the wait of the call that it decides: one who denies is enough, or as many as are needed agree.
func (t *tracer) decision(in *protocol.FoldedInput) {
	if in.Kind != protocol.InputDecision || in.Refused != nil || in.Decision == nil {
		return
	}
	d, at := in.Decision, millis(in.Sent)
	for _, c := range t.calls {
		if c.asks == nil || c.asks.ID != d.Confirmation {
			continue
		}
		c.agree[in.Client] = true
		switch {
		case !d.Confirmed:
			c.resume(at, statusDenied, "by "+in.Client)
		case d.Asks != nil:
			c.resume(at, statusEdited, "by "+in.Client)
			c.ask(opConfirm, d.Asks, at)
		case len(c.agree) >= c.asks.Quorum():
			c.resume(at, statusApproved, "by "+listed(c.agree))
		}
	}
}

func listed(names map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(names)), ", ")
}

// answer ends a call's round, and with a last answer its span. The broker's time of the stored result is when the
// coordinator could know; without it, the time of the event that folded it.
func (t *tracer) answer(a protocol.Answer, folded time.Time) {
	c := t.calls[a.Call]
	if c == nil {
		return
	}
	if mail, ok := t.results[MailKey(a.Call, a.Round)]; ok {
		folded = mail.Time
	}
	c.take(a.Result, a.Round, a.Confirmation, folded)
	if !a.Outcome.Interim() {
		delete(t.calls, a.Call)
	}
}

func (c *callSpan) take(r protocol.Result, round int, asks *protocol.Confirmation, at time.Time) {
	c.resume(at, statusOf(r), "")
	c.round = round + 1
	if r.Outcome.Interim() {
		ran(c.Span, r, statusOf(r), c.since)
		op := opConfirm
		if r.Outcome == protocol.OutcomePending {
			op = opResult
		}
		c.ask(op, asks, at)
		return
	}
	c.End, c.Status, c.Detail = at, statusOf(r), detail(r)
	ran(c.Span, r, c.Status, c.since)
}

// finish ends the span of a call that nobody runs.
func finish(s *Span, r protocol.Result, end time.Time) {
	s.End, s.Status, s.Detail = end, statusOf(r), detail(r)
}

// ran adds the execution that a result tells of, which could begin at since.
func ran(s *Span, r protocol.Result, status string, since time.Time) {
	if r.Started == 0 || r.Ended == 0 {
		return
	}
	run := &Span{
		Name: s.Name, Process: r.Worker, Call: s.Call, Attempt: r.Attempt, Start: millis(r.Started), End: millis(r.Ended),
		Status: status, Queue: max(0, r.Started-since.UnixMilli()),
	}
	run.TraceID, run.SpanID = parseTrace(r.Span)
	s.Children = append(s.Children, run)
}

// unfolded shows calls that have a stored result which no event carries yet.
func (t *tracer) unfolded() {
	for id, c := range t.calls {
		if mail, ok := t.results[MailKey(id, c.round)]; ok {
			c.take(mail.Result, c.round, nil, mail.Time)
		}
	}
}
