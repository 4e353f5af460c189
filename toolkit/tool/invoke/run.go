package invoke

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// Grace is how long a tool may go on after its context ended before it is left behind.
const Grace = time.Second

// Call is one delivery of a call. The zero Progress drops what the tool reports, the zero Logger drops its records.
type Call struct {
	Envelope protocol.Envelope
	Attempt  int                     // the delivery, from 1
	Worker   string                  // who runs it
	Progress func(protocol.Progress) // never called after Run returned; must not block
	Logger   *slog.Logger
	Go       func(f func())                                                                 // runs the tool's code in a goroutine; nil begins one
	Keep     func(ctx context.Context, data []byte, mediaType string) (protocol.Ref, error) // stores what tool.Keeper is given; nil stores nothing
}

// Run executes the call and waits for its end, at most Grace beyond the end of ctx or of the call's timeout. The result
// has everything filled but its span. Its outcome is
//
//   - completed: the tool answered; the value is its object, or {"result": v} around anything else;
//   - asks: the tool requested a confirmation; the value is the object it returned, or {"error": text}, or missing;
//   - pending: a long-running tool answered; the value is missing when that was nil;
//   - outcome_unknown: the tool returned an error marked by tool.OutcomeUnknown, and does more than read;
//   - failed: the tool returned an error (the value is {"error": text}, with the error_code of tool.WithErrorCode, no code), panicked (tool_panic), ran into the
//     timeout of one attempt (expired), answered what cannot be sent (no code) or too much (too_large), or the arguments
//     do not fit (schema_violation: the tool did not run);
//   - expired or cancelled: ctx ended and the tool did not answer, or was not started; the code is that of context.Cause.
//
// What the tool asked of the session is in the result's actions whatever the outcome, unless the tool was left behind; of
// a tool that asks only its changes of state. Whether the call may run at all is Gate's to say, which is asked first.
// The error is nil but when the tool asked for another attempt by tool.Retryable or tool.OutcomeUnknown; the result is then what to publish if
// none is left.
func (t *Tool) Run(ctx context.Context, c Call) (protocol.Result, error) {
	r := protocol.Result{V: protocol.Version, Worker: c.Worker, Attempt: c.Attempt, Started: time.Now().UnixMilli()}
	err := t.run(ctx, &c, &r)
	r.Ended = time.Now().UnixMilli()
	return r, err
}

func (t *Tool) run(ctx context.Context, c *Call, r *protocol.Result) error {
	args, err := t.schema.Normalize(c.Envelope.Args)
	if err != nil {
		fail(r, protocol.CodeSchemaViolation, publicText(err))
		return nil
	}
	if ctx.Err() != nil {
		t.ended(ctx, 0, r, false, "")
		return nil
	}
	timeout := t.timeout(c)
	attempt, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()

	tc := newContext(attempt, c, t.decl.Name)
	defer tc.close()
	a, ended := t.contain(attempt, c, func() answer { return t.answer(tc, args) })
	if !ended {
		t.ended(attempt, timeout, r, true, " and was left running")
		return nil
	}
	t.settle(attempt, timeout, a, r)
	if code := tool.ErrorCode(a.err); code != "" && r.Outcome == protocol.OutcomeFailed && r.Code == "" {
		r.Value = codedValue(a.err.Error(), code)
	}
	actions, err := tc.wanted()
	if err != nil {
		fail(r, "", err.Error())
	}
	r.Actions = actions
	if ask := tc.asked(); ask != nil && err == nil && a.stack == nil && (a.err == nil || attempt.Err() == nil) {
		asking(r, ask, a)
		return nil
	}
	if a.err != nil && (r.Code == "" || r.Outcome == protocol.OutcomeUnknown) && tool.IsRetryable(attempt, a.err) {
		return a.err
	}
	return nil
}

// contain runs fn, which is the tool's code, and waits for its end, at most Grace beyond the end of ctx. It returns false
// when fn was left behind.
func (t *Tool) contain(ctx context.Context, c *Call, fn func() answer) (answer, bool) {
	done := make(chan answer, 1)
	start := c.Go
	if start == nil {
		start = begin
	}
	start(func() { call(fn, done) })
	var a answer
	select {
	case a = <-done:
	case <-ctx.Done():
		grace := time.NewTimer(Grace)
		defer grace.Stop()
		select {
		case a = <-done:
		case <-grace.C:
			t.leave(c, done)
			return answer{}, false
		}
	}
	if a.stack != nil && c.Logger != nil {
		c.Logger.Error("a tool panicked", "tool", t.decl.Name, "call", c.Envelope.Call, "panic", a.panicked, "stack", string(a.stack))
	}
	return a, true
}

func begin(f func()) { go f() }

// errTimeout is the cause of a context that ended with the timeout of one attempt.
var errTimeout = &protocol.Error{Code: protocol.CodeExpired, Public: "the timeout of one attempt passed", Err: context.DeadlineExceeded}

