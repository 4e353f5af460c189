package coordinator

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/telemetry"
)

// answered is a call's stored result, on its way to the loop. tool is the pool whose mailbox it is from: only that pool may
// answer the call.
type answered struct {
	tool   string
	answer protocol.Answer
}

// published says that a call is certainly stored in CALLS.
type published struct {
	call string
	seq  uint64
}

// maxEnvelopeState is how much of the session's state travels with a call, in bytes.
const maxEnvelopeState = 64 << 10

// dispatch publishes an allowed call and watches for its answer, once per adoption. The subscription to results comes
// first, then the look at the mailbox for a call that an earlier owner may have published, then the publish.
func (s *session) dispatch(e fold.Perform) {
	if s.drive.calls[e.Call.ID] != nil {
		return
	}
	w := s.watch(e)
	s.listen()
	if s.drive.nextLook.IsZero() || len(s.drive.calls) == 1 {
		s.drive.nextLook = s.c.cfg.Clock.Now().Add(firstLook)
	}
	fresh := s.state.Run.Open.Seq >= s.drive.adopted && e.Round == 0
	if !fresh && fault.Mutant("call-id-of-attempt") {
		e.Call.ID += "-again"
	}
	msg, err := s.envelope(w, e)
	if err != nil {
		s.expire(w, ending{code: protocol.CodeOf(err), outcome: protocol.OutcomeFailed, text: "the call cannot be sent", unrun: "the call cannot be sent; it was not executed", unsure: "the call cannot be sent"})
		return
	}
	ctx := s.drive.ctx
	if fresh {
		s.send(ctx, w, msg)
		return
	}
	s.start(ctx, func() {
		if a, err := s.mailbox(ctx, w); err == nil {
			s.deliver(ctx, w.call.Tool, a)
			return
		}
		if e.Sent != nil {
			s.inbox.put(published{call: w.call.ID, seq: e.Sent.Seq})
			return
		}
		s.send(ctx, w, msg)
	})
}

// watch begins to watch an open call.
func (s *session) watch(e fold.Perform) *watch {
	w := &watch{call: e.Call, round: e.Round, startBy: e.At + e.Call.Queue, end: e.At + e.Call.Budget,
		claimCheck: e.At + e.Call.Timeout + settleGrace.Milliseconds(), span: s.callSpan(e)}
	w.stream, w.mailbox = s.box(e)
	w.taken = e.Sent != nil && e.Sent.Taken
	w.startChecked = w.taken
	s.drive.calls[e.Call.ID] = w
	return w
}

// listen subscribes to the session's results, before the first call of an adoption is published.
func (s *session) listen() {
	if s.drive.deaf != nil {
		return
	}
	ctx := s.drive.ctx
	deaf, err := s.c.cfg.Bus.Listen(s.c.cfg.Names.DoneSubject(s.key.session), func(m natswire.Msg) {
		defer s.c.contain("a listener for results")
		if _, tool, call, round, ok := s.c.cfg.Names.ParseDone(m); ok {
			s.deliver(ctx, tool, s.c.readAnswer(m.Subject, call, round, natswire.StoredSeq(m.Header), m.Data))
		}
	})
	if err != nil {
		s.drive.deaf = func() {} // the looks at the mailboxes find what is missed
		return
	}
	s.drive.deaf = deaf
}

func (s *session) envelope(w *watch, e fold.Perform) (natswire.Msg, error) {
	c := e.Call
	if fault.Mutant("verdict-anew") {
		if o, ok := s.c.catalogue.offer(c.Tool); ok {
			c.Digest, c.Effect = o.Digest(), o.Class()
		}
	}
	answersTo := protocol.MailboxResults
	if e.Wakes {
		answersTo = protocol.MailboxWake
	}
	data, err := protocol.Encode(protocol.Envelope{
		V: protocol.Version, App: s.key.app, User: s.state.User, Session: s.key.session, Agent: e.Agent,
		Call: c.ID, Round: e.Round, Tool: c.Tool, Digest: c.Digest, Effect: c.Effect, Args: c.Args, AnswersTo: answersTo, Confirmation: e.Given,
		StartBy: w.startBy, Deadline: w.end, Timeout: c.Timeout, State: s.envelopeState(),
	})
	if err != nil {
		return natswire.Msg{}, err
	}
	return natswire.Msg{Subject: s.c.cfg.Names.CallSubject(c.Tool), Header: natswire.Header{}, Data: data, ID: c.ID + "." + strconv.Itoa(e.Round)}, nil
}

