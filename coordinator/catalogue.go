package coordinator

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/internal/turn"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// catalogue is the tools that models can call, as the bucket of tools has them. It accepts what workers register, makes
// the consumers of their pools, and keeps a copy that is read on every turn. Messages about changes are only hints: it
// reads bucket and registry anew every rescan.
type catalogue struct {
	c      *Coordinator
	nudged chan struct{}
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.RWMutex // guards what follows
	tools   map[string][]*accepted
	alive   map[version]time.Time // last beat, local clock
	refused map[string]bool       // what was refused and said so once: digests, and what was wrong under a subject
	news    map[string]bool       // tools of which a beat told something new since the last look; nil is all of them

	// What follows is of the one goroutine that looks: start's, then its own.
	limits map[string]int // MaxActive that each pool's consumer was last given
	due    map[string]int // MaxActive of the pools whose consumer is to be made or changed
}

// accepted is one version of a tool.
type accepted struct {
	declaration protocol.Declaration
	digest      string
	seq         uint64 // in the bucket: the newest is the one offered
	// schema compiles the declaration's parameters, once, when the tool is offered for the first time: of many tools a
	// coordinator's agents use few.
	schema func() (*invoke.Schema, error)
}

func newAccepted(d protocol.Declaration, digest string, seq uint64) *accepted {
	return &accepted{declaration: d, digest: digest, seq: seq, schema: sync.OnceValues(func() (*invoke.Schema, error) { return invoke.CompileSchema(d.Parameters) })}
}

// version names one version of a tool.
type version struct{ tool, digest string }

const (
	rescan   = 10 * time.Second
	beatLife = 20 * time.Second // a version without a beat for this long is not preferred any more

	atOnce  = 100 // consumers that are made before the catalogue looks again for what is new
	newsMax = 50  // tools that are looked at one by one; of more it looks at all
)

func newCatalogue(c *Coordinator) *catalogue {
	return &catalogue{c: c, nudged: make(chan struct{}, 1), tools: map[string][]*accepted{}, alive: map[version]time.Time{}, refused: map[string]bool{}, limits: map[string]int{}, due: map[string]int{}}
}

func (t *catalogue) start(ctx context.Context) error {
	n := t.c.cfg.Names
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t.cancel = cancel
	beats, err := t.c.cfg.Bus.Subscribe(n.RegistrationSubject("*", "*"), func(m natswire.Msg) {
		defer t.c.contain("a listener for registrations")
		if r, err := t.registration(m.Subject, m.Data); err == nil && t.stale(r) {
			t.wake()
		}
	})
	if err != nil {
		cancel()
		return err
	}
	if err := t.look(ctx, true); err != nil {
		beats()
		cancel()
		return err
	}
	t.done.Go(func() {
		defer beats()
		t.keep(run)
	})
	return nil
}

// keep looks for what is new until ctx ends. Consumers are made while there is nothing to look at.
func (t *catalogue) keep(ctx context.Context) {
	for ctx.Err() == nil {
		if len(t.due) > 0 && len(t.nudged) == 0 {
			t.provide(ctx)
			continue
		}
		all := false
		fired, stop := t.c.cfg.Clock.After(rescan)
		select {
		case <-ctx.Done():
		case <-fired:
			all = true
		case <-t.nudged:
		}
		stop()
		if ctx.Err() != nil { // which may have come with the rest
			return
		}
		if err := t.look(ctx, all); err != nil && ctx.Err() == nil {
			t.c.cfg.Logger.Warn("cannot read the registry; trying again", "error", err)
		}
	}
}

func (t *catalogue) stop() {
	t.cancel()
	t.done.Wait()
}

// nudge has the catalogue look at all tools.
func (t *catalogue) nudge() {
	t.mu.Lock()
	t.news = nil
	t.mu.Unlock()
	t.wake()
}

func (t *catalogue) wake() {
	select {
	case t.nudged <- struct{}{}:
	default:
	}
}

// stale notes a beat and reports whether it tells something new.
func (t *catalogue) stale(r protocol.Registration) bool {
	name := r.Declaration.Name
	t.mu.Lock()
	defer t.mu.Unlock()
	digest, known := identify(t.tools[name], &r.Declaration)
	if known && !r.Draining {
		t.alive[version{name, digest}] = t.c.cfg.Clock.Now()
	}
	if known && !r.Waiting || t.refused[digest] {
		return false
	}
	if t.news != nil {
		t.news[name] = true
	}
	return true
}

// identify is d's digest, and whether it is one of the versions: that of an equal one costs nothing.
func identify(versions []*accepted, d *protocol.Declaration) (digest string, known bool) {
	for _, a := range versions {
		if a.declaration.SameContract(d) {
			return a.digest, true
		}
	}
	digest = d.Digest()
	return digest, slices.ContainsFunc(versions, func(a *accepted) bool { return a.digest == digest })
}

