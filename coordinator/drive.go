package coordinator

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/telemetry"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// drive is what a loop holds while it drives its session: one adoption. All of it is lost with the process and found again
// in the log.
type drive struct {
	ctx       context.Context // of everything the adoption started; carries the root span
	cancel    context.CancelFunc
	root      trace.Span
	adopted   uint64             // sequence of the adoption: turns from there on were appended here
	guard     *natswire.Delivery // of the input that guards the adoption; nil is a timer
	deaf      func()             // ends the subscription to results; nil before the first call
	calls     map[string]*watch
	held      bool                            // taken for what callbacks were to see first
	reviews   map[string]*review              // calls and inputs that callbacks are looking at
	prepared  bool                            // callbacks and toolsets were asked for the turn that comes
	sets      map[setPlace][]tool.Listed      // of toolsets; those that failed are missing
	warned    map[string]bool                 // of what
	tools     map[string]map[string]tool.Tool // that an agent lists, by its name and theirs; nil before they were asked for
	ran       bool                            // there was a run
	overdue   map[string]bool                 // calls whose wait is over and is looked at once more
	kinds     map[string]*telemetry.Kind      // of the spans of calls, by tool
	speaker   string                          // the agent that asking and askKind are of
	askKind   *telemetry.Kind                 // of the spans of model requests
	spans     map[string]callSpan             // of recorded calls that are about to be dispatched
	nextLook  time.Time                       // local time of the next look at the mailboxes; zero is none
	asking    context.Context                 // of model requests; nil before the first
	enough    context.CancelFunc              // ends asking
	thinking  context.CancelFunc
	modelTurn int    // model requests of this adoption
	pursued   uint64 // sequence of the log up to which everything it allows was begun
	alarm     natswire.Alarm
	problem   *protocol.Problem // why the run failed; nil for one that did not, or has not stopped
}

// watch is one open call that this process waits for.
type watch struct {
	call         protocol.Call
	round        int
	stream       string // of the mailbox
	mailbox      string // subject of its answer
	startBy, end int64  // broker's time, Unix milliseconds
	claimCheck   int64  // when to look next at whether a worker began it; only for at_most_once
	seq          uint64
	sent         bool     // certainly stored in CALLS, at seq if that is known
	startChecked bool     // whether a worker took it in time is found out, or was
	taken        bool     // one did, for all that is known: from here on its deadline decides
	ending       bool     // its end is being decided
	span         callSpan // of the call as seen from here
}

