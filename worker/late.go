package worker

import (
	"context"
	"strconv"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// late reports whether a refused result is that of a call that a coordinator had ended: nobody reads it as the answer, and
// whoever looks into the call later wants to know what happened. The mailbox tells, if the worker may read it; otherwise
// only alone does: the claim was this attempt's, so that no other worker can have answered.
func (w *Worker) late(ctx context.Context, r *run, res protocol.Result, alone bool) bool {
	if res.Outcome == protocol.OutcomeCancelled || res.Outcome == protocol.OutcomeExpired || res.Code == protocol.CodeSchemaViolation {
		return false // it says no more than what stands there
	}
	if alone {
		return true
	}
	stream := w.cfg.Names.Results()
	if r.env.AnswersTo == protocol.MailboxWake {
		stream = w.cfg.Names.Wake()
	}
	stored, err := w.cfg.Bus.Last(ctx, stream, w.mailbox(r))
	if err != nil {
		return false
	}
	there, err := protocol.DecodeResult(stored.Data)
	if err != nil {
		return false
	}
	switch there.Outcome {
	case protocol.OutcomeCancelled, protocol.OutcomeExpired, protocol.OutcomeUnknown:
		return there.Span != res.Span || there.Outcome != res.Outcome || there.Ended != res.Ended
	}
	return false
}

// mailbox is the subject of the mailbox that the call names.
func (w *Worker) mailbox(r *run) string {
	n, env := w.cfg.Names, &r.env
	if env.AnswersTo == protocol.MailboxWake {
		return n.WakeSubject(env.App, r.pool.name, env.Session, env.Call, env.Round)
	}
	return n.ResultSubject(r.pool.name, env.Session, env.Call, env.Round)
}

// keepLate stores a late result as a dead letter of kind late. When that fails, or the worker may not, the error says so in
// the log, with the outcome.
func (w *Worker) keepLate(ctx context.Context, r *run, res protocol.Result) error {
	body, err := protocol.Encode(res)
	if err != nil {
		return err
	}
	data, err := protocol.DeadLetter{
		Code: protocol.CodeAnswered, Reason: "the result came after the call had ended; it is not shown as the answer",
		Stream: w.cfg.Names.Calls(), Subject: r.first.Subject, Seq: r.first.Seq,
		App: r.env.App, Session: r.env.Session, Tool: r.pool.name, Call: r.env.Call, Data: body,
	}.Encode()
	if err != nil {
		return err
	}
	subject := w.cfg.Names.DeadLetterSubject("late", r.env.Call+"-"+strconv.Itoa(r.env.Round))
	if _, err := w.cfg.Bus.Publish(ctx, natswire.Msg{Subject: subject, Data: data}); err != nil {
		return protocol.Wrap(err, protocol.CodeOf(err), "the result of call %s came after the call had ended, and no dead letter could keep it", r.env.Call)
	}
	return nil
}
