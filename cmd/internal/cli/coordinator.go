package cli

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/agents"
	"github.com/toolfabric/toolfabric/cmd/internal/boot"
	"github.com/toolfabric/toolfabric/cmd/internal/host"
	"github.com/toolfabric/toolfabric/cmd/internal/policyfile"
	"github.com/toolfabric/toolfabric/cmd/internal/up"
	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/worker"
)

// coordinatorOptions are the flags of coordinator.
type coordinatorOptions struct {
	agents   string
	policy   string
	replicas int
	lease    time.Duration
}

func (a *app) coordinatorCmd() *cobra.Command {
	var o coordinatorOptions
	cmd := &cobra.Command{
		Use: "coordinator", Short: "Run a coordinator", Args: cobra.NoArgs,
		Long: `A coordinator drives sessions: it asks the models and has the pools run the tools. Run as many as you like: each can take
over any session of another that died. It makes the streams it needs. SIGTERM hands its sessions over. The tools of its agents'
toolsets, such as skills, run on a worker in its process.`,
		Example: `  toolfabric coordinator --agents ./agents
  toolfabric coordinator --agents ./agents --nats nats://nats.example.com:4222 --creds coordinator.creds`,
	}
	cmd.Flags().StringVar(&o.agents, "agents", "", "`DIR` of agent files to serve; without it only single calls are served")
	cmd.Flags().StringVar(&o.policy, "policy", "", policyUsage)
	cmd.Flags().IntVar(&o.replicas, "replicas", 0, "replicas of the streams: 1, 3 or 5; 0 keeps what there is")
	cmd.Flags().DurationVar(&o.lease, "call-lease", 0, "silence after which a call goes to another worker (default 5s)")
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error { return a.coordinate(ctx, o) })
	return cmd
}

const policyUsage = "`FILE` of rules that have people asked before calls run; give all coordinators the same"

func (a *app) coordinate(ctx context.Context, o coordinatorOptions) error {
	log := a.logger(slog.LevelInfo)
	stop, err := boot.Telemetry(ctx, "toolfabric-coordinator", log)
	if err != nil {
		return err
	}
	defer stop()
	cfg := coordinator.Config{Logger: log, CallLease: o.lease}
	shared := &agents.Shared{}
	if o.agents != "" {
		list, err := agents.Models{Shared: shared}.Load(ctx, o.agents)
		if err != nil {
			return err
		}
		cfg.Agents = agents.Apps(list)
	}
	if cfg.Policy, err = policyfile.Read(o.policy); err != nil {
		return err
	}
	ctx, conn, err := a.set.Attend(ctx, "toolfabric coordinator", log)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := natswire.Provision(ctx, conn, natswire.ProvisionConfig{Replicas: o.replicas}); err != nil {
		return err
	}
	cfg.Bus, cfg.Names = conn, conn.Names()
	shared.Attach(conn)
	c, err := coordinator.New(cfg)
	if err != nil {
		return err
	}
	actors := []up.Actor{c.Run, conn.KeepSentinels}
	if sets := agents.Toolsets(cfg.Agents); len(sets) > 0 {
		beside := worker.Config{Bus: conn, Names: conn.Names(), Logger: log}
		actors = append(actors, func(ctx context.Context) error { return host.Run(ctx, beside, sets) })
	}
	log.Info("coordinator started", "coordinator", c.ID(), "url", conn.ServerURL(), "agents", len(cfg.Agents))
	return ended(ctx, up.RunAll(ctx, actors...))
}
