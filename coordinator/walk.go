package coordinator

import (
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

const (
	walkEvery = 10 * time.Minute
	walkAge   = time.Minute // younger events have their guard for certain
	walkPage  = 256
)

// walk is the backstop for a lost TIMERS stream and a lost index, and for nothing else: slowly, it goes over the logs. For
// each session whose log does not end in a stop it sets a guard that fires at once; whoever gets that asks the owner first.
// Of each session that waits, and of whose calls PARK lacks one or TIMERS knows nothing, it lists the calls
// and sets the timer. A PARK that knows nothing of an app is taken for lost when a coordinator starts.
func (c *Coordinator) walk(ctx context.Context) {
	h := fnv.New32a()
	h.Write([]byte(c.id))
	jitter := time.Duration(h.Sum32()%1000) * walkEvery / 1000
	apps := append([]string{protocol.CallsApp}, slices.Sorted(maps.Keys(c.agents))...)
	over := func(app string) {
		if err := c.walkApp(ctx, app); err != nil && ctx.Err() == nil {
			c.cfg.Logger.Warn("the walk over the logs stopped early", "app", app, "error", err)
		}
	}
	for _, app := range apps {
		if c.unlisted(ctx, app) {
			over(app)
		}
	}
	for natswire.Sleep(ctx, c.cfg.Clock, walkEvery/2+jitter) == nil {
		for _, app := range apps {
			over(app)
		}
	}
}

// unlisted reports whether PARK holds nothing of an app, not even what was taken from it.
func (c *Coordinator) unlisted(ctx context.Context, app string) bool {
	_, err := c.cfg.Bus.Next(ctx, c.cfg.Names.ParkStream(), c.cfg.Names.ParkSubject(app, "*", "*"), 1)
	return protocol.CodeOf(err) == protocol.CodeNotFound
}

// listed reports whether PARK lists all of the calls of a session.
func (c *Coordinator) listed(ctx context.Context, app, session string, calls []string) bool {
	keys, err := c.cfg.Bus.Latest(ctx, c.cfg.Names.ParkStream(), c.cfg.Names.ParkSubject(app, session, "*"))
	if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
		return true // it cannot be said, and the next walk looks again
	}
	there := map[string]bool{}
	for _, k := range keys {
		there[k.Subject] = !natswire.KeyDeleted(k.Header)
	}
	return !slices.ContainsFunc(calls, func(call string) bool { return !there[c.cfg.Names.ParkSubject(app, session, call)] })
}

func (c *Coordinator) walkApp(ctx context.Context, app string) error {
	for from := uint64(1); ; {
		page, err := c.cfg.Bus.Read(ctx, c.cfg.Names.Log(), c.cfg.Names.LogFilter(app), from, walkPage)
		if err != nil || len(page) == 0 {
			return err
		}
		newest := map[string]natswire.Stored{}
		for _, m := range page {
			newest[m.Subject] = m
			from = m.Seq + 1
		}
		for _, subject := range slices.Sorted(maps.Keys(newest)) {
			m := newest[subject]
			if err := c.walkSession(ctx, m); err != nil {
				return err
			}
		}
	}
}

// walkSession looks at a session by the newest event that a page of the log had of it.
func (c *Coordinator) walkSession(ctx context.Context, m natswire.Stored) error {
	defer c.contain("the walk at " + m.Subject)
	fault.Point("K25")
	ev, err := protocol.DecodeEvent(m.Data)
	if err != nil {
		return nil
	}
	app, session, _ := c.cfg.Names.ParseLog(m.Subject)
	if ev.Stop != nil {
		if len(ev.Stop.Listed) > 0 && (!c.listed(ctx, app, session, ev.Stop.Listed) || c.untimed(ctx, app, session)) {
			return c.renew(ctx, key{app, session})
		}
		switch ev.Stop.Kind {
		case protocol.StopDrained:
			if !c.untimed(ctx, app, session) {
				return nil
			}
		case protocol.StopDeleted: // whoever gets its guard takes the log away
			if !c.remains(ctx, m) || !c.untimed(ctx, app, session) {
				return nil
			}
		default:
			return nil
		}
	}
	if c.time.Now().Sub(m.Time) < walkAge {
		return nil
	}
	state, _, _, err := c.journal.Load(ctx, app, session)
	if err != nil {
		return err
	}
	stopped := !state.Owned() && state.Stopped != protocol.StopDrained && state.Stopped != protocol.StopDeleted
	if stopped || state.Owned() && state.Coordinator == c.id || c.time.Now().UnixMilli()-state.At < walkAge.Milliseconds() {
		return nil
	}
	return natswire.SetGuard(ctx, c.cfg.Bus, c.cfg.Names, app, session, c.time.Now(),
		protocol.Guard{Coordinator: state.Coordinator, Adoption: state.Adoption, Expected: state.Seq})
}

// remains reports whether the log holds more than its newest event.
func (c *Coordinator) remains(ctx context.Context, newest natswire.Stored) bool {
	first, err := c.cfg.Bus.Next(ctx, c.cfg.Names.Log(), newest.Subject, 1)
	return err == nil && first.Seq < newest.Seq
}

// untimed reports whether TIMERS holds nothing that is still to fire in a session.
func (c *Coordinator) untimed(ctx context.Context, app, session string) bool {
	_, err := c.cfg.Bus.Next(ctx, c.cfg.Names.Timers(), c.cfg.Names.TimerSubject(app, session, "*"), 1)
	return protocol.CodeOf(err) == protocol.CodeNotFound
}

// renew lists what waits in a session and sets its timer, once more.
func (c *Coordinator) renew(ctx context.Context, k key) error {
	s := newSession(c, k)
	state, _, _, err := c.journal.Load(ctx, k.app, k.session)
	if err != nil || state.Owned() || len(state.Listing()) == 0 {
		return err
	}
	s.state = state
	if err := s.list(ctx, nil); err != nil {
		return err
	}
	return s.arm(ctx, state.Adoption, state.Due())
}