// envelopeState is the state that travels with a call: keys in order, as many as fit.
func (s *session) envelopeState() map[string]json.RawMessage {
	view := s.state.View()
	if len(view) == 0 {
		return nil
	}
	room := maxEnvelopeState
	for _, k := range slices.Sorted(maps.Keys(view)) {
		if room -= len(k) + len(view[k]); room < 0 {
			delete(view, k)
		}
	}
	return view
}

// send stores the call in its tool's queue, or has publish do it when that does not succeed at once.
func (s *session) send(ctx context.Context, w *watch, msg natswire.Msg) {
	span := s.c.beginSend(ctx, w, msg)
	fault.Point("K7")
	s.c.cfg.Bus.Send(msg, func(ack natswire.Ack, err error) {
		defer s.contain(ctx)
		if err == nil {
			s.stored(w, ack)
			endSend(span, w, msg)
			return
		}
		s.start(ctx, func() {
			defer endSend(span, w, msg)
			s.publish(ctx, w, msg, span, err)
		})
	})
}

// stored tells the loop that a call is in its tool's queue.
func (s *session) stored(w *watch, ack natswire.Ack) {
	fault.Point("K8")
	s.inbox.note(published{call: w.call.ID, seq: ack.Seq})
	if s.c.now() >= w.startBy { // until then the loop's alarm sees to it
		s.inbox.ring()
	}
}

// publish stores a call that could not be stored, for the reason err. While the queue or the stream is full, or the broker
// away, it tries again until no worker could take the call in time any more.
func (s *session) publish(ctx context.Context, w *watch, msg natswire.Msg, span trace.Span, err error) {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		code := protocol.CodeOf(err)
		hopeless := code == protocol.CodeForbidden || code == protocol.CodeTooLarge
		if ctx.Err() != nil {
			return
		}
		if hopeless || s.c.now()+wait.Milliseconds() > w.startBy {
			span.SetAttributes(telemetry.ErrorType.String(string(code)))
			span.SetStatus(codes.Error, string(code))
			s.c.cfg.Logger.Warn("a call cannot be published", "tool", w.call.Tool, "call", w.call.ID, "error", err)
			s.settleWithout(ctx, w, 0, ending{
				code: code, outcome: protocol.OutcomeFailed,
				text:   "the call could not be queued: " + protocol.ProblemOf(err).Message,
				unrun:  "the call was not executed: it could not be queued: " + protocol.ProblemOf(err).Message,
				unsure: "the call could not be queued for certain, but a worker began it; whether the effect happened is unknown",
			})
			return
		}
		if natswire.Sleep(ctx, s.c.cfg.Clock, wait) != nil {
			return
		}
		fault.Point("K7")
		var ack natswire.Ack
		if ack, err = s.c.cfg.Bus.Publish(ctx, msg); err == nil {
			s.stored(w, ack)
			return
		}
	}
}

// mailbox reads a call's result from the leader; code not_found when there is none.
func (s *session) mailbox(ctx context.Context, w *watch) (protocol.Answer, error) {
	m, err := s.c.cfg.Bus.Last(ctx, w.stream, w.mailbox)
	if err != nil {
		return protocol.Answer{}, err
	}
	return s.c.readAnswer(m.Subject, w.call.ID, w.round, m.Seq, m.Data), nil
}

// readAnswer reads what a mailbox holds. What cannot be read is the call's answer all the same: the mailbox is taken and
// nothing better will come. Its bytes stay there.
func (c *Coordinator) readAnswer(subject, call string, round int, seq uint64, data []byte) protocol.Answer {
	r, err := protocol.DecodeResult(data)
	if err == nil && r.Body != nil {
		err = protocol.Errorf(protocol.CodeBadMessage, "a reference at /body: a worker's answer is inline")
	}
	if err != nil {
		c.cfg.Logger.Warn("a result cannot be read; its call fails", "subject", subject, "error", err)
		r = protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeFailed, Code: protocol.CodeBadMessage,
			Value: protocol.ErrorValue("the worker stored a result that cannot be read: " + protocol.ProblemOf(err).Message)}
	}
	return protocol.Answer{Call: call, Round: round, Seq: seq, Result: r}
}

