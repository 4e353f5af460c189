package demo

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/natswire/embed"
)

// Lease is the silence after which a call of a dead worker goes to another: short, since somebody is watching.
const Lease = 2 * time.Second

// Config of a tour. All of it is required; the paths are absolute.
type Config struct {
	Binary string // toolfabric itself
	Dir    string // folder whose files are asked about
	Data   string // empty folder for all that the tour writes
	Show   Show
}

// Show is told what happens as it happens, by one goroutine.
type Show interface {
	Started(Process)
	Asked(dir, question string)
	Update(client.Update)
	Running(Running) // a call of measure has started and waits before its effect
	Killed(Process)
	Answered(text string)         // the agent's answer
	Waits(client.Parked)          // the session waits for this and nothing else
	Restarted(old, young Process) // the coordinator, while the session waited
	Does(command ...string)       // what the tour does now, as anybody would do it in a shell
}

// Running is a call in the hands of a worker.
type Running struct {
	Call    string
	Worker  string
	Attempt int
}

// NATS is the folder of the server's data below Config.Data.
func (c Config) NATS() string { return filepath.Join(c.Data, "nats") }

func (c Config) file(name string) string { return filepath.Join(c.Data, name) }

// Run makes the tour. It returns an error when something could not be shown at all; whether all of it was right is in
// Tour.Checks. Processes are gone when it returns.
func Run(ctx context.Context, cfg Config) (*Tour, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	t, err := run(ctx, cfg, fail)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, context.Canceled) {
		return nil, cause // why the wait that failed was ended
	}
	return t, err
}

func run(ctx context.Context, cfg Config, fail func(error)) (*Tour, error) {
	started := time.Now()
	var files []File
	var err error
	cfg.Dir, files, err = choose(cfg.Dir, cfg.file("samples"))
	if err != nil {
		return nil, err
	}
	if err := cfg.lay(); err != nil {
		return nil, err
	}
	server, err := embed.Start(embed.Config{Dir: cfg.NATS(), Listen: "127.0.0.1:0"})
	if err != nil {
		return nil, err
	}
	defer server.Shutdown()
	conn, err := natswire.Connect(ctx, natswire.Config{Name: "toolfabric demo", InProcess: server.InProcess()})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	c, err := client.New(client.Config{Bus: conn, Names: conn.Names()})
	if err != nil {
		return nil, err
	}

	fleet := &fleet{binary: cfg.Binary, dir: cfg.Dir, logs: cfg.file("logs"), failed: fail, asked: map[int]struct{}{}}
	defer fleet.stop()
	if err := cfg.staff(ctx, fleet, server.URL()); err != nil {
		return nil, err
	}
	if err := ready(ctx, conn, c); err != nil {
		return nil, err
	}

	t := &Tour{Agent: Agent, Dir: cfg.Dir, Question: question(files), Files: files}
	for _, p := range fleet.all {
		t.Processes = append(t.Processes, p.Process)
	}
	receipt, err := c.Send(ctx, Agent, "", client.Text(t.Question))
	if err != nil {
		return nil, err
	}
	t.Session = receipt.Session
	cfg.Show.Asked(t.Dir, t.Question)
	if err := cfg.watch(ctx, c, fleet, receipt, t); err != nil {
		return nil, err
	}
	cfg.Show.Answered(t.Answer)
	w := waits{Config: cfg, conn: conn, client: c, fleet: fleet, tour: t}
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	if err := t.collect(ctx, c, ledger(cfg.file("ledger.jsonl"))); err != nil {
		return nil, err
	}
	t.check()
	t.Millis = time.Since(started).Milliseconds()
	return t, nil
}

