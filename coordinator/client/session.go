package client

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/internal/view"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

// States of a session: running, or the kind of its last stop; failed is a done with a problem.
const (
	StateRunning = "running"
	StateParked  = string(protocol.StopParked)
	StateFailed  = "failed"
)

// Session is what the last event of its log tells of a session.
type Session struct {
	App          string            `json:"app"`
	ID           string            `json:"session"`
	State        string            `json:"state"` // running, parked, done, failed, cancelled, drained, quarantined
	Problem      *protocol.Problem `json:"problem,omitempty"`
	LastActivity time.Time         `json:"last_activity"`
	Seq          uint64            `json:"seq"` // of that event
}

// Sessions lists the sessions of an app, or of all apps when app is empty, those with the latest activity first. Deleted
// ones are left out. The list may lack what happened a moment ago.
func (c *Client) Sessions(ctx context.Context, app string) ([]Session, error) {
	if app == "" {
		app = "*"
	}
	list, err := c.sessions(ctx, c.cfg.Names.LogFilter(app))
	slices.SortFunc(list, func(a, b Session) int { return b.LastActivity.Compare(a.LastActivity) })
	return list, err
}

// Find returns the session with an id, whatever its app. It returns code unknown_session.
func (c *Client) Find(ctx context.Context, id string) (Session, error) {
	if err := protocol.CheckID(id); err != nil {
		return Session{}, err
	}
	list, err := c.sessions(ctx, c.cfg.Names.LogSubject("*", id))
	if err != nil {
		return Session{}, err
	}
	if len(list) != 1 {
		return Session{}, protocol.Errorf(protocol.CodeUnknownSession, "no session %s, or it was deleted; toolfabric sessions ls lists them", id)
	}
	return list[0], nil
}

func (c *Client) sessions(ctx context.Context, filter string) ([]Session, error) {
	stored, err := c.cfg.Bus.Latest(ctx, c.cfg.Names.Log(), filter)
	if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
		return nil, err
	}
	list := make([]Session, 0, len(stored))
	for _, s := range stored {
		app, id, ok := c.cfg.Names.ParseLog(s.Subject)
		if !ok {
			continue
		}
		one, err := sessionOf(app, id, s)
		if err != nil {
			return list, err
		}
		if one.State != string(protocol.StopDeleted) {
			list = append(list, one)
		}
	}
	return list, nil
}

func sessionOf(app, id string, last natswire.Stored) (Session, error) {
	ev, err := protocol.DecodeEvent(last.Data)
	if err != nil {
		return Session{}, err
	}
	s := Session{App: app, ID: id, State: StateRunning, LastActivity: last.Time.UTC(), Seq: last.Seq}
	if ev.Stop != nil {
		s.State, s.Problem = string(ev.Stop.Kind), ev.Stop.Problem
		if s.Problem != nil && ev.Stop.Kind == protocol.StopDone {
			s.State = StateFailed
		}
	}
	return s, nil
}

// User is the client that began a session. It returns code unknown_session.
func (c *Client) User(ctx context.Context, app, session string) (string, error) {
	if err := c.checkSession(ctx, app, session); err != nil {
		return "", err
	}
	first, err := c.cfg.Bus.Next(ctx, c.cfg.Names.Log(), c.cfg.Names.LogSubject(app, session), 1)
	if err != nil {
		return "", err
	}
	ev, err := protocol.DecodeEvent(first.Data)
	if err != nil {
		return "", err
	}
	for _, in := range ev.Inputs {
		if in.Kind == protocol.InputMessage || in.Kind == protocol.InputCall {
			return in.Client, nil
		}
	}
	return "", protocol.Errorf(protocol.CodeUnknownSession, "session %s was deleted, or nobody has spoken to it", session)
}

// Log reads a session's log from stream sequence from on; 0 is its beginning. It returns code unknown_session for a log
// without any event.
func (c *Client) Log(ctx context.Context, app, session string, from uint64) ([]Entry, error) {
	var log []Entry
	for {
		page, err := c.page(ctx, app, session, from)
		if err != nil {
			return log, err
		}
		log = append(log, page...)
		if len(page) < pageSize {
			break
		}
		from = page[len(page)-1].Seq + 1
	}
	if len(log) == 0 && from <= 1 {
		return nil, protocol.Errorf(protocol.CodeUnknownSession, "no session %s of %s, or it was deleted; toolfabric sessions ls lists them", session, app)
	}
	return log, nil
}

