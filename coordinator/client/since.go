package client

import (
	"context"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
)

// since is a sequence of a session's log before which an input was certainly not folded, and the session's state up to
// there: the newest snapshot's, when that does not know the input. So whoever waits for what was just said to a long
// session reads its last events and not all of them. 0, the beginning, is never wrong, and is what every doubt ends in.
func (c *Client) since(ctx context.Context, app, session, inputID string) (uint64, fold.State) {
	none := fold.State{App: app, Session: session}
	if session == inputID {
		return 0, none // it began the session
	}
	seq, state, ok := c.newest(ctx, app, session)
	if !ok || state.Seen.Has(inputID) || state.GuardID == inputID {
		return 0, none
	}
	if state.Seen.Full() && !c.unsettled(ctx, app, session, inputID) {
		return 0, none // it may be so old that it is forgotten
	}
	return seq + 1, state
}

// newest is the newest snapshot of a session's log, and where it stands; false is none, and every doubt.
func (c *Client) newest(ctx context.Context, app, session string) (uint64, fold.State, bool) {
	log := c.cfg.Names.Log()
	last, err := c.cfg.Bus.Last(ctx, log, c.cfg.Names.LogSubject(app, session))
	if err != nil {
		return 0, fold.State{}, false
	}
	ev, err := protocol.DecodeEvent(last.Data)
	if err != nil || ev.Snapshot == 0 {
		return 0, fold.State{}, false
	}
	stored, err := c.cfg.Bus.At(ctx, log, ev.Snapshot)
	if err != nil {
		return 0, fold.State{}, false
	}
	if ev, err = protocol.DecodeEvent(stored.Data); err != nil {
		return 0, fold.State{}, false
	}
	state, err := fold.Fold(fold.State{App: app, Session: session}, stored.Seq, ev)
	return stored.Seq, state, err == nil && ev.State != nil
}

// unsettled reports whether an input is certainly still in INPUT: no log has held it for long.
func (c *Client) unsettled(ctx context.Context, app, session, inputID string) bool {
	n := c.cfg.Names
	stored, err := c.cfg.Bus.Read(ctx, n.Input(), n.InputSubject(app, "*", session), 1, pageSize)
	if err != nil {
		return false
	}
	for _, s := range stored {
		if in, err := protocol.DecodeInput(s.Data); err == nil && in.ID == inputID {
			return true
		}
	}
	return false
}
