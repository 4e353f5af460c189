// Package up runs the whole fabric in one process: an embedded nats-server, a coordinator and a worker. It is the same
// coordinator and worker that run as processes of their own, over a connection that needs no socket.
package up

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/toolfabric/toolfabric/cmd/internal/agents"
	"github.com/toolfabric/toolfabric/cmd/internal/boot"
	"github.com/toolfabric/toolfabric/cmd/internal/host"
	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/coordinator/policy"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/natswire/embed"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

// Config of the process. Data and Logger are required.
type Config struct {
	Listen    string         // HOST:PORT of the server for other processes
	Data      string         // directory of the streams
	Sync      string         // always: each message is on the disk before its ack; 100ms: the disk is synced that often
	Namespace string         // of all subjects
	Agents    []agent.Agent  // served beside single calls
	Shared    *agents.Shared // skills that they share with others; nil when they were read without
	Policy    *policy.Policy // of the coordinator; nil has no rules
	Tools     []tool.Tool    // of the worker in this process, beside those of the agents' toolsets; none at all is no worker
	Connected Connected      // more of them; nil is nothing
	Slots     int            // of that worker
	Grace     time.Duration  // of that worker
	Logger    *slog.Logger
	Ready     func(url string) // called once when inputs are taken, with where other processes connect; nil tells nobody
}

// unstarted tells whether it is the address or the data that keeps the server from starting.
func unstarted(cfg Config, err error) error {
	l, lerr := net.Listen("tcp", cfg.Listen)
	if errors.Is(lerr, syscall.EADDRINUSE) {
		return protocol.Errorf(protocol.CodeUsage, "another process listens on %s, perhaps an up with other data; stop it, or choose another address: --listen 127.0.0.1:0 takes a free port", cfg.Listen)
	}
	if lerr != nil {
		return protocol.Errorf(protocol.CodeUsage, "the server cannot listen on %s: %v; choose another address with --listen", cfg.Listen, lerr)
	}
	_ = l.Close()
	return protocol.Wrap(err, protocol.CodeUsage, "the server cannot use %s; choose another directory with --data", cfg.Data)
}

// Connected makes the toolsets and tools of a worker that need its connection.
type Connected func(*natswire.Conn, *slog.Logger) ([]tool.Toolset, []tool.Tool, error)

// Run serves until ctx ends, then drains the worker, hands the sessions over and stops the server.
func Run(ctx context.Context, cfg Config) (err error) {
	if cfg.Sync != "always" && cfg.Sync != "100ms" {
		return protocol.Errorf(protocol.CodeUsage, "--sync %q: it is always or 100ms", cfg.Sync)
	}
	server, err := embed.Start(embed.Config{Dir: cfg.Data, Listen: cfg.Listen, SyncAlways: cfg.Sync == "always", Log: cfg.Logger})
	if protocol.CodeOf(err) == protocol.CodeUnreachable {
		return unstarted(cfg, err)
	}
	if err != nil {
		return err
	}
	defer server.Shutdown()
	conn, err := natswire.Connect(ctx, natswire.Config{
		Name: "toolfabric up", Namespace: cfg.Namespace, InProcess: server.InProcess(), Listener: boot.Listener(cfg.Logger),
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := natswire.Provision(ctx, conn, natswire.ProvisionConfig{}); err != nil {
		return err
	}
	if cfg.Shared != nil {
		cfg.Shared.Attach(conn)
	}
	actors, err := cfg.actors(conn, server.URL())
	if err != nil {
		return err
	}
	if server.URL() != "" {
		remove, err := boot.WriteEndpoint(cfg.Data, boot.Endpoint{URL: server.URL(), PID: os.Getpid(), Sync: cfg.Sync})
		if err != nil {
			return err
		}
		defer remove()
	}
	return RunAll(ctx, actors...)
}

// Actor serves until its context ends, a coordinator's Run or a worker's.
type Actor = func(context.Context) error

func (cfg *Config) actors(conn *natswire.Conn, url string) ([]Actor, error) {
	ready := func() {
		if cfg.Ready != nil {
			cfg.Ready(url)
		}
	}
	c, err := coordinator.New(coordinator.Config{Bus: conn, Names: conn.Names(), Agents: cfg.Agents, Policy: cfg.Policy, Ready: ready, Logger: cfg.Logger})
	if err != nil {
		return nil, err
	}
	all := []Actor{c.Run, conn.KeepSentinels}
	tools, sets := cfg.Tools, agents.Toolsets(cfg.Agents)
	if cfg.Connected != nil {
		more, own, err := cfg.Connected(conn, cfg.Logger)
		if err != nil {
			return nil, err
		}
		sets, tools = append(sets, more...), append(slices.Clip(tools), own...)
	}
	if len(tools)+len(sets) > 0 {
		w := worker.Config{Bus: conn, Names: conn.Names(), Tools: tools, Slots: cfg.Slots, Grace: cfg.Grace, Logger: cfg.Logger}
		all = append(all, func(ctx context.Context) error { return host.Run(ctx, w, sets) })
	}
	return all, nil
}

// RunAll runs the actors until ctx ends or one of them fails, and waits for all.
func RunAll(ctx context.Context, actors ...Actor) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(actors))
	for _, run := range actors {
		go func() { ended <- run(ctx) }()
	}
	var errs []error
	for range actors {
		errs = append(errs, <-ended)
		cancel() // what one has lost the others cannot do without
	}
	return errors.Join(errs...)
}
