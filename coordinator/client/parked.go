package client

import (
	"context"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// What a parked call may wait for.
const (
	WaitsConfirmation = "confirmation" // a person's decision: see Client.Decide
	WaitsResult       = "result"       // a result from outside, or of a tool that takes long: see Client.Complete
)

// Parked is a call that waits, as the index of what waits has it.
type Parked struct {
	protocol.Parked
	Revision uint64 `json:"revision"` // of its record: it grows with each change
}

// WithPool reports whether the call is queued for its tool's workers, or with one: nobody outside is waited for.
func (p *Parked) WithPool() bool { return p.Confirmation == nil && p.Round == 0 }

// Verified reports whether the confirmation's digest is that of what the record shows: the session, the call, its tool and
// declaration, the exact bytes of the arguments and the expiry. What is not verified must not be agreed to.
func (p *Parked) Verified() bool {
	q := p.Confirmation
	if q == nil {
		return false
	}
	call := protocol.Call{ID: p.Call, Tool: p.Tool, Digest: p.Digest}
	return q.Digest == protocol.ConfirmationDigest(p.Session, &call, p.Args, q.Expires, q.ID)
}

// ParkedFilter says which of the waiting calls are wanted. Empty fields take any. App and Session narrow what the broker
// reads, the others what is left of it.
type ParkedFilter struct {
	Kind    string // WaitsConfirmation or WaitsResult
	App     string
	Session string
	Tool    string
	User    string
}

func (f *ParkedFilter) check() error {
	if f.Kind != "" && f.Kind != WaitsConfirmation && f.Kind != WaitsResult {
		return protocol.Errorf(protocol.CodeUsage, "kind %q: a call waits for a %s or a %s", f.Kind, WaitsConfirmation, WaitsResult)
	}
	for _, name := range []string{f.App, f.Tool} {
		if name != "" {
			if err := protocol.CheckName(name); err != nil {
				return err
			}
		}
	}
	if f.Session != "" {
		return protocol.CheckID(f.Session)
	}
	return nil
}

func (f *ParkedFilter) subject(n natswire.Names) string {
	return n.ParkSubject(orAny(f.App), orAny(f.Session), "*")
}

// everything matches all that a stream holds. The broker counts what is left behind each batch that it sends: of everything
// it knows the number, of any other subject it walks all that match. Of 100,000 records a batch takes 1 ms or 60.
const everything = ">"

func (f *ParkedFilter) takes(p *Parked) bool {
	return (f.Kind == "" || f.Kind == p.Waits()) && (f.Tool == "" || f.Tool == p.Tool) && (f.User == "" || f.User == p.User) &&
		(f.App == "" || f.App == p.App) && (f.Session == "" || f.Session == p.Session)
}

func orAny(token string) string {
	if token == "" {
		return "*"
	}
	return token
}

// ParkedPage is a piece of the list of what waits, in the order of the records' last changes.
type ParkedPage struct {
	Parked []Parked `json:"parked"`
	Next   uint64   `json:"next,omitempty"` // where the next page begins; 0 is the end
}

// Limits of one read of the index: how many records at once, and how many a page holds that names no limit.
const (
	parkedBatch = 1000
	parkedLimit = 100
)

// Parked lists up to limit waiting calls (0 is 100) from revision from on, 0 is the beginning: of any number of calls that
// wait, a page reads no more than it needs. It may lack what happened a moment ago; records that cannot be read are
// left out, since the logs are the truth and the index is written anew from them. It returns codes usage, bad_name and bad_id.
func (c *Client) Parked(ctx context.Context, f ParkedFilter, from uint64, limit int) (ParkedPage, error) {
	if err := f.check(); err != nil {
		return ParkedPage{}, err
	}
	if limit <= 0 {
		limit = parkedLimit
	}
	page := ParkedPage{Parked: []Parked{}}
	batch, subject := min(limit, parkedBatch), everything
	if f.App != "" || f.Session != "" {
		subject = f.subject(c.cfg.Names)
	}
	for {
		stored, err := c.readParked(ctx, subject, from, batch)
		if err != nil {
			return page, err
		}
		for _, s := range stored {
			from = s.Seq + 1
			if p, ok := c.parkedOf(s); ok && f.takes(&p) {
				page.Parked = append(page.Parked, p)
			}
			if len(page.Parked) == limit {
				page.Next = from
				return page, nil
			}
		}
		if len(stored) < batch {
			return page, nil
		}
		batch = parkedBatch // what was left out is made up for in large steps
	}
}

func (c *Client) readParked(ctx context.Context, subject string, from uint64, limit int) ([]natswire.Stored, error) {
	stored, err := c.cfg.Bus.Read(ctx, c.cfg.Names.ParkStream(), subject, max(from, 1), limit)
	if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
		return nil, err
	}
	return stored, nil
}

// parkedOf reads a record. A removed one, and one that lies about its key, is none.
func (c *Client) parkedOf(s natswire.Stored) (Parked, bool) {
	app, session, call, ok := c.cfg.Names.ParsePark(s.Subject)
	if !ok || natswire.KeyDeleted(s.Header) {
		return Parked{}, false
	}
	p := Parked{Revision: s.Seq}
	if protocol.Decode(s.Data, &p.Parked, protocol.MessageLimits) != nil || p.App != app || p.Session != session || p.Call != call {
		return Parked{}, false
	}
	return p, protocol.CheckName(p.Tool) == nil
}

// ParkedCall reads what one call waits for, as it is now. It returns code not_found when it does not wait.
func (c *Client) ParkedCall(ctx context.Context, app, session, call string) (Parked, error) {
	for _, id := range []string{app, session, call} {
		if err := protocol.CheckID(id); err != nil {
			return Parked{}, err
		}
	}
	s, err := c.cfg.Bus.Last(ctx, c.cfg.Names.ParkStream(), c.cfg.Names.ParkSubject(app, session, call))
	if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
		return Parked{}, err
	}
	if p, ok := c.parkedOf(s); err == nil && ok {
		return p, nil
	}
	return Parked{}, protocol.Errorf(protocol.CodeNotFound, "call %s of session %s does not wait", call, session)
}