// look reads the mailboxes of all open calls: what was republished may have been missed.
func (s *session) look(ctx context.Context) {
	for _, c := range s.state.Open() {
		w := s.drive.calls[c.ID]
		if w == nil {
			continue
		}
		a, err := s.mailbox(ctx, w)
		if err == nil {
			s.deliver(s.drive.ctx, w.call.Tool, a)
		} else if protocol.CodeOf(err) != protocol.CodeNotFound {
			return
		}
	}
}

// deliver hands an answer to the loop; a large value goes to the object store first.
func (s *session) deliver(ctx context.Context, tool string, a protocol.Answer) {
	if len(a.Value) <= protocol.MaxLogResult || s.c.hooked[s.key.app] { // callbacks see all of it first
		s.inbox.put(answered{tool, a})
		return
	}
	s.start(ctx, func() {
		small, err := s.c.offload(ctx, a, protocol.MaxModelResult)
		if err != nil {
			s.c.cfg.Logger.Warn("a large result waits for the object store", "call", a.Call, "error", err)
			return // the next look tries again
		}
		s.inbox.put(answered{tool, small})
	})
}

// answered takes a call's result into the state.
func (s *session) answered(ctx context.Context, item answered) error {
	w := s.drive.calls[item.answer.Call]
	if w == nil || w.round != item.answer.Round || w.call.Tool != item.tool {
		return nil
	}
	if s.drive.reviews[item.answer.Call] != nil {
		return nil // the first one is being looked at
	}
	if logged, _ := s.state.Holds(item.answer.Call, item.answer.Round); logged || s.state.Arrived(item.answer.Call, item.answer.Round) {
		return nil // it came another way
	}
	if s.reviewAnswer(w.call, item, func(a answered) any { return a }) {
		w.ending = true
		return nil
	}
	return s.conclusion(ctx, w.call, item)
}

// taken says that a worker took a call before its time for that was over, for all that is known.
type taken struct {
	call  string
	round int
}

// checkStart finds out, when a call's time to be taken is over, whether a worker took it, and ends it when none did. It keeps
// at it while the broker is away.
func (s *session) checkStart(w *watch) {
	ctx, seq := s.drive.ctx, w.seq
	s.start(ctx, func() {
		for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
			over, err := s.untaken(ctx, w, seq)
			switch {
			case over:
				return
			case err == nil, protocol.CodeOf(err) == protocol.CodeForbidden:
				s.inbox.put(taken{w.call.ID, w.round})
				return
			}
			if natswire.Sleep(ctx, s.c.cfg.Clock, wait) != nil {
				return
			}
		}
	})
}

// untaken ends a call that no worker took in time, and reports whether it did. For one that must not start twice the claim
// decides, for the others their place in the queue: what was delivered was taken.
func (s *session) untaken(ctx context.Context, w *watch, seq uint64) (over bool, err error) {
	e := ending{
		code: protocol.CodeNoWorker, outcome: protocol.OutcomeExpired,
		text:   "no worker took the call in time; it was not executed",
		unrun:  "no worker took the call in time; it was not executed",
		unsure: "a worker began the call and may still be running it",
	}
	if w.call.Effect == protocol.EffectAtMostOnce {
		r, err := s.c.verdictWithoutWorker(ctx, w.call.Tool, w.call.ID, w.round, w.call.Effect, e)
		if err != nil || r.Outcome == protocol.OutcomeUnknown {
			return false, err
		}
		if !s.store(ctx, w, r) {
			return false, protocol.Errorf(protocol.CodeUnreachable, "the mailbox of call %s cannot be reached", w.call.ID)
		}
		s.c.clear(ctx, w.call, seq)
		return true, nil
	}
	n, bus := s.c.cfg.Names, s.c.cfg.Bus
	if seq == 0 {
		if seq, err = s.c.queued(ctx, w.call); err != nil || seq == 0 {
			return false, err // it is not in the queue any more
		}
	}
	delivered := func() (bool, error) {
		state, err := bus.ConsumerState(ctx, n.Calls(), w.call.Tool)
		if protocol.CodeOf(err) == protocol.CodeNotFound {
			return false, nil
		}
		return state.Delivered >= seq, err
	}
	if yes, err := delivered(); yes || err != nil {
		return false, err
	}
	if err := bus.Remove(ctx, n.Calls(), seq); err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
		return false, err
	}
	if yes, err := delivered(); yes || err != nil {
		return false, err
	}
	s.settleWithout(ctx, w, seq, e)
	return true, nil
}

