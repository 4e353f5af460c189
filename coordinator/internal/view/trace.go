package view

import (
	"strconv"
	"strings"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
)

// Names of a span's kinds, in OpenTelemetry's words for agents.
const (
	opAgent    = "invoke_agent"
	opGenerate = "generate_content"
	opTool     = "execute_tool"
	opConfirm  = "await_confirmation" // ours: a person is asked
	opResult   = "await_result"       // ours: a long-running tool's result comes later
)

// Span is one piece of work of a session, as the log and the stored results tell it. Times come from the clocks of the
// processes named, so that a child may seem to start before its parent.
type Span struct {
	Name     string    `json:"name"`    // "execute_tool word_count"
	Process  string    `json:"process"` // id of the coordinator or worker
	Start    time.Time `json:"start"`
	End      time.Time `json:"end,omitzero"`     // zero while it runs
	Role     string    `json:"role,omitempty"`   // dispatch: the coordinator's view of a call that a worker ran; wait: nobody runs anything
	Status   string    `json:"status"`           // ok, running, approved, denied, or the code or outcome that ended it
	Detail   string    `json:"detail,omitempty"` // why, for a person
	TraceID  string    `json:"trace_id,omitempty"`
	SpanID   string    `json:"span_id,omitempty"`
	Call     string    `json:"call,omitempty"`
	Attempt  int       `json:"attempt,omitempty"`  // the delivery that ran it
	Queue    int64     `json:"queue_ms,omitempty"` // from the round's dispatch to this attempt's start, earlier attempts included
	Tokens   int       `json:"tokens,omitempty"`
	Children []*Span   `json:"children,omitempty"`
}

// statuses of spans that are no code and no outcome.
const (
	statusOK      = "ok"
	statusRunning = "running"
	statusLost    = "lost" // its coordinator stopped answering and another took over

	statusApproved = "approved"
	statusDenied   = "denied"
	statusEdited   = "edited" // another question took its place
)

// MailKey names the mailbox of one round of a call.
func MailKey(call string, round int) string { return call + "." + strconv.Itoa(round) }

// Mail is a stored result and when the broker stored it.
type Mail struct {
	protocol.Result
	Time time.Time
}

// Trace projects a log and the session's stored results, by MailKey, into one root per adoption.
func Trace(app string, log []Entry, results map[string]Mail) []*Span {
	t := tracer{app: app, results: results, calls: map[string]*callSpan{}}
	for _, e := range log {
		t.fold(e)
	}
	t.unfolded()
	return t.roots
}

type tracer struct {
	app     string
	results map[string]Mail
	roots   []*Span
	root    *Span                // of the adoption that lasts
	calls   map[string]*callSpan // open calls
}

func (t *tracer) fold(e Entry) {
	ev := &e.Event
	if ev.Adopt != nil {
		t.adopt(e)
	}
	if t.root == nil && (ev.Turn != nil || ev.Stop != nil) {
		t.open("", e) // a log that was read from its middle
	}
	for i := range ev.Inputs {
		t.decision(&ev.Inputs[i])
	}
	for _, a := range ev.Answers {
		t.answer(a, millis(ev.At))
	}
	if ev.Turn != nil {
		t.turn(ev)
	}
	if ev.Stop != nil {
		t.stop(ev)
	}
}

func (t *tracer) adopt(e Entry) {
	a := e.Event.Adopt
	if t.root != nil {
		t.root.End, t.root.Status = millis(e.Event.At), statusLost
		t.root.Detail = "taken over by " + a.Coordinator
	}
	t.open(a.Coordinator, e)
	t.root.TraceID, t.root.SpanID = parseTrace(a.Trace)
}

func (t *tracer) open(process string, e Entry) {
	t.root = &Span{Name: opAgent + " " + t.app, Process: process, Start: millis(e.Event.At), Status: statusRunning}
	t.roots = append(t.roots, t.root)
}

func (t *tracer) turn(ev *protocol.Event) {
	turn := ev.Turn
	if (len(turn.Content) > 0 || turn.Model != "") && turn.By != protocol.SpeakerBeforeAgent && turn.By != protocol.SpeakerAfterAgent {
		s := &Span{Name: strings.TrimSpace(opGenerate + " " + turn.Model), Process: t.root.Process, Status: statusOK, Start: millis(ev.At), End: millis(ev.At)}
		if turn.Started > 0 && turn.Ended > 0 {
			s.Start, s.End = millis(turn.Started), millis(turn.Ended)
		}
		if turn.Usage != nil {
			s.Tokens = turn.Usage.Total
		}
		s.TraceID, s.SpanID = parseTrace(turn.Span)
		t.root.Children = append(t.root.Children, s)
		t.root.Start = earlier(t.root.Start, s.Start)
	}
	for _, c := range turn.Calls {
		s := &Span{Name: opTool + " " + c.Tool, Process: t.root.Process, Role: "dispatch", Call: c.ID, Start: millis(ev.At), Status: statusRunning}
		s.TraceID, s.SpanID = parseTrace(c.Span)
		t.root.Children = append(t.root.Children, s)
		if r := c.Recorded(); r != nil {
			s.Role = ""
			finish(s, *r, s.Start)
			continue
		}
		t.calls[c.ID] = newCallSpan(s, c.Confirmation)
	}
}

func (t *tracer) stop(ev *protocol.Event) {
	t.root.End, t.root.Status = millis(ev.At), statusOK
	if ev.Stop.Kind != protocol.StopDone {
		t.root.Status = string(ev.Stop.Kind)
	}
	if p := ev.Stop.Problem; p != nil {
		t.root.Status, t.root.Detail = string(p.Code), p.Message
	}
	t.root = nil
}

func statusOf(r protocol.Result) string {
	switch {
	case r.Code != "":
		return string(r.Code)
	case r.Outcome == protocol.OutcomeCompleted:
		return statusOK
	default:
		return string(r.Outcome)
	}
}

func detail(r protocol.Result) string {
	if r.Outcome == protocol.OutcomeCompleted {
		return ""
	}
	text, _ := object(r.Value)["error"].(string)
	return text
}

// parseTrace splits a traceparent: version, trace id, parent id, flags.
func parseTrace(traceparent string) (trace, span string) {
	p := strings.Split(traceparent, "-")
	if len(p) != 4 || len(p[1]) != 32 || len(p[2]) != 16 {
		return "", ""
	}
	return p[1], p[2]
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