// lay writes the files that the processes read.
func (c Config) lay() error {
	for _, dir := range []string{"agents", "logs"} {
		if err := os.MkdirAll(c.file(dir), 0o700); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"agents/" + Agent + ".yaml": agentFile,
		"script.yaml":               scriptFile,
		"settings.yaml":             "output: table\n", // in place of the user's own
	} {
		if err := os.WriteFile(c.file(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// staff starts the processes.
func (c Config) staff(ctx context.Context, f *fleet, url string) error {
	start := func(name string, stdout *os.File, args ...string) error {
		p, err := f.start(name, stdout, args...)
		if err != nil {
			return err
		}
		c.Show.Started(p.Process)
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	f.env = environment(c.file("settings.yaml"), "")
	err = start("fake-llm", w, "fake-llm", "--script", c.file("script.yaml"))
	w.Close()
	if err != nil {
		return err
	}
	model, err := firstLine(ctx, r)
	if err != nil {
		return err
	}
	f.env = environment(c.file("settings.yaml"), model)
	if err := start(coordinator, nil, "coordinator", "--nats", url, "--agents", c.file("agents"), "--call-lease", Lease.String()); err != nil {
		return err
	}
	for _, name := range workers {
		err := start(name, nil, "demo", "worker", "--nats", url, "--name", name, "--dir", c.Dir,
			"--ledger", c.file("ledger.jsonl"), "--gate", c.file("gate"))
		if err != nil {
			return err
		}
	}
	return nil
}

// coordinator is the name of the coordinator's process.
const coordinator = "coordinator"

// workers are the names of the worker processes.
var workers = []string{"worker-1", "worker-2"}

// ready waits until the coordinator takes messages for the agent and all workers serve all tools.
func ready(ctx context.Context, conn *natswire.Conn, c *client.Client) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := conn.ConsumerState(ctx, conn.Names().Input(), Agent)
		if err == nil && served(ctx, c) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return protocol.ContextError(ctx)
		}
	}
}

func served(ctx context.Context, c *client.Client) bool {
	tools, err := c.Tools(ctx)
	if err != nil || len(tools) < 5 {
		return false
	}
	pools, err := c.Pools(ctx)
	for _, p := range pools {
		if p.Serving() < len(workers) {
			return false
		}
	}
	return err == nil && len(pools) == len(tools)
}

// watch follows the run. When all calls of the first turn have started, before their effects, it kills one of their
// workers and lets the others go on.
func (c Config) watch(ctx context.Context, client *client.Client, f *fleet, r client.Receipt, t *Tour) error {
	running := map[Running]bool{}
	for u, err := range client.Follow(ctx, r.App, r.Session, r.InputID) {
		switch {
		case err != nil && protocol.CodeOf(err) != protocol.CodeUnreachable:
			return err
		case u.Outcome != nil:
			if u.Outcome.Problem != nil {
				return u.Outcome.Err()
			}
			t.Answer = u.Outcome.Text
			return nil
		case err != nil:
			continue
		}
		c.Show.Update(u)
		if u.Progress == nil || u.Progress.Tool != toolMeasure {
			continue
		}
		now := Running{u.Progress.Call, u.Progress.Worker, u.Progress.Attempt}
		if running[now] {
			continue
		}
		running[now] = true
		c.Show.Running(now)
		if t.Killed.PID > 0 || len(running) < asked {
			continue
		}
		if err := c.strike(f, running, t); err != nil {
			return err
		}
	}
	return protocol.ContextError(ctx)
}

// strike kills the worker with the fewest calls and opens the gate. The killed one can have had no effect: the gate opens
// once it is gone.
func (c Config) strike(f *fleet, running map[Running]bool, t *Tour) error {
	calls := map[string][]string{}
	for r := range running {
		calls[r.Worker] = append(calls[r.Worker], r.Call)
	}
	victim := slices.MinFunc(slices.Sorted(maps.Keys(calls)), func(a, b string) int { return len(calls[a]) - len(calls[b]) })
	t.Parallel = Parallel{Calls: len(running), Workers: len(calls)}
	for _, p := range f.all {
		if p.Name != victim {
			continue
		}
		if err := f.kill(p); err != nil {
			return err
		}
		t.Killed = Killed{Process: p.Process, Calls: calls[victim]}
		c.Show.Killed(p.Process)
	}
	return os.WriteFile(c.file("gate"), nil, 0o600)
}
