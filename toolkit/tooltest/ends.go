package tooltest

import (
	"context"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// soon is how long a tool may go on after its context ended; blocked is how long it is given to block.
const (
	soon    = 5 * time.Second
	blocked = 20 * time.Millisecond
)

// ends ends a call that does not end by itself in each way there is.
func ends(t *testing.T, it *invoke.Tool, c Case) {
	t.Helper()
	late := protocol.Errorf(protocol.CodeExpired, "the call's deadline passed")
	for name, way := range map[string]struct {
		end     func() (context.Context, context.CancelFunc)
		timeout int64 // of the attempt, in milliseconds
		outcome protocol.Outcome
		code    protocol.Code
	}{
		"before it runs": {end: func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx, cancel
		}, outcome: protocol.OutcomeCancelled, code: protocol.CodeCancelled},
		"while it runs": {end: func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			timer := time.AfterFunc(blocked, cancel)
			return ctx, func() { timer.Stop(); cancel() }
		}, outcome: protocol.OutcomeCancelled, code: protocol.CodeCancelled},
		"by its deadline": {end: func() (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(t.Context(), blocked, late)
		}, outcome: protocol.OutcomeExpired, code: protocol.CodeExpired},
		"by the timeout of one attempt": {end: func() (context.Context, context.CancelFunc) {
			return context.WithCancel(t.Context())
		}, timeout: blocked.Milliseconds(), outcome: protocol.OutcomeFailed, code: protocol.CodeExpired},
	} {
		call := c.call(it)
		call.Envelope.Timeout = way.timeout
		ctx, cancel := way.end()
		from := time.Now()
		r, _, err := run(t, ctx, it, call)
		took := time.Since(from)
		cancel()
		if took > blocked+soon {
			t.Errorf("%s: ended %s, it took %s", c.Args, name, took)
		}
		if err != nil || r.Outcome != way.outcome || r.Code != way.code {
			t.Errorf("%s: ended %s, got outcome %s, code %q, %v; want %s, %s", c.Args, name, r.Outcome, r.Code, err, way.outcome, way.code)
		}
		onTheWire(t, r)
	}
}