// Events is a session's log in the shape of ADK's events.
func (c *Client) Events(ctx context.Context, app, session string) ([]*session.Event, error) {
	log, err := c.Log(ctx, app, session, 0)
	if err != nil {
		return nil, err
	}
	return view.Events(log, c.Reply(app, session)), nil
}

// Reply gives the subjects on which confirmations of a session are decided; its last token, "*", stands for the approver.
func (c *Client) Reply(app, session string) func(confirmation string) string {
	return func(confirmation string) string { return c.cfg.Names.ApprovalSubject(app, session, confirmation, "*") }
}

// Events projects log entries, from the beginning of a log, into the shape of ADK's events. Confirmation requests carry the
// subject that reply gives, as Client.Reply does; nil leaves it out.
func Events(log []Entry, reply func(confirmation string) string) []*session.Event {
	return view.Events(log, reply)
}

// Trace is a session's work as trees of spans, one for each time a coordinator drove it, across all processes. It comes
// from the log and the stored results; no telemetry backend is asked.
func (c *Client) Trace(ctx context.Context, app, session string) ([]*Span, error) {
	log, err := c.Log(ctx, app, session, 0)
	if err != nil {
		return nil, err
	}
	mail := map[string]view.Mail{}
	names := c.cfg.Names
	err = c.mail(ctx, names.Results(), names.ResultFilter(session), func(subject string) (string, int, bool) {
		_, _, call, round, ok := names.ParseResult(subject)
		return call, round, ok
	}, mail)
	if err != nil {
		return nil, err
	}
	err = c.mail(ctx, names.Wake(), names.WakeSessionFilter(app, session), func(subject string) (string, int, bool) {
		_, _, _, call, round, ok := names.ParseWake(subject)
		return call, round, ok
	}, mail)
	if err != nil {
		return nil, err
	}
	return view.Trace(app, log, mail), nil
}

// mail reads the results that are stored on the subjects that match filter into all.
func (c *Client) mail(ctx context.Context, stream, filter string, parse func(subject string) (call string, round int, ok bool), all map[string]view.Mail) error {
	for from := uint64(1); ; {
		page, err := c.cfg.Bus.Read(ctx, stream, filter, from, pageSize)
		if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
			return err
		}
		for _, s := range page {
			from = s.Seq + 1
			call, round, ok := parse(s.Subject)
			if result, err := protocol.DecodeResult(s.Data); ok && err == nil {
				all[view.MailKey(call, round)] = view.Mail{Result: result, Time: s.Time.UTC()}
			}
		}
		if len(page) < pageSize {
			return nil
		}
	}
}

// Delete ends a session: it drops the log and waits until that is done. It returns code unknown_session.
func (c *Client) Delete(ctx context.Context, app, session string) error {
	if err := c.checkSession(ctx, app, session); err != nil {
		return err
	}
	receipt, err := c.send(ctx, app, session, protocol.Input{Kind: protocol.InputDelete})
	if err != nil {
		return err
	}
	for u, err := range c.watch(ctx, app, session, 0, false) {
		switch {
		case err != nil && protocol.CodeOf(err) != protocol.CodeUnreachable:
			return err
		case u.Entry == nil:
		case u.Entry.Event.Stop != nil && u.Entry.Event.Stop.Kind == protocol.StopDeleted:
			return nil
		default:
			for _, in := range u.Entry.Event.Inputs {
				if in.ID == receipt.InputID && in.Refused != nil {
					return &protocol.Error{Code: in.Refused.Code, Public: in.Refused.Message}
				}
			}
		}
	}
	return protocol.ContextError(ctx)
}

// ContentText is the text of a recorded content, without the model's thoughts.
func ContentText(content json.RawMessage) string { return view.Text(view.Content(content)) }

// TurnText is all that a turn says, without the model's thoughts.
func TurnText(t *protocol.Turn) string { return view.Said(t) }
