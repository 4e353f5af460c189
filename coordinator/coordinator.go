// Package coordinator drives sessions: it takes inputs, asks models, records what they decide, has workers run the calls
// and brings the answers back. Coordinators are replicas without state of their own; whoever appends to a session's log
// drives it, and any other takes over from the log alone.
//
// It promises that nothing a model said is acted on before it is in the log, that each call ends once, and that every
// accepted input is folded once, whichever coordinators die. It keeps no lease and scans nothing to find work: every
// waiting input and every running session has a message in INPUT or TIMERS that comes back until the log shows it done.
package coordinator

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolfabric/toolfabric/coordinator/internal/journal"
	"github.com/toolfabric/toolfabric/coordinator/internal/turn"
	"github.com/toolfabric/toolfabric/coordinator/policy"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/crew"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/plugin"
)

// Config is what a coordinator is given. Bus is required; the streams exist (natswire.Provision).
type Config struct {
	Bus    natswire.Bus
	Names  natswire.Names
	Clock  natswire.Clock // nil is the machine's
	NewID  func() string  // unguessable ids; nil is protocol.NewID
	Agents []agent.Agent  // each is an app of its name, with the agents below it; made by llmagent.New
	Policy *policy.Policy // which calls people must agree to, beside what tools declare; nil adds nothing

	// Plugins are asked for all agents, in this order, before an agent's own callbacks. They are closed when Run has handed all
	// sessions over. Coordinators that serve one agent should have the same ones.
	Plugins []*plugin.Plugin

	Grace          time.Duration // how long Run may take to hand its sessions over; 0 is 20 s
	CallLease      time.Duration // silence after which a call is delivered to another worker; 0 is 5 s
	CallDeliveries int           // deliveries of a call before it is given up as poison; 0 is 5

	Listener Events // what it tells of its work; the zero value tells nobody

	Ready  func()               // called once, when inputs are taken; nil tells nobody
	Logger *slog.Logger         // nil discards
	Tracer trace.TracerProvider // nil is the global one
}

// Times that are part of the protocol between coordinators.
const (
	guardDelay   = 15 * time.Second // after which a coordinator that owns a session is asked whether it lives
	inputLease   = 5 * time.Second  // redelivery of an input that nobody settled
	ownTimeout   = 3 * time.Second  // one try to ask an owner; two silent tries mean that it is gone
	busTimeout   = 5 * time.Second
	intakeCredit = 256 // inputs and timers in hand at once
)

func (c *Config) fill() error {
	if c.Bus == nil {
		return protocol.Errorf(protocol.CodeUsage, "coordinator: Config.Bus is missing")
	}
	if c.Clock == nil {
		c.Clock = natswire.SystemClock{}
	}
	if c.NewID == nil {
		c.NewID = protocol.NewID
	}
	if c.Grace == 0 {
		c.Grace = 20 * time.Second
	}
	if c.CallLease == 0 {
		c.CallLease = 5 * time.Second
	}
	if c.CallDeliveries == 0 {
		c.CallDeliveries = 5
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Tracer == nil {
		c.Tracer = otel.GetTracerProvider()
	}
	return nil
}

// Coordinator is one replica. Its id is new for each process start, so that what an earlier one promised is not asked of it.
type Coordinator struct {
	cfg       Config
	id        string
	agents    map[string]*turn.Tree              // by app
	hooks     map[*llmagent.LLMAgent]*turn.Hooks // of agents that have any; nil is an agent that is gone
	hooked    map[string]bool                    // apps whose calls callbacks have a say in when they have been made
	journal   journal.Journal
	time      *natswire.BrokerTime
	catalogue *catalogue
	shelf     *shelf
	tracer    trace.Tracer

	mu       sync.Mutex // guards sessions and draining
	sessions map[key]*session
	draining bool
	running  crew.Crew
}

type key struct{ app, session string }

func (k key) compare(other key) int {
	return cmp.Or(strings.Compare(k.app, other.app), strings.Compare(k.session, other.session))
}

// New checks the configuration. It starts nothing.
func New(cfg Config) (*Coordinator, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	c := &Coordinator{
		cfg: cfg, id: cfg.NewID(), agents: map[string]*turn.Tree{}, hooks: map[*llmagent.LLMAgent]*turn.Hooks{}, hooked: map[string]bool{}, sessions: map[key]*session{},
		journal: journal.Journal{Bus: cfg.Bus, Names: cfg.Names, Clock: cfg.Clock},
		time:    &natswire.BrokerTime{Clock: cfg.Clock},
		shelf:   newShelf(shelfRoom),
		tracer:  cfg.Tracer.Tracer("github.com/toolfabric/toolfabric/coordinator"),
	}
	c.catalogue = newCatalogue(c)
	if err := checkPlugins(cfg.Plugins); err != nil {
		return nil, err
	}
	if h := turn.NewHooks(nil, cfg.Plugins); h != nil {
		c.hooks[nil] = h
	}
	for _, a := range cfg.Agents {
		tree, err := turn.NewTree(a)
		if err != nil {
			return nil, err
		}
		if a.Name() == protocol.CallsApp || c.agents[a.Name()] != nil {
			return nil, protocol.Errorf(protocol.CodeUsage, "agent %q: the name is taken", a.Name())
		}
		c.agents[a.Name()] = tree
		c.hook(a.Name(), tree.Root())
	}
	return c, nil
}

// ID is the coordinator's id.
func (c *Coordinator) ID() string { return c.id }

// Run serves its apps until ctx ends, then hands every session to the other coordinators and returns. It returns an error
// when it cannot start; what happens to the broker later is waited out.
func (c *Coordinator) Run(ctx context.Context) error {
	work, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)
	silence, err := c.cfg.Bus.Subscribe(c.cfg.Names.OwnSubject(c.id), func(m natswire.Msg) { c.answerOwn(work, m) })
	if err != nil {
		return err
	}
	defer silence()
	defer c.cfg.Bus.Missed(c.lookAround)()

	intakes := c.intakes()
	for _, in := range intakes {
		if err := c.insist(ctx, func() error { return c.cfg.Bus.EnsureConsumer(ctx, in.consumer) }); err != nil {
			return err
		}
	}
	if err := c.insist(ctx, func() error { return c.catalogue.start(ctx) }); err != nil {
		return err
	}
	defer c.catalogue.stop()
	var serving sync.WaitGroup
	for _, in := range intakes {
		serving.Go(func() { c.serve(ctx, work, in) })
	}
	serving.Go(func() { c.walk(ctx) })
	c.cfg.Logger.Info("coordinator is up", "coordinator", c.id, "apps", len(c.agents)+1)
	if c.cfg.Ready != nil {
		c.cfg.Ready()
	}

	<-ctx.Done()
	defer c.closePlugins()
	serving.Wait() // first: else the word that a session is free may come to the one who leaves, and again only after its lease
	c.drain(abort)
	return nil
}

