package worker

import (
	"context"
	"strconv"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// The pauses between tries to store a result, and how long it is tried at least: until the call's deadline or so long.
const (
	storeFirst      = 50 * time.Millisecond
	storeLast       = 2 * time.Second
	storeAtLeast    = 10 * time.Second
	storeNoDeadline = 2 * time.Minute
)

// The pauses before a returned message is delivered again.
const (
	retryFirst  = 500 * time.Millisecond // after a retryable failure, doubling
	retryLast   = 30 * time.Second
	returnDelay = time.Second // after a failure of the bus or at a drain: time for it to pass, or for another worker to ask
)

// verdict is what becomes of a call's message.
type verdict struct {
	Settlement
	reason string // of a dead letter
	first  bool   // refused at the first try: what stands in the mailbox is not this attempt's own
}

func returned(delay time.Duration, err error) verdict {
	return verdict{Settlement: Settlement{Way: Returned, Delay: delay, Code: codeOf(err), Err: err}}
}

func dropped(code protocol.Code) verdict {
	return verdict{Settlement: Settlement{Way: Dropped, Code: code}}
}

// codeOf leaves out the code of an error that is none of the fabric's.
func codeOf(err error) protocol.Code {
	if code := protocol.CodeOf(err); code != protocol.CodeInternal {
		return code
	}
	return ""
}

// settle ends a run: its slot is free, and the newest handle of each of its messages carries out the verdict.
func (l *loop) settle(r *run, v verdict) {
	delete(l.runs, r.key())
	r.pool.running--
	for i, d := range r.handles {
		switch {
		case v.Way == Buried:
			d.Term(v.reason)
		case v.Way == Returned && l.lapsed(r):
		case v.Way == Returned && i == 0:
			d.Nak(v.Delay)
		default:
			d.Ack() // also a copy of a returned message: one is enough
		}
	}
	l.w.events.Settled(r.info, v.Settlement)
}

// store puts a result into the call's mailbox and tells what becomes of its message. It tries until the deadline of the
// call, and returns the message when that was in vain or ctx ended: a call that may be repeated then runs again, another
// one meets its own claim and is left to its coordinator. An encoded result over the broker's limit is replaced by one
// that says so.
func (w *Worker) store(ctx context.Context, r *run, res protocol.Result) verdict {
	if len(res.Value) > protocol.MaxInlineResult {
		res = tooLarge(r, res, protocol.MaxInlineResult)
	}
	patience := storeNoDeadline
	if r.env.Deadline != 0 {
		patience = max(storeAtLeast, w.broker.until(r.env.Deadline))
	}
	limit := w.cfg.Clock.Now().Add(patience)
	if fault.Mutant("result-acked-unstored") {
		r.first.Ack()
	}
	for try := 0; ; try++ {
		err := w.post(ctx, r, res)
		fault.Point("K15")
		v := verdict{Settlement: Settlement{Way: Answered, Outcome: res.Outcome, Code: res.Code}}
		switch protocol.CodeOf(err) {
		case "":
			return v
		case protocol.CodeAnswered:
			v.Way, v.first = Refused, try == 0
			return v
		case protocol.CodeTooLarge:
			if res.Code != protocol.CodeTooLarge {
				res = tooLarge(r, res, 0)
				continue
			}
		}
		if ctx.Err() != nil || w.cfg.Clock.Now().After(limit) {
			return returned(returnDelay, err)
		}
		w.events.Retrying(r.info, err)
		w.sleep(ctx, backoff(storeFirst, storeLast, try, r.env.Call))
	}
}

// post tries once to put a result into the mailbox that the call names.
func (w *Worker) post(ctx context.Context, r *run, res protocol.Result) (err error) {
	bus, n, env := w.cfg.Bus, w.cfg.Names, &r.env
	if env.AnswersTo == protocol.MailboxWake {
		_, err = natswire.StoreWake(ctx, bus, n, env.App, r.pool.name, env.Session, env.Call, env.Round, nil, res)
	} else {
		_, err = natswire.StoreResult(ctx, bus, n, r.pool.name, env.Session, env.Call, env.Round, nil, res)
	}
	return err
}

// tooLarge is the answer of a call whose own answer cannot be stored. What the tool asked of the session is left out with
// it: half an answer is none.
func tooLarge(r *run, res protocol.Result, limit int) protocol.Result {
	text := "the tool ran, but its answer of " + strconv.Itoa(len(res.Value)) + " bytes is too large to be stored"
	if limit > 0 {
		text += ": the limit is " + strconv.Itoa(limit) + " bytes"
	}
	res.Outcome, res.Code, res.Actions, res.Body, res.Ask = protocol.OutcomeFailed, protocol.CodeTooLarge, nil, nil, nil
	res.Value = protocol.ErrorValue(text + ". Ask for less at once, or let it write an artifact.")
	return res
}

// bury stores a dead-letter record of a message that is no call that can be run: nobody can be told in a mailbox.
func (w *Worker) bury(ctx context.Context, r *run) verdict {
	d, code := r.first, protocol.CodeOf(r.err)
	data, err := protocol.DeadLetter{
		Code: code, Reason: protocol.ProblemOf(r.err).Message, Stream: w.cfg.Names.Calls(), Subject: d.Subject, Seq: d.Seq,
		App: r.env.App, Session: r.env.Session, Tool: r.pool.name, Call: r.env.Call, Data: d.Data,
	}.Encode()
	if err != nil {
		return returned(returnDelay, protocol.Wrap(err, protocol.CodeInternal, "encode a dead letter"))
	}
	subject := w.cfg.Names.DeadLetterSubject("call", strconv.FormatUint(d.Seq, 10))
	if _, err := w.cfg.Bus.Publish(ctx, natswire.Msg{Subject: subject, Data: data}); err != nil {
		return returned(backoff(retryFirst, retryLast, d.Attempt, w.cfg.ID), err)
	}
	return verdict{Settlement: Settlement{Way: Buried, Code: code, Err: r.err}, reason: string(code)}
}
