package client

import (
	"context"

	"github.com/toolfabric/toolfabric/protocol"
)

// Cancel ends a session's run, or the one call that call names, and returns once the session's log has taken the wish up.
// A call without an effect so far never has one then; one that began is told to stop, and its answer says that it may
// have run. It returns unknown_session, and the code with which the log refuses: there is nothing to cancel any more.
func (c *Client) Cancel(ctx context.Context, app, session, call string) error {
	if err := c.checkSession(ctx, app, session); err != nil {
		return err
	}
	receipt, err := c.send(ctx, app, session, protocol.Input{Kind: protocol.InputCancel, Target: call})
	if err != nil {
		return err
	}
	for u, err := range c.watch(ctx, app, session, 0, false) {
		if err != nil && protocol.CodeOf(err) != protocol.CodeUnreachable {
			return err
		}
		if u.Entry == nil {
			continue
		}
		for _, in := range u.Entry.Event.Inputs {
			if in.ID != receipt.InputID {
				continue
			}
			if in.Refused != nil {
				return &protocol.Error{Code: in.Refused.Code, Public: in.Refused.Message}
			}
			return nil
		}
		if s := u.Entry.Event.Stop; s != nil && s.Kind == protocol.StopDeleted {
			return protocol.Errorf(protocol.CodeSessionClosed, "session %s was deleted", session)
		}
	}
	return protocol.ContextError(ctx)
}

// checkSession returns code unknown_session for a session without a log.
func (c *Client) checkSession(ctx context.Context, app, session string) error {
	for _, id := range []string{app, session} {
		if err := protocol.CheckID(id); err != nil {
			return err
		}
	}
	_, err := c.cfg.Bus.Last(ctx, c.cfg.Names.Log(), c.cfg.Names.LogSubject(app, session))
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return protocol.Errorf(protocol.CodeUnknownSession, "no session %s of %s; toolfabric sessions ls lists them", session, app)
	}
	return err
}