func (t *Tool) timeout(c *Call) time.Duration {
	ms := c.Envelope.Timeout
	if ms <= 0 {
		ms = t.decl.Timeout
	}
	if ms <= 0 {
		return protocol.DefaultTimeout
	}
	return time.Duration(ms) * time.Millisecond
}

// answer is what came of the tool's code.
type answer struct {
	value    json.RawMessage // an object
	object   bool            // value is what the tool returned, not made around it
	null     bool            // the tool returned nil
	yes      bool            // of a question to the tool
	err      error
	panicked string // the value it panicked with, when stack is set
	stack    []byte
}

// call runs the tool's code and the encoding of its answer, which is the tool's code too: it may hold marshalers.
func call(fn func() answer, done chan<- answer) {
	a := answer{panicked: "it ended its goroutine (runtime.Goexit)", stack: []byte{}}
	defer func() {
		if v := recover(); v != nil {
			a = answer{panicked: fmt.Sprint(v), stack: debug.Stack()}
		}
		done <- a
	}()
	a = fn()
}

func (t *Tool) answer(tc *toolContext, args json.RawMessage) answer {
	var raw json.RawMessage
	if t.json != nil {
		out, err := t.json.RunJSON(tc, args)
		if err != nil {
			return answer{err: err}
		}
		raw = out
	} else {
		decoded, err := decodeArgs(args)
		if err != nil {
			return answer{err: err}
		}
		out, err := t.tool.Run(tc, decoded)
		if err != nil {
			return answer{err: err}
		}
		if raw, err = Encode(out); err != nil {
			return answer{err: err}
		}
	}
	value, err := object(raw)
	given := bytes.TrimSpace(raw)
	return answer{value: value, err: err, object: len(given) > 0 && given[0] == '{', null: len(given) == 0 || string(given) == "null"}
}

func (t *Tool) settle(ctx context.Context, timeout time.Duration, a answer, r *protocol.Result) {
	switch {
	case a.stack != nil:
		fail(r, protocol.CodeToolPanic, fmt.Sprintf("tool %q panicked: %s", t.decl.Name, a.panicked))
	case a.err == nil && t.decl.LongRunning:
		r.Outcome = protocol.OutcomePending
		if !a.null {
			r.Value = a.value
		}
	case a.err == nil:
		r.Outcome, r.Value = protocol.OutcomeCompleted, a.value
	case ctx.Err() != nil:
		t.ended(ctx, timeout, r, true, "")
	default:
		code := protocol.Code("")
		if e, ok := errors.AsType[*sizeError](a.err); ok {
			a.err, code = e, protocol.CodeTooLarge
		}
		fail(r, code, a.err.Error())
		if tool.IsOutcomeUnknown(a.err) && t.decl.Class() != protocol.EffectRead {
			r.Outcome, r.Code = protocol.OutcomeUnknown, protocol.CodeOutcomeUnknown
		}
	}
}

// ended fills r for a tool whose context ended before it answered.
func (t *Tool) ended(ctx context.Context, timeout time.Duration, r *protocol.Result, started bool, how string) {
	if context.Cause(ctx) == error(errTimeout) {
		fail(r, protocol.CodeExpired, fmt.Sprintf("tool %q ran into its timeout of %s%s; what it did until then may stand", t.decl.Name, timeout, how))
		return
	}
	err := protocol.ContextError(ctx)
	text := fmt.Sprintf("tool %q did not finish%s: %s; what it did until then may stand", t.decl.Name, how, publicText(err))
	if !started {
		text = fmt.Sprintf("tool %q was not started: %s", t.decl.Name, publicText(err))
	}
	fail(r, protocol.CodeOf(err), text)
	r.Outcome = protocol.OutcomeCancelled
	if r.Code == protocol.CodeExpired {
		r.Outcome = protocol.OutcomeExpired
	}
}

// leave counts a tool that does not end, until it does.
func (t *Tool) leave(c *Call, done <-chan answer) {
	t.stuck.Add(1)
	if c.Logger != nil {
		c.Logger.Warn("a tool ignores the end of its context and was left behind", "tool", t.decl.Name, "call", c.Envelope.Call)
	}
	go func() {
		<-done
		t.stuck.Add(-1)
	}()
}

func fail(r *protocol.Result, code protocol.Code, text string) {
	r.Outcome, r.Code, r.Value = protocol.OutcomeFailed, code, protocol.ErrorValue(text)
}

// codedValue is the value of a call that failed with a word of its tool's.
func codedValue(text, code string) json.RawMessage {
	b, _ := json.Marshal(struct {
		Error string `json:"error"`
		Code  string `json:"error_code"`
	}{text, code})
	return b
}

func publicText(err error) string {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e.Public
	}
	return err.Error()
}