// expire ends a call whose time is over, whoever has it.
func (s *session) expire(w *watch, e ending) {
	w.ending = true
	ctx, seq := s.drive.ctx, w.seq
	s.start(ctx, func() {
		if a, err := s.mailbox(ctx, w); err == nil {
			s.deliver(ctx, w.call.Tool, a)
			return
		}
		s.settleWithout(ctx, w, seq, e)
	})
}

// settleWithout stores what can be said of a call without a worker's word, and keeps at it while the broker is away. seq is
// the call's message in CALLS, 0 when that is not known: w belongs to the loop.
func (s *session) settleWithout(ctx context.Context, w *watch, seq uint64, e ending) {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		r, err := s.c.verdictWithoutWorker(ctx, w.call.Tool, w.call.ID, w.round, w.call.Effect, e)
		if err == nil && s.store(ctx, w, r) {
			break
		}
		if natswire.Sleep(ctx, s.c.cfg.Clock, wait) != nil {
			return
		}
	}
	s.c.clear(ctx, w.call, seq)
}

// settleGrace is how long after its tool's timeout a worker may still be storing a result.
const settleGrace = 10 * time.Second

// began says until when the worker that has a call's claim must have answered.
type began struct {
	call string
	end  int64 // broker's time, Unix milliseconds
}

// checkClaim finds out whether a worker began a call that must not start twice, and when: from then on its tool's timeout
// counts, not the time it could have waited in the queue. A worker that died after its claim is not waited for longer.
func (s *session) checkClaim(w *watch) {
	patience := w.call.Timeout + settleGrace.Milliseconds()
	w.claimCheck = s.c.now() + patience
	ctx := s.drive.ctx
	s.start(ctx, func() {
		held, err := s.c.cfg.Bus.Last(ctx, s.c.cfg.Names.Results(), s.c.cfg.Names.ClaimSubject(w.call.Tool, w.call.ID, w.round))
		if err == nil {
			s.inbox.put(began{w.call.ID, held.Time.UnixMilli() + patience})
		}
	})
}

// clear stops a call that has ended: its runner is told, its message, if it is known, taken off the queue. Both are hints,
// so failures do not matter: its instants end it on the worker too, and a worker drops what it cannot claim or may not start
// any more. The run may have ended with the call: that is no reason to stop here.
func (c *Coordinator) clear(ctx context.Context, call protocol.Call, seq uint64) {
	ctx = context.WithoutCancel(ctx)
	_ = c.cfg.Bus.Emit(ctx, natswire.Msg{Subject: c.cfg.Names.CancelSubject(call.Tool, call.ID)})
	if seq != 0 {
		_ = c.cfg.Bus.Remove(ctx, c.cfg.Names.Calls(), seq)
	}
}

// queued is where a call stands in its tool's queue; 0 when it is not there. A call that must not start twice need not be
// looked for: its claim decides.
func (c *Coordinator) queued(ctx context.Context, call protocol.Call) (seq uint64, err error) {
	if call.Effect == protocol.EffectAtMostOnce {
		return 0, nil
	}
	for from := uint64(1); ; {
		page, err := c.cfg.Bus.Read(ctx, c.cfg.Names.Calls(), c.cfg.Names.CallSubject(call.Tool), from, walkPage)
		if err != nil || len(page) == 0 {
			return 0, err
		}
		for _, m := range page {
			if env, err := protocol.DecodeEnvelope(m.Data); err == nil && env.Call == call.ID {
				return m.Seq, nil
			}
			from = m.Seq + 1
		}
	}
}

// store puts a result that was decided here into the mailbox and delivers what the mailbox holds then.
func (s *session) store(ctx context.Context, w *watch, r protocol.Result) bool {
	seq, err := s.c.answer(ctx, w.mailbox, r)
	if err == nil || fault.Mutant("own-word-first") {
		s.deliver(ctx, w.call.Tool, protocol.Answer{Call: w.call.ID, Round: w.round, Seq: seq, Result: r})
		return true
	}
	if a, err := s.mailbox(ctx, w); err == nil {
		s.deliver(ctx, w.call.Tool, a)
		return true
	}
	return false
}

func lateEnding(c protocol.Call) ending {
	after := " within " + (time.Duration(c.Budget) * time.Millisecond).String()
	return ending{
		code: protocol.CodeExpired, outcome: protocol.OutcomeExpired,
		text:   "no result came" + after + "; the call may have run",
		unrun:  "no worker began the call" + after + "; it was not executed",
		unsure: "a worker began the call and died or fell silent: no result came in time; whether the effect happened is unknown, and it is not tried again",
	}
}
