package cli

import (
	"context"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/agents"
	"github.com/toolfabric/toolfabric/cmd/internal/boot"
	"github.com/toolfabric/toolfabric/cmd/internal/policyfile"
	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/cmd/internal/up"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/agent"
)

type upOptions struct {
	listen, sync, agents, config, policy string
}

func (a *app) upCmd() *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use: "up", Short: "Run everything in one process", Args: cobra.NoArgs,
		Long: `Up runs an embedded nats-server, a coordinator for the agents of a folder, and with --config a worker. Other commands of
this user find it by itself. It listens on loopback only and needs no credentials there. Data stays in --data.

With --sync 100ms, the default, nothing that was acknowledged is lost when the process is killed; a power failure can lose
the last 100 ms. With --sync always it does not, at some 0.3 ms a write.`,
		Example: `  toolfabric up
  toolfabric up --agents ./agents --config worker.yaml
  toolfabric up --listen 127.0.0.1:0 --data ./data --sync always`,
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:4222", "`HOST:PORT` for other processes; port 0 takes a free one")
	f.StringVar(&o.sync, "sync", "100ms", "when writes reach the disk: always or 100ms")
	f.StringVar(&o.agents, "agents", "", "`DIR` of agent files to serve")
	f.StringVar(&o.config, "config", "", "`FILE` of a worker to run in this process")
	f.StringVar(&o.policy, "policy", "", policyUsage)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("nats") || cmd.Flags().Changed("context") {
			return protocol.Errorf(protocol.CodeUsage, "up runs a server of its own and takes no --nats or --context; for a server that runs elsewhere use: toolfabric coordinator")
		}
		return a.do(func(ctx context.Context, _ []string) error { return a.up(ctx, o) })(cmd, args)
	}
	return cmd
}

func (a *app) up(ctx context.Context, o upOptions) error {
	log := a.logger(slog.LevelInfo)
	stop, err := boot.Telemetry(ctx, "toolfabric", log)
	if err != nil {
		return err
	}
	defer stop()
	cfg := up.Config{Listen: o.listen, Data: a.set.Data, Sync: o.sync, Namespace: a.set.Namespace, Logger: log}
	if o.agents != "" {
		cfg.Shared = &agents.Shared{}
		list, err := agents.Models{Shared: cfg.Shared}.Load(ctx, o.agents)
		if err != nil {
			return err
		}
		cfg.Agents = agents.Apps(list)
	}
	if cfg.Policy, err = policyfile.Read(o.policy); err != nil {
		return err
	}
	cfg.Ready = func(url string) { a.ready(url, cfg.Agents) }
	if o.config != "" {
		tools, file, err := a.readWorker(ctx, o.config)
		if err != nil {
			return err
		}
		cfg.Tools, cfg.Slots, cfg.Grace, cfg.Connected = tools, file.Slots, file.Grace, mcpServers(file.MCP)
	}
	return up.Run(ctx, cfg)
}

// ready tells what to do next in another terminal, whose commands find a server of the default directory by themselves.
func (a *app) ready(url string, served []agent.Agent) {
	flags := ""
	if a.set.Data != boot.DefaultData() || a.set.NATS != "" || a.set.Context != "" {
		flags = " --nats " + url
	}
	if a.set.Namespace != "" && a.set.Namespace != natswire.DefaultNamespace {
		flags += " --namespace " + a.set.Namespace
	}
	a.say("%s toolfabric is up at %s", a.err.Paint(term.Green, "✓"), url)
	if len(served) > 0 {
		names := make([]string, len(served))
		for i, s := range served {
			names[i] = s.Name()
		}
		a.say("  agents:      %s", strings.Join(names, ", "))
		a.say("  ask one:     toolfabric run%s --agent %s \"What can you do?\"", flags, names[0])
	}
	a.say("  add a tool:  toolfabric worker exec%s --name now --description \"Tells the time\" --effect read -- date", flags)
	a.say("  call it:     toolfabric call%s now", flags)
}