// begin prepares for an adoption, before its append. A run that goes on, after a park too, stays in its trace; the first
// input's sender is the parent of the trace of a new one.
func (d *drive) begin(ctx context.Context, s *session, arrivals []arrival) {
	parents := make([]string, 0, 1+len(arrivals))
	if s.state.Run != nil {
		parents = append(parents, s.state.Run.Trace)
	}
	for _, a := range arrivals {
		parents = append(parents, a.input.Trace)
	}
	for _, parent := range parents {
		if sc, ok := telemetry.ParseTraceparent(parent); ok {
			ctx = trace.ContextWithRemoteSpanContext(ctx, sc)
			break
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	ctx, root := s.c.tracer.Start(ctx, telemetry.SpanInvokeAgent+s.key.app, trace.WithAttributes(
		telemetry.OperationName.String(telemetry.OperationInvokeAgent),
		telemetry.AgentName.String(s.key.app),
		telemetry.ConversationID.String(s.key.session)))
	*d = drive{ctx: ctx, cancel: cancel, root: root, calls: map[string]*watch{}, alarm: natswire.Alarm{Clock: s.c.cfg.Clock}}
}

func (d *drive) trace() string {
	if d.root == nil {
		return ""
	}
	return telemetry.FormatTraceparent(d.root.SpanContext())
}

// finish marks the root span with how the run ended.
func (d *drive) finish(s fold.State) {
	if d.root != nil && d.root.IsRecording() {
		d.root.SetAttributes(telemetry.TurnOutcome.String(string(s.Stopped)))
		if d.problem != nil {
			d.root.SetAttributes(telemetry.ErrorType.String(string(d.problem.Code)))
			d.root.SetStatus(codes.Error, string(d.problem.Code))
		}
	}
}

// end lets go of everything. It may be called again.
func (d *drive) end() {
	if d.cancel == nil {
		return
	}
	d.cancel()
	if d.enough != nil {
		d.enough()
	}
	d.alarm.Stop()
	if d.deaf != nil {
		d.deaf()
	}
	for _, w := range d.calls {
		w.finish(nil)
	}
	for _, span := range d.spans {
		span.kind.End(span.Span)
	}
	d.root.End()
	*d = drive{}
}

// lookNow brings the next look at the mailboxes forward, if there are any to look at.
func (d *drive) lookNow(now time.Time) {
	if !d.nextLook.IsZero() {
		d.nextLook = now
	}
}

func (d *drive) stopThinking() {
	if d.thinking != nil {
		d.thinking()
	}
}

func (d *drive) published(p published) {
	if w := d.calls[p.call]; w != nil {
		w.sent, w.seq = true, p.seq
	}
}

// outdate ends the watches of rounds that are over: their answers came another way than the watch.
func (d *drive) outdate(state *fold.State) {
	for id, w := range d.calls {
		if logged, _ := state.Holds(id, w.round); logged {
			w.finish(nil)
			delete(d.calls, id)
		}
	}
}

// settling reports whether the end of a call is due or being decided, or whether a worker took it: whoever lets go of the
// session then is woken for it at once, and has it decided anew.
func (d *drive) settling(broker int64) bool {
	if len(d.overdue) > 0 {
		return true
	}
	for _, w := range d.calls {
		if w.ending || broker >= w.end || broker >= w.startBy && !w.taken {
			return true
		}
	}
	return false
}

func (d *drive) taken(t taken) {
	if w := d.calls[t.call]; w != nil && w.round == t.round {
		w.taken = true
	}
}

func (d *drive) began(b began) {
	if w := d.calls[b.call]; w != nil {
		w.end = min(w.end, b.end)
	}
}

// wind sets the alarm for the next instant that tick has something to do. A call that is not known to be stored counts as
// well: word of it does not wake the loop before its time to be taken is over.
func (d *drive) wind(c *Coordinator, state *fold.State) {
	next := time.Duration(-1)
	sooner := func(in time.Duration) {
		if next < 0 || in < next {
			next = max(in, time.Millisecond)
		}
	}
	open := false
	broker := c.now()
	for _, w := range d.calls {
		open = true
		if w.ending {
			continue
		}
		sooner(time.Duration(w.end-broker) * time.Millisecond)
		if w.call.Effect == protocol.EffectAtMostOnce {
			sooner(time.Duration(w.claimCheck-broker) * time.Millisecond)
		}
		if !w.startChecked && (w.sent || broker < w.startBy) {
			sooner(time.Duration(w.startBy-broker) * time.Millisecond)
		}
	}
	for _, w := range state.Waiting() {
		if !d.overdue[w.Call.ID] && d.reviews[w.Call.ID] == nil {
			sooner(time.Duration(w.Until-broker) * time.Millisecond)
		}
	}
	if open && !d.nextLook.IsZero() {
		sooner(d.nextLook.Sub(c.cfg.Clock.Now()))
	}
	if next >= 0 {
		d.alarm.Set(c.cfg.Clock.Now().Add(next))
	}
}

// finish ends the watch and its span; a is nil when the process stops watching without an answer.
func (w *watch) finish(a *protocol.Answer) {
	if w.span.Span == nil {
		return
	}
	call := telemetry.ToolCallID.String(w.call.ID)
	switch {
	case a == nil:
		w.span.kind.End(w.span.Span, call)
	case a.Outcome == protocol.OutcomeCompleted:
		w.span.kind.End(w.span.Span, call, telemetry.Outcome.String(string(a.Outcome)))
	default:
		w.span.SetStatus(codes.Error, string(a.Code))
		w.span.kind.End(w.span.Span, call, telemetry.Outcome.String(string(a.Outcome)), telemetry.ErrorType.String(string(a.Outcome)))
	}
}
