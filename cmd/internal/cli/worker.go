package cli

import (
	"context"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/boot"
	"github.com/toolfabric/toolfabric/cmd/internal/host"
	"github.com/toolfabric/toolfabric/cmd/internal/up"
	"github.com/toolfabric/toolfabric/cmd/internal/workerfile"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

func (a *app) workerCmd() *cobra.Command {
	var config string
	cmd := &cobra.Command{
		Use: "worker --config FILE", Short: "Serve tools", Args: cobra.NoArgs,
		Long: `A worker serves tools: it takes calls from their pools, as many at once as it has slots, and answers them. Run as many as you
like; a call whose worker died goes to another, unless its effect may already have happened. SIGTERM lets running calls
finish.`,
		Example: `  toolfabric worker --config worker.yaml
  toolfabric worker http --name weather --description "Tells the weather" --url 'https://api.example.com/{city}'
  toolfabric worker exec --name word_count --description "Counts words" --schema schema.json -- wc -w`,
	}
	cmd.Flags().StringVar(&config, "config", "", "`FILE` of tools, in YAML")
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error {
		if config == "" {
			return protocol.Errorf(protocol.CodeUsage, "which tools? name a file with --config, or serve one command with: toolfabric worker exec; one endpoint with: worker http")
		}
		tools, file, err := a.readWorker(ctx, config)
		if err != nil {
			return err
		}
		return a.host(ctx, worker.Config{Tools: tools, Slots: file.Slots, Grace: file.Grace}, mcpServers(file.MCP))
	})
	cmd.AddCommand(a.workerExecCmd(), a.workerHTTPCmd(), a.workerOpenAPICmd(), a.workerMCPCmd())
	return cmd
}

func (a *app) readWorker(ctx context.Context, path string) ([]tool.Tool, workerfile.File, error) {
	file, err := workerfile.Read(path, os.LookupEnv)
	if err != nil {
		return nil, file, err
	}
	tools, err := file.Build(ctx, a.skipped)
	return tools, file, err
}

// execOptions are the flags of worker exec.
type execOptions struct {
	workerfile.Tool
	poolOptions
	schema string
	env    []string
}

func (a *app) workerExecCmd() *cobra.Command {
	var o execOptions
	cmd := &cobra.Command{
		Use: "exec --name TOOL --description TEXT [flags] -- PROGRAM [ARG...]", Short: "Serve one command as a tool", Args: cobra.MinimumNArgs(1),
		Long: `Exec serves a command. There is no shell. An argument {name} of the command line stands for the call's argument of that
name. A tool with one required text gets it on stdin, others get all arguments as JSON; --stdin overrides that. What the
command writes to stdout is the answer, JSON or text.`,
		Example: `  toolfabric worker exec --name word_count --description "Counts the words of a text" --schema schema.json -- wc -w
  toolfabric worker exec --name now --description "Tells the time" --effect read -- date -Is`,
	}
	f := cmd.Flags()
	f.StringVar(&o.Name, "name", "", "the tool's `NAME`: letters, digits, _ and -")
	f.StringVar(&o.Description, "description", "", "what the tool does, for models: `TEXT`")
	f.StringVar(&o.schema, "schema", "", "`FILE` with the JSON Schema of the arguments; without it the tool takes none")
	f.StringVar(&o.Stdin, "stdin", "", "`NAME` of the argument that goes to stdin, or json for all of them")
	f.BoolVar(&o.LongRunning, "long-running", false, "what the command writes is no result yet: that follows by the handle in TF_RESULT_HANDLE")
	f.StringArrayVar(&o.env, "env", nil, "`NAME=VALUE` beside the clean environment; may be repeated")
	f.StringVar(&o.Dir, "dir", "", "working `DIR` of the command")
	o.poolOptions.add(f, &o.Pool, "at_most_once")
	cmd.RunE = a.do(func(ctx context.Context, argv []string) error {
		if err := o.poolOptions.check(f, &o.Pool); err != nil {
			return err
		}
		t, err := o.build(argv)
		if err != nil {
			return err
		}
		return a.work(ctx, worker.Config{Tools: []tool.Tool{t}, Slots: o.slots, Grace: o.grace})
	})
	return cmd
}

func (o *execOptions) build(argv []string) (tool.Tool, error) {
	o.Command = argv
	switch {
	case o.Name == "":
		return nil, protocol.Errorf(protocol.CodeUsage, "the tool needs a --name")
	case o.Description == "":
		return nil, protocol.Errorf(protocol.CodeUsage, "tool %s needs a --description: models choose tools by it", o.Name)
	}
	if o.schema != "" {
		var err error
		if o.Schema, err = workerfile.ReadSchema(o.schema); err != nil {
			return nil, err
		}
	}
	o.Env = map[string]string{}
	for _, pair := range o.env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, protocol.Errorf(protocol.CodeUsage, "--env %q: it is NAME=VALUE", pair)
		}
		o.Env[name] = value
	}
	return o.Build()
}

// work runs a worker until ctx ends.
func (a *app) work(ctx context.Context, cfg worker.Config) error {
	return a.host(ctx, cfg, mcpServers(nil))
}

// host runs a worker of tools and toolsets until ctx ends. connected makes what needs the connection.
func (a *app) host(ctx context.Context, cfg worker.Config, connected up.Connected) error {
	log := a.logger(slog.LevelInfo)
	stop, err := boot.Telemetry(ctx, "toolfabric-worker", log)
	if err != nil {
		return err
	}
	defer stop()
	ctx, conn, err := a.set.Attend(ctx, "toolfabric worker", log)
	if err != nil {
		return err
	}
	defer conn.Close()
	cfg.Bus, cfg.Names, cfg.Logger = conn, conn.Names(), log
	sets, tools, err := connected(conn, log)
	if err != nil {
		return err
	}
	cfg.Tools = append(cfg.Tools, tools...)
	return ended(ctx, host.Run(ctx, cfg, sets))
}
