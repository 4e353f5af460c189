package coordinator

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/toolfabric/toolfabric/protocol/fault"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// look reads what is new: the tools that beats told something of, or all.
func (t *catalogue) look(ctx context.Context, all bool) error {
	t.mu.Lock()
	news := t.news
	t.news = map[string]bool{}
	t.mu.Unlock()
	if all || news == nil || len(news) > newsMax {
		return t.scan(ctx)
	}
	for _, name := range slices.Sorted(maps.Keys(news)) {
		r, err := t.gather(ctx, name)
		if err != nil {
			return err // a later beat, or the next scan, finds it
		}
		t.mu.Lock()
		if versions := r.tools[name]; len(versions) > 0 {
			t.tools[name] = versions
		}
		t.mu.Unlock()
		t.want(r)
	}
	t.provide(ctx)
	return nil
}

// scan reads bucket and registry, and accepts what is new.
func (t *catalogue) scan(ctx context.Context) error {
	if state, err := t.c.cfg.Bus.ConsumerState(ctx, t.c.cfg.Names.DeadLetters(), poisonDurable); err == nil {
		t.c.time.Sync(state.Time)
	}
	r, err := t.gather(ctx, "*")
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.tools = r.tools // before the consumers: when a worker serves a tool, whoever made its consumer offers it
	// What nobody registers any more is forgotten.
	maps.DeleteFunc(t.alive, func(_ version, beat time.Time) bool { return r.at.Sub(beat) >= beatLife })
	maps.DeleteFunc(t.refused, func(what string, _ bool) bool { return !r.refused[what] })
	t.mu.Unlock()
	maps.DeleteFunc(t.limits, func(name string, _ int) bool { _, serves := r.pools[name]; return !serves })
	clear(t.due)
	t.want(r)
	t.provide(ctx)
	return nil
}

// reading is what one look at bucket and registry found.
type reading struct {
	at      time.Time // local clock
	tools   map[string][]*accepted
	pools   map[string]settings // of tools that have a worker that takes calls
	missing map[string]bool     // tools whose consumer is to be made
	refused map[string]bool     // as the catalogue's
}

// settings are those of the pool's worker that started last.
type settings struct {
	started   int64
	maxActive int
}

// gather reads about one tool, or about all for "*".
func (t *catalogue) gather(ctx context.Context, name string) (*reading, error) {
	n := t.c.cfg.Names
	kept, err := t.c.cfg.Bus.Latest(ctx, n.ToolsStream(), n.ToolSubject(name, "*"))
	if err != nil {
		return nil, err
	}
	r := &reading{tools: map[string][]*accepted{}, pools: map[string]settings{}, missing: map[string]bool{}, refused: map[string]bool{}}
	for _, m := range kept {
		if a := t.read(m); a != nil {
			r.tools[a.declaration.Name] = append(r.tools[a.declaration.Name], a)
		}
	}
	beats, err := t.c.cfg.Bus.Latest(ctx, n.Registry(), n.RegistrationSubject(name, "*"))
	if err != nil {
		return nil, err
	}
	r.at = t.c.cfg.Clock.Now()
	for _, m := range beats {
		t.hear(ctx, m, r)
	}
	return r, nil
}

// hear reads a worker's beat, and accepts what it declares.
func (t *catalogue) hear(ctx context.Context, m natswire.Stored, into *reading) {
	defer t.c.contain("the registration on " + m.Subject)
	fault.Point("K25")
	r, err := t.registration(m.Subject, m.Data)
	if err != nil {
		what := m.Subject + " " + err.Error()
		into.refused[what] = true
		t.refuse(what, "subject", m.Subject, err)
		return
	}
	name := r.Declaration.Name
	digest, known := identify(into.tools[name], &r.Declaration)
	if !known {
		a, err := t.accept(ctx, r, digest)
		if err != nil {
			into.refused[digest] = true
			t.refuse(digest, "subject", m.Subject, err)
			return
		}
		into.tools[name] = append(into.tools[name], a)
	}
	if !known || r.Waiting {
		into.missing[name] = true
	}
	if r.Draining {
		return
	}
	t.mu.Lock()
	t.alive[version{name, digest}] = into.at
	t.mu.Unlock()
	if p, serves := into.pools[name]; !serves || r.Started >= p.started {
		into.pools[name] = settings{r.Started, r.Declaration.MaxActive}
	}
}

// want notes the pools whose consumer is to be made or changed.
func (t *catalogue) want(r *reading) {
	for name, p := range r.pools {
		if limit, ok := t.limits[name]; !ok || limit != p.maxActive || r.missing[name] {
			t.due[name] = p.maxActive
			if r.missing[name] {
				delete(t.limits, name)
			}
		}
	}
}

// provide makes consumers that are due, at most atOnce of them: the broker takes longer for each the more there are.
func (t *catalogue) provide(ctx context.Context) {
	names := slices.Sorted(maps.Keys(t.due))
	for _, name := range names[:min(len(names), atOnce)] {
		limit := t.due[name]
		delete(t.due, name)
		_, known := t.limits[name]
		if err := t.ensure(ctx, name, limit, known); err != nil {
			t.c.cfg.Logger.Warn("cannot make the consumer of a pool", "tool", name, "error", err)
			continue // the next scan finds it due again
		}
		t.limits[name] = limit
	}
}

// ensure makes the consumer that a tool's workers pull from. Coordinators do it, so that a pool that scales from zero has
// a backlog to be seen. To ask what is there costs the broker a tenth of making it, so one that is not known is asked for.
func (t *catalogue) ensure(ctx context.Context, name string, maxActive int, known bool) error {
	n := t.c.cfg.Names
	if maxActive == 0 {
		maxActive = -1
	}
	want := natswire.Consumer{
		Stream: n.Calls(), Durable: name, Filter: n.CallSubject(name),
		AckWait: t.c.cfg.CallLease, MaxDeliver: t.c.cfg.CallDeliveries, MaxAckPending: maxActive,
	}
	if !known {
		if is, err := t.c.cfg.Bus.ConsumerState(ctx, want.Stream, want.Durable); err == nil && is.Config == want {
			return nil
		}
	}
	return t.c.cfg.Bus.EnsureConsumer(ctx, want)
}
