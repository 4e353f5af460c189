package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolfabric/toolfabric/cmd/internal/host"
	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

// app is an agent that is served: its coordinator, and its worker when it has tools.
type app struct {
	fabric *fabric
	agent  agent.Agent
	served served
	uses   int // guarded by fabric.mu
	stop   context.CancelFunc
	ready  chan struct{} // closed once messages are taken and all tools are known
	ended  chan struct{} // closed when both have ended
	err    error         // why they ended; read after ended
}

// minSlots is how many calls run at once: as many as one answer of a model may ask for.
const minSlots = 64

// serve finds or starts the app of an agent.
func (f *fabric) serve(a agent.Agent, s served) (*app, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if was := f.apps[a.Name()]; was != nil {
		if was.agent != a {
			return nil, protocol.Errorf(protocol.CodeUsage, "runner: another agent named %s is served here; make an agent once and keep it, or give each a name of its own", a.Name())
		}
		if !slices.Equal(was.served.plugins, s.plugins) {
			return nil, protocol.Errorf(protocol.CodeUsage, "runner: agent %s is served here with other plugins; give all of its runners the same", a.Name())
		}
		was.uses++
		return was, nil
	}
	if f.apps == nil {
		return nil, errClosed
	}
	started, err := f.start(a, s)
	if err != nil {
		return nil, err
	}
	f.apps[a.Name()] = started
	return started, nil
}

func (f *fabric) start(root agent.Agent, s served) (*app, error) {
	a := &app{fabric: f, agent: root, served: s, uses: 1, ready: make(chan struct{}), ended: make(chan struct{})}
	c, err := coordinator.New(coordinator.Config{
		Bus: f.conn, Names: f.conn.Names(), Agents: []agent.Agent{root}, Plugins: s.plugins, Logger: f.log, Ready: sync.OnceFunc(func() { close(a.ready) }),
	})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	a.stop = stop
	var work func(context.Context) error
	present := newRoll(s)
	if len(s.tools)+len(s.sets) > 0 {
		cfg := f.workerConfig(s, present)
		if len(s.tools) > 0 {
			if _, err := worker.New(cfg); err != nil { // what is wrong with them is said at construction
				stop()
				return nil, err
			}
		}
		sets := make([]tool.Toolset, len(s.sets))
		for i, set := range s.sets {
			sets[i] = present.calls(set)
		}
		work = func(ctx context.Context) error { return host.Run(ctx, cfg, sets) }
	}
	go a.run(ctx, c, work, present.all)
	return a, nil
}

func (f *fabric) workerConfig(s served, present *roll) worker.Config {
	var grace time.Duration
	if f.inMemory() {
		grace = -1 // nobody is left to read the results
	}
	return worker.Config{
		Bus: f.conn, Names: f.conn.Names(), Tools: s.tools, Slots: max(minSlots, len(s.tools)), Grace: grace, Logger: f.log,
		Listener: worker.Events{Registered: present.registered},
	}
}

// run runs worker and coordinator until ctx ends or one of them does.
func (a *app) run(ctx context.Context, c *coordinator.Coordinator, work func(context.Context) error, present <-chan struct{}) {
	defer close(a.ended)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	var mu sync.Mutex
	do := func(what string, run func(context.Context) error) {
		running.Go(func() {
			defer cancel()
			if err := run(ctx); err != nil {
				mu.Lock()
				a.err = errors.Join(a.err, fmt.Errorf("%s of agent %s: %w", what, a.agent.Name(), err))
				mu.Unlock()
			}
		})
	}
	if work != nil {
		do("the worker", work)
	}
	if !a.fabric.inMemory() {
		do("the care of the queues", a.fabric.conn.KeepSentinels)
	}
	select {
	case <-present: // first the tools: else the first message might be answered without them
		do("the coordinator", c.Run)
	case <-ctx.Done():
	}
	running.Wait()
}

// await returns when the app takes messages.
func (a *app) await(ctx context.Context) error {
	select {
	case <-a.ready:
		return nil
	default:
	}
	select {
	case <-a.ready:
		return nil
	case <-a.ended:
		return errors.Join(errClosed, a.err)
	case <-a.fabric.gone.Done():
		return context.Cause(a.fabric.gone)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end drains and waits.
func (a *app) end() {
	a.stop()
	<-a.ended
}

// release gives back one use.
func (a *app) release() {
	f := a.fabric
	f.mu.Lock()
	a.uses--
	last := a.uses == 0 && f.apps[a.agent.Name()] == a
	if last {
		delete(f.apps, a.agent.Name())
	}
	f.mu.Unlock()
	if last {
		a.end()
	}
}
