package client

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// FindParked returns the waiting call that id names: by the call's id, by the whole subject to decide or answer on, or by
// the id of its confirmation. Only the last one reads the whole index. It returns bad_id, and not_found with what became of
// the call or with an id that is close.
func (c *Client) FindParked(ctx context.Context, id string) (Parked, error) {
	n := c.cfg.Names
	if app, _, session, call, _, ok := n.ParseWake(id); ok {
		return c.ParkedCall(ctx, app, session, call)
	}
	if app, session, confirmation, _, ok := n.ParseApproval(id); ok {
		return c.scanParked(ctx, ParkedFilter{App: app, Session: session}, confirmation)
	}
	if err := protocol.CheckID(id); err != nil {
		return Parked{}, err
	}
	// Not a batch of one: the broker would count all records behind it. The leader's word is what the key holds now.
	held, err := c.cfg.Bus.Next(ctx, n.ParkStream(), n.ParkSubject("*", "*", id), 1)
	if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
		return Parked{}, err
	}
	if p, ok := c.parkedOf(held); err == nil && ok {
		return p, nil
	}
	waited := err == nil
	ends, err := c.CallEnds(ctx, id)
	if err != nil {
		return Parked{}, err
	}
	if len(ends) > 0 {
		last := ends[len(ends)-1]
		return Parked{}, protocol.Errorf(protocol.CodeNotFound, "call %s does not wait: it ended as %s; see it with toolfabric calls show %s", id, last.Result.Outcome, id)
	}
	if waited {
		return Parked{}, protocol.Errorf(protocol.CodeNotFound, "call %s does not wait any more: it goes on, or has ended", id)
	}
	return c.scanParked(ctx, ParkedFilter{}, id)
}

// scanParked looks for a confirmation, and on the way for ids that are close. Of a million records only those are read that
// hold its id somewhere.
func (c *Client) scanParked(ctx context.Context, f ParkedFilter, confirmation string) (Parked, error) {
	subject := everything
	if f.Session != "" {
		subject = f.subject(c.cfg.Names)
	}
	var known []string
	for from, more := uint64(1), true; more; {
		stored, err := c.readParked(ctx, subject, from, parkedBatch)
		if err != nil {
			return Parked{}, err
		}
		more = len(stored) == parkedBatch
		for _, s := range stored {
			from = s.Seq + 1
			_, _, call, ok := c.cfg.Names.ParsePark(s.Subject)
			if ok && len(known) < parkedBatch && !natswire.KeyDeleted(s.Header) {
				known = append(known, call)
			}
			if !bytes.Contains(s.Data, []byte(confirmation)) {
				continue
			}
			if p, ok := c.parkedOf(s); ok && p.Confirmation != nil && p.Confirmation.ID == confirmation {
				return p, nil
			}
		}
	}
	if meant := protocol.Meant(confirmation, known); meant != "" {
		return Parked{}, protocol.Errorf(protocol.CodeNotFound, "no call %s waits; did you mean %s? toolfabric calls ls lists what waits", confirmation, meant)
	}
	return Parked{}, protocol.Errorf(protocol.CodeNotFound, "no call %s waits, and no confirmation of that id; toolfabric calls ls lists what waits", confirmation)
}

// CallEnd is what a mailbox of a call holds: how a round of it ended.
type CallEnd struct {
	App     string          `json:"app,omitempty"` // empty for a call whose answer wakes nobody
	Session string          `json:"session"`
	Tool    string          `json:"tool"`
	Call    string          `json:"call"`
	Round   int             `json:"round"`
	Stored  time.Time       `json:"stored"` // JetStream timestamp
	Result  protocol.Result `json:"result"`
}

// CallEnds reads the stored results of a call, also of one that does not wait, in order of its rounds: the last one is how
// it ended, unless it is interim. None is a call that runs, waits, was never dispatched, or ended 30 days ago.
func (c *Client) CallEnds(ctx context.Context, call string) ([]CallEnd, error) {
	if err := protocol.CheckID(call); err != nil {
		return nil, err
	}
	n := c.cfg.Names
	var ends []CallEnd
	for _, mail := range []struct{ stream, subject string }{{n.Results(), n.CallResults(call)}, {n.Wake(), n.CallWakes(call)}} {
		stored, err := c.cfg.Bus.Latest(ctx, mail.stream, mail.subject)
		if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
			return nil, err
		}
		for _, s := range stored {
			if end, ok := endOf(n, s); ok {
				ends = append(ends, end)
			}
		}
	}
	slices.SortFunc(ends, func(a, b CallEnd) int { return a.Round - b.Round })
	return ends, nil
}

func endOf(n natswire.Names, s natswire.Stored) (CallEnd, bool) {
	end := CallEnd{Stored: s.Time.UTC()}
	var ok bool
	if end.Tool, end.Session, end.Call, end.Round, ok = n.ParseResult(s.Subject); !ok {
		if end.App, end.Tool, end.Session, end.Call, end.Round, ok = n.ParseWake(s.Subject); !ok {
			return end, false
		}
	}
	var err error
	end.Result, err = protocol.DecodeResult(s.Data)
	return end, err == nil
}
