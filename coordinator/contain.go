package coordinator

import (
	"context"
	"runtime/debug"

	"github.com/toolfabric/toolfabric/protocol"
)

// A panic ends what was being done, and nothing else: no message is settled by it, so that each comes again, and the process
// goes on for all other sessions.

// contain is deferred where a goroutine of the coordinator, or one of the bus, begins to work for something.
func (c *Coordinator) contain(what string) {
	if r := recover(); r != nil {
		c.panicked(what, r)
	}
}

func (c *Coordinator) panicked(what string, r any) {
	stack := debug.Stack()
	c.cfg.Logger.Error(what+" panicked", "panic", r, "stack", string(stack[:min(len(stack), 16<<10)]))
}

// background runs f beside everything else.
func (c *Coordinator) background(what string, f func()) {
	c.running.Go(func() {
		defer c.contain(what)
		f()
	})
}

// broken says that something which the adoption of ctx had begun panicked.
type broken struct{ of context.Context }

// start runs f, a part of the adoption of ctx, beside the loop. When it panics the session is given up: its guard has it
// looked at again, and one that goes on to panic is quarantined.
func (s *session) start(ctx context.Context, f func()) {
	s.c.running.Go(func() {
		defer s.contain(ctx)
		f()
	})
}

// contain is deferred by what goes on beside the loop for the adoption of ctx.
func (s *session) contain(ctx context.Context) {
	if r := recover(); r != nil {
		s.c.panicked("a part of session "+s.key.session, r)
		s.inbox.put(broken{ctx})
	}
}

func (s *session) broke(b broken) error {
	if b.of != s.drive.ctx {
		return nil // an earlier adoption, which is over
	}
	return protocol.Errorf(protocol.CodeInternal, "a part of session %s panicked", s.key.session)
}