// registration reads a beat. What it says about another tool than its subject's is nobody's word: credentials allow a
// worker that subject only.
func (t *catalogue) registration(subject string, data []byte) (protocol.Registration, error) {
	r, err := protocol.DecodeRegistration(data)
	if err != nil {
		return r, err
	}
	if tool, worker, ok := t.c.cfg.Names.ParseRegistration(subject); !ok || tool != r.Declaration.Name || worker != r.Worker {
		return r, protocol.Errorf(protocol.CodeBadMessage, "it declares tool %s of worker %s on the subject of others", r.Declaration.Name, r.Worker)
	}
	return r, nil
}

func (t *catalogue) read(m natswire.Stored) (a *accepted) {
	defer t.c.contain("the declaration on " + m.Subject)
	if len(m.Data) == 0 {
		return nil // a marker: the tool was forgotten
	}
	name, digest, _ := t.c.cfg.Names.ParseTool(m.Subject)
	for _, a := range t.versions(name) {
		if a.digest == digest && a.seq == m.Seq {
			return a
		}
	}
	v, err := protocol.DecodeAccepted(m.Data)
	if err != nil {
		t.c.cfg.Logger.Warn("a declaration in the bucket of tools cannot be read", "subject", m.Subject, "error", err)
		return nil
	}
	if v.Declaration.Name != name || v.Declaration.Digest() != digest {
		t.c.cfg.Logger.Warn("a declaration in the bucket of tools is left out: it is another one than its key says", "subject", m.Subject)
		return nil
	}
	return newAccepted(v.Declaration, digest, m.Seq)
}

func (t *catalogue) versions(name string) []*accepted {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.tools[name]
}

// learn looks into the bucket for tools that are asked for and not known: another coordinator may have accepted one a moment
// ago.
func (t *catalogue) learn(ctx context.Context, names ...string) {
	for _, name := range names {
		if len(t.versions(name)) > 0 || protocol.CheckName(name) != nil {
			continue
		}
		kept, err := t.c.cfg.Bus.Latest(ctx, t.c.cfg.Names.ToolsStream(), t.c.cfg.Names.ToolSubject(name, "*"))
		if err != nil {
			continue // unknown for now; the next scan finds it
		}
		var found []*accepted
		for _, m := range kept {
			if a := t.read(m); a != nil {
				found = append(found, a)
			}
		}
		if len(found) > 0 {
			t.mu.Lock()
			t.tools[name] = found
			t.mu.Unlock()
		}
	}
}

// best is the version of a tool that models are shown: the newest of those that have a worker, else the newest; nil for none.
func (t *catalogue) best(name string) *accepted {
	now := t.c.cfg.Clock.Now()
	t.mu.RLock()
	defer t.mu.RUnlock()
	var best *accepted
	bestLives := false
	for _, a := range t.tools[name] {
		beat, ok := t.alive[version{name, a.digest}]
		lives := ok && now.Sub(beat) < beatLife
		if best == nil || lives && !bestLives || lives == bestLives && a.seq > best.seq {
			best, bestLives = a, lives
		}
	}
	return best
}

// offer is what models are shown of a tool.
func (t *catalogue) offer(name string) (turn.Offer, bool) {
	best := t.best(name)
	if best == nil {
		return turn.Offer{}, false
	}
	schema, err := best.schema()
	if err != nil { // whoever accepted it could read it
		t.c.cfg.Logger.Warn("a tool is left out: its schema cannot be read here", "tool", name, "digest", best.digest, "error", err)
		return turn.Offer{}, false
	}
	return turn.Offer{Declaration: best.declaration, Pinned: best.digest, Schema: schema}, true
}

// offers is the offers of some tools; one that never registered is left out.
func (t *catalogue) offers(names []string) []turn.Offer {
	offers := make([]turn.Offer, 0, len(names))
	for _, name := range names {
		if o, ok := t.offer(name); ok {
			offers = append(offers, o)
		}
	}
	return offers
}

// about is the offers that judging a call of a tool takes: that of the tool, or, when there is none, the names of all, so
// that close ones can be told.
func (t *catalogue) about(name string) []turn.Offer {
	if o, ok := t.offer(name); ok {
		return []turn.Offer{o}
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make([]turn.Offer, 0, len(t.tools))
	for other := range t.tools {
		if other != name {
			all = append(all, turn.Offer{Declaration: protocol.Declaration{Name: other}})
		}
	}
	slices.SortFunc(all, func(a, b turn.Offer) int { return strings.Compare(a.Name, b.Name) })
	return all
}
