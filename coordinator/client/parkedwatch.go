package client

import (
	"context"
	"iter"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// ParkedUpdate is one thing a watcher of what waits sees; exactly one field is set.
type ParkedUpdate struct {
	Parked  *Parked    // a call waits, or waits for something else than before
	Gone    *ParkedKey // a call waits no more; it may be one that was never told of
	Current bool       // all that waited when the watch began was told
}

// ParkedKey names a call in the index.
type ParkedKey struct {
	App     string `json:"app"`
	Session string `json:"session"`
	Call    string `json:"call"`
}

// WatchParked yields the waiting calls that f takes from revision from on (0 is the beginning), then once Current, and then
// each change as it comes, in order. A call whose record changes twice at once is told of once. It goes on until the
// caller stops ranging or ctx ends, which yields the end as an error. An error of code bus_unreachable does not end it:
// ranging on tries again.
func (c *Client) WatchParked(ctx context.Context, f ParkedFilter, from uint64) iter.Seq2[ParkedUpdate, error] {
	return func(yield func(ParkedUpdate, error) bool) {
		if err := f.check(); err != nil {
			yield(ParkedUpdate{}, err)
			return
		}
		signal := make(chan struct{}, 1)
		// What is heard here is only a sign to look: whether the broker took it is seen in the stream.
		unsubscribe, err := c.cfg.Bus.Subscribe(f.subject(c.cfg.Names), func(natswire.Msg) {
			select {
			case signal <- struct{}{}:
			default:
			}
		})
		if err != nil {
			yield(ParkedUpdate{}, err)
			return
		}
		defer unsubscribe()
		w := parkedWatch{c: c, filter: f, next: from, yield: yield}
		for pause := firstLook; ; {
			read, ok := w.read(ctx)
			if !ok {
				return
			}
			if read {
				pause = firstLook
			}
			fired, stop := c.cfg.Clock.After(pause)
			select {
			case <-ctx.Done():
				stop()
				yield(ParkedUpdate{}, protocol.ContextError(ctx))
				return
			case <-signal:
				pause = firstLook
			case <-fired:
				pause = min(2*pause, lastLook)
			}
			stop()
		}
	}
}

type parkedWatch struct {
	c       *Client
	filter  ParkedFilter
	next    uint64
	current bool
	yield   func(ParkedUpdate, error) bool
}

// read yields what is new. It reports whether there was anything, and whether to go on.
func (w *parkedWatch) read(ctx context.Context) (read, ok bool) {
	subject := everything
	if w.filter.Session != "" {
		subject = w.filter.subject(w.c.cfg.Names)
	}
	for {
		stored, err := w.c.readParked(ctx, subject, w.next, parkedBatch)
		if err != nil {
			if ctx.Err() != nil {
				return read, true // said once, by the caller
			}
			return read, w.yield(ParkedUpdate{}, err) && protocol.CodeOf(err) == protocol.CodeUnreachable
		}
		for _, s := range stored {
			w.next = s.Seq + 1
			if u, told := w.update(s); told && !w.yield(u, nil) {
				return true, false
			}
		}
		read = read || len(stored) > 0
		if len(stored) == parkedBatch {
			continue
		}
		if !w.current {
			w.current = true
			return read, w.yield(ParkedUpdate{Current: true}, nil)
		}
		return read, true
	}
}

func (w *parkedWatch) update(s natswire.Stored) (ParkedUpdate, bool) {
	if natswire.KeyDeleted(s.Header) {
		app, session, call, ok := w.c.cfg.Names.ParsePark(s.Subject)
		ours := (w.filter.App == "" || w.filter.App == app) && (w.filter.Session == "" || w.filter.Session == session)
		return ParkedUpdate{Gone: &ParkedKey{app, session, call}}, ok && ours && w.current
	}
	p, ok := w.c.parkedOf(s)
	return ParkedUpdate{Parked: &p}, ok && w.filter.takes(&p)
}