// startPatience is how long a coordinator tries to start on a broker that is there and slow.
const startPatience = 30 * time.Second

// insist repeats a step of the start while the broker does not answer.
func (c *Coordinator) insist(ctx context.Context, step func() error) error {
	for began := c.cfg.Clock.Now(); ; {
		err := step()
		if protocol.CodeOf(err) != protocol.CodeUnreachable || c.cfg.Clock.Now().Sub(began) > startPatience {
			return err
		}
		if natswire.Sleep(ctx, c.cfg.Clock, time.Second) != nil {
			return err
		}
	}
}

// drain asks every session to stop and waits for all of them, at most Grace.
func (c *Coordinator) drain(abort context.CancelCauseFunc) {
	c.mu.Lock()
	c.draining = true
	for _, k := range slices.SortedFunc(maps.Keys(c.sessions), key.compare) {
		c.sessions[k].inbox.put(leave{})
	}
	c.mu.Unlock()
	done := c.running.Dismiss()
	late, stop := c.cfg.Clock.After(c.cfg.Grace)
	defer stop()
	select {
	case <-done:
	case <-late:
		abort(protocol.Errorf(protocol.CodeCancelled, "the coordinator's grace to drain ran out"))
		<-done
	}
}

// lookAround has every session look at its mailboxes, and the catalogue at the registry: they may have missed something.
func (c *Coordinator) lookAround() {
	c.catalogue.nudge()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range slices.SortedFunc(maps.Keys(c.sessions), key.compare) {
		c.sessions[k].inbox.put(missed{})
	}
}

// give hands an item to the session's loop, starting one if there is none. It returns false while draining.
func (c *Coordinator) give(ctx context.Context, k key, item any) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sessions[k]; s != nil && s.inbox.put(item) {
		return true
	}
	if c.draining {
		return false
	}
	s := newSession(c, k)
	s.inbox.put(item)
	c.sessions[k] = s
	c.running.Go(func() { s.run(ctx) })
	return true
}

// find hands an item to the session's loop if there is one.
func (c *Coordinator) find(k key, item any) bool {
	c.mu.Lock()
	s := c.sessions[k]
	c.mu.Unlock()
	return s != nil && s.inbox.put(item)
}

// forget ends a loop whose inbox is empty; false means that it has more to do.
func (c *Coordinator) forget(s *session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !s.inbox.close() {
		return false
	}
	if c.sessions[s.key] == s {
		delete(c.sessions, s.key)
	}
	return true
}

// desk is where the confirmations of a session of user's are made now.
func (c *Coordinator) desk(k key, user string) turn.Desk {
	return turn.Desk{App: k.app, Session: k.session, User: user, Now: c.now(), NewID: c.cfg.NewID, Policy: c.cfg.Policy}
}

// now is the broker's time in Unix milliseconds.
func (c *Coordinator) now() int64 { return c.time.Now().UnixMilli() }

// recovered ends a session's loop that panicked. What it had in hand comes back, and its guard has a coordinator look at
// it again.
func (c *Coordinator) recovered(s *session) {
	if r := recover(); r != nil {
		k := s.key
		c.mu.Lock()
		left := s.inbox.abandon()
		delete(c.sessions, k)
		c.mu.Unlock()
		s.release() // else each panic would take some of the intake's credit with it
		release(left)
		c.panicked("the loop of session "+k.session, r)
	}
}
