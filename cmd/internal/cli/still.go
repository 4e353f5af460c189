package cli

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
)

// When a call that is silent is spoken of: first after stillFirst, then after twice the pause each time.
const (
	stillEvery = 500 * time.Millisecond
	stillFirst = 2 * time.Second
	stillLast  = time.Minute
	poolWait   = time.Second // for the registry's word on who serves
)

// still tells of calls that have been silent for long, and why when nobody serves their tool.
func (p *printer) still(ctx context.Context, c *client.Client, now time.Time) {
	for _, open := range p.calls {
		if now.Sub(open.told) < open.pause || p.rests && slices.ContainsFunc(p.parked.Calls, func(c client.Parked) bool { return c.Call == open.call.ID }) {
			continue
		}
		open.told, open.pause = now, min(2*open.pause, stillLast)
		ctx, stop := context.WithTimeout(ctx, poolWait)
		pool, err := c.Pool(ctx, open.call.Tool)
		patience := protocol.DefaultQueueTimeout
		if t, err := c.Tool(ctx, open.call.Tool); err == nil && t.Declaration.QueueTimeout > 0 {
			patience = time.Duration(t.Declaration.QueueTimeout) * time.Millisecond
		}
		stop()
		p.tellStill(open, pool, err == nil, patience, now)
	}
}

// tellStill writes the line. known says that pool is what the registry has.
func (p *printer) tellStill(open *running, pool client.Pool, known bool, patience time.Duration, now time.Time) {
	tool, elapsed := term.EscapeLine(open.call.Tool), span(max(0, now.Sub(open.since)))
	mark := p.a.err.Paint(term.Dim, "…")
	if known && pool.Serving() == 0 && pool.InFlight == 0 {
		p.talk("%s no worker serves %s now; waiting up to %s for one %s", mark, tool, patience, p.a.err.Paint(term.Dim, elapsed))
		return
	}
	by := open.worker
	if known && len(pool.Workers) == 1 {
		by = cmp.Or(by, pool.Workers[0].Worker)
	}
	if by != "" {
		elapsed += ", by " + term.EscapeLine(short(by))
	}
	what := "is still running"
	if known && pool.InFlight == 0 && pool.Pending > 0 {
		what = "still waits for a free worker"
	}
	p.talk("%s %s %s %s", mark, tool, what, p.a.err.Paint(term.Dim, elapsed))
}
