package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// The pauses before a call of another version of the tool is delivered again: soon at first, as a worker that has the version
// may be serving beside this one, then longer, as a rolling upgrade may have to bring one up. The last delivery that the
// broker makes is answered with an error.
const (
	versionFirst = 250 * time.Millisecond
	versionLast  = 2 * time.Second
)

// attempt carries out one delivery of a call and tells what becomes of its message. The tool runs under the call's own
// context; storing goes on under settling when that one ended.
func (w *Worker) attempt(r *run, settling context.Context) verdict {
	if r.err != nil {
		return w.bury(settling, r)
	}
	if r.late {
		return w.tooLate(settling, r)
	}
	misfit := r.misfit()
	if misfit != nil && !r.last {
		return returned(backoff(versionFirst, versionLast, r.first.Attempt-1, r.env.Call+w.cfg.ID), misfit)
	}
	progress := w.progress(r)
	call := invoke.Call{Envelope: r.env, Attempt: r.first.Attempt, Worker: w.cfg.ID, Progress: progress.tell, Logger: w.cfg.Logger, Go: r.aside, Keep: w.keep}
	gated, open := protocol.Result{}, true
	if misfit == nil {
		gated, open = r.pool.tool.Gate(r.ctx, call)
	}
	claimed := r.mustClaim()
	if gated.Outcome == protocol.OutcomeAsks && r.first.Attempt == 1 {
		claimed = false // nothing ran before, and nothing runs now: the question needs no right to start
	}
	fault.Point("K12")
	if claimed && !fault.Mutant("claim-after-effect") {
		if v, ok := w.claim(settling, r); !ok {
			return v
		}
	}
	if misfit != nil {
		return w.store(settling, r, w.unrun(r, protocol.OutcomeFailed, misfit))
	}
	if !open {
		return w.store(settling, r, gated)
	}
	if r.ctx.Err() != nil {
		return w.stopped(settling, r, claimed)
	}

	ctx, spans := w.trace(r)
	begin := w.cfg.Clock.Now()
	fault.Point("K13")
	res, err := r.pool.tool.Run(ctx, call)
	progress.flush()
	fault.Point("K14")
	ran := w.cfg.Clock.Now().Sub(begin)
	if claimed && fault.Mutant("claim-after-effect") {
		if v, ok := w.claim(settling, r); !ok {
			return v
		}
	}
	res.Span = spans.executed(&res, err)

	v := w.conclude(settling, r, res, err, claimed)
	v.Ran = ran
	if v.Way == Refused && w.late(settling, r, res, claimed && v.first) {
		v.Err = w.keepLate(settling, r, res)
	}
	spans.settled(&v)
	return v
}

// conclude decides between storing the result and another attempt.
func (w *Worker) conclude(settling context.Context, r *run, res protocol.Result, err error, claimed bool) verdict {
	drained := errors.Is(context.Cause(r.ctx), ErrDrainTimeout) && (err != nil || res.Outcome == protocol.OutcomeCancelled)
	switch {
	case drained && claimed:
		res.Outcome, res.Code, res.Actions = protocol.OutcomeUnknown, protocol.CodeOutcomeUnknown, nil
		res.Value = protocol.ErrorValue(fmt.Sprintf("the worker was shut down while %s ran: its effect may have happened. It is not tried again; check before you repeat it.", r.pool.name))
	case drained && !r.last:
		return returned(returnDelay, ErrDrainTimeout)
	case err != nil && !claimed && !r.last && r.first.Attempt < r.pool.attempts:
		delay := max(backoff(retryFirst, retryLast, r.first.Attempt-1, r.env.Call), tool.RetryPause(err))
		if r.env.Deadline == 0 || w.broker.until(r.env.Deadline) > delay {
			return returned(delay, err)
		}
	}
	return w.store(settling, r, res)
}

// stopped ends a call whose context ended before the tool was started, so that "not executed" is true of this attempt.
func (w *Worker) stopped(settling context.Context, r *run, claimed bool) verdict {
	cause := protocol.ContextError(r.ctx)
	switch {
	case protocol.CodeOf(cause) == protocol.CodeExpired:
		if !claimed {
			return dropped(protocol.CodeExpired)
		}
		return w.store(settling, r, w.unrun(r, protocol.OutcomeExpired, cause))
	case errors.Is(context.Cause(r.ctx), ErrDrainTimeout) && !claimed:
		return returned(0, ErrDrainTimeout)
	}
	return w.store(settling, r, w.unrun(r, protocol.OutcomeCancelled, cause))
}

// tooLate answers a call that nobody took in time. Who waits for it may look only when its whole time is over.
func (w *Worker) tooLate(settling context.Context, r *run) verdict {
	if r.mustClaim() {
		if v, ok := w.claim(settling, r); !ok {
			return v
		}
	}
	return w.store(settling, r, w.unrun(r, protocol.OutcomeExpired, protocol.Errorf(protocol.CodeNoWorker, "no worker took the call in time")))
}

// unrun is the result of an attempt that did not start the tool.
func (w *Worker) unrun(r *run, how protocol.Outcome, why error) protocol.Result {
	p := protocol.ProblemOf(why)
	now := w.cfg.Clock.Now().UnixMilli()
	text := "not executed: " + p.Message
	if r.first.Attempt > 1 && !r.mustClaim() {
		text = "not executed this time, though an earlier attempt may have run: " + p.Message
	}
	return protocol.Result{
		Outcome: how, Code: p.Code, Value: protocol.ErrorValue(text),
		Worker: w.cfg.ID, Attempt: r.first.Attempt, Started: now, Ended: now,
	}
}

// misfit tells why the worker's version of the tool may not run a call that was checked against another one; nil when it
// may. A call that a person was asked about needs the version that the person saw, one of a long-running tool the version
// that its answer is expected of.
func (r *run) misfit() error {
	p := r.pool
	if r.env.Digest == p.digest {
		return nil
	}
	no := func(why string) error {
		return protocol.Errorf(protocol.CodeDigestMismatch, "the workers of tool %s serve another version of it: %s; ask again, or bring up workers of version %.12s", p.name, why, r.env.Digest)
	}
	switch {
	case p.decl.Class() != r.env.Effect:
		return no(fmt.Sprintf("its effect is %s, the call says %s", p.decl.Class(), r.env.Effect))
	case p.decl.Confirm, r.env.Confirmation != nil:
		return no("its calls need a person's agreement to exactly this version")
	case p.decl.LongRunning:
		return no("it is long-running")
	}
	if _, err := p.tool.Schema().Normalize(r.env.Args); err != nil {
		return no("it does not take these arguments: " + protocol.ProblemOf(err).Message)
	}
	return nil
}
