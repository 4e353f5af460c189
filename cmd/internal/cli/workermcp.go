package cli

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/elicit"
	"github.com/toolfabric/toolfabric/cmd/internal/up"
	"github.com/toolfabric/toolfabric/cmd/internal/workerfile"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/mcptoolset"
	"github.com/toolfabric/toolfabric/worker"
)

// mcpOptions are the flags of worker mcp.
type mcpOptions struct {
	cfg                          mcptoolset.Config
	transport, bearer            string
	headers, env, effects, allow []string
	slots                        int
	grace                        time.Duration
}

func (a *app) workerMCPCmd() *cobra.Command {
	var o mcpOptions
	cmd := &cobra.Command{
		Use: "mcp [--prefix NAME] [flags] (--url URL | -- PROGRAM [ARG...])", Short: "Serve the tools of an MCP server", Args: cobra.ArbitraryArgs,
		Long: `Mcp serves each tool of an MCP server as a pool of its own, PREFIX_TOOL. The server is a program that speaks over its standard
input and output and is started here, with a clean environment, again when it dies, and ended with this worker; or a URL. All
calls share one session with it; for more at once, run more workers.

A server's word about its tools is not trusted: without --effect or --trust-hints no call is ever repeated once it may have
run. Tools that the server itself calls destructive wait for a person's agreement.

What the server asks in the middle of a call goes to people too: approvals ls shows it. Servers of the protocol 2026-07-28 wait for
the answer without holding anything; for older ones the call keeps its slot, for --elicit-limit at most, and a tool PREFIX_elicit
asks.`,
		Example: `  toolfabric worker mcp --prefix fs --effect read_text_file=read -- npx -y @modelcontextprotocol/server-filesystem /data
  toolfabric worker mcp --prefix docs --url https://mcp.example.com/mcp --bearer-env DOCS_TOKEN
  toolfabric worker mcp --prefix old --url http://127.0.0.1:3001/sse --transport sse --only search,fetch`,
	}
	f := cmd.Flags()
	f.StringVar(&o.cfg.Prefix, "prefix", "", "`NAME` that with a _ stands before each tool's name")
	f.StringVar(&o.cfg.Endpoint, "url", "", "`URL` of the server, instead of a program")
	f.StringVar(&o.transport, "transport", "http", "with --url: http (streamable), or sse, the older one")
	f.StringArrayVar(&o.headers, "header", nil, "with --url: `NAME: VALUE` sent with each request; ${env:NAME} as the value is taken from the environment; may be repeated")
	f.StringVar(&o.bearer, "bearer-env", "", "with --url: environment variable `NAME` that holds a bearer token")
	f.StringArrayVar(&o.env, "env", nil, "`NAME=VALUE` beside the program's clean environment, or NAME to pass on this one's; may be repeated")
	f.StringVar(&o.cfg.Dir, "dir", "", "working `DIR` of the program")
	f.StringSliceVar(&o.allow, "only", nil, "serve these tools only, by the server's own `NAMES`")
	f.StringArrayVar(&o.effects, "effect", nil, "what calls do to the world: read, idempotent or at_most_once, as `CLASS` for all tools or TOOL=CLASS for one; may be repeated (default at_most_once)")
	f.BoolVar(&o.cfg.Trust, "trust-hints", false, "believe the server which of its tools only read, and which may be repeated")
	f.BoolVar(&o.cfg.AllowDestructive, "allow-destructive", false, "ask nobody before tools that the server calls destructive")
	f.BoolVar(&o.cfg.RequireConfirmation, "confirm", false, "a person must agree to each call")
	f.DurationVar(&o.cfg.Settings.Timeout, "timeout", 0, "of one attempt, whatever progress it reports (default 10m)")
	f.DurationVar(&o.cfg.Idle, "idle-timeout", 0, "of one attempt without a word of progress (default 1m)")
	f.DurationVar(&o.cfg.Settings.QueueTimeout, "queue-timeout", 0, "how long a call may wait for a worker (default 30s)")
	f.DurationVar(&o.cfg.Settings.ParkTimeout, "park-timeout", 0, "how long a call may wait for a person (default 168h)")
	f.IntVar(&o.cfg.Settings.Attempts, "attempts", 0, "attempts of a call, retryable failures included (default 3)")
	f.IntVar(&o.cfg.Settings.MaxActive, "max-active", 0, "calls of one tool at once over the whole pool (default no limit)")
	f.DurationVar(&o.cfg.ElicitLimit, "elicit-limit", 0, "how long a question of an older server may hold its call's slot (default 5m)")
	f.IntVar(&o.slots, "slots", 0, "calls this worker runs at once (default four per CPU, or two per tool if that is more)")
	f.DurationVar(&o.grace, "grace", 0, "how long running calls may go on after SIGTERM (default 20s)")
	cmd.RunE = a.do(func(ctx context.Context, argv []string) error {
		if o.slots < 1 && f.Changed("slots") {
			return protocol.Errorf(protocol.CodeUsage, "--slots %d: a worker runs at least one call at once; leave it out for the default", o.slots)
		}
		if err := o.read(argv, os.LookupEnv); err != nil {
			return err
		}
		return a.host(ctx, worker.Config{Slots: o.slots, Grace: o.grace}, mcpServers([]mcptoolset.Config{o.cfg}))
	})
	return cmd
}

// read makes a configuration of the flags.
func (o *mcpOptions) read(argv []string, lookup func(string) (string, bool)) error {
	c := &o.cfg
	c.Command = argv
	switch {
	case len(argv) == 0 && c.Endpoint == "":
		return protocol.Errorf(protocol.CodeUsage, "which server? give its program after --, or its address with --url")
	case len(argv) > 0 && c.Endpoint != "":
		return protocol.Errorf(protocol.CodeUsage, "--url and a program: a worker serves one server")
	case c.Endpoint == "" && (len(o.headers) > 0 || o.bearer != ""):
		return protocol.Errorf(protocol.CodeUsage, "--header and --bearer-env go with --url")
	case c.Endpoint != "" && len(o.env) > 0:
		return protocol.Errorf(protocol.CodeUsage, "--env goes with a program")
	case o.transport != "http" && o.transport != "sse":
		return protocol.Errorf(protocol.CodeUsage, "--transport %q: it is http or sse", o.transport)
	}
	c.SSE = o.transport == "sse" && c.Endpoint != ""
	for _, h := range o.headers {
		name, value, ok := strings.Cut(h, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return protocol.Errorf(protocol.CodeUsage, "--header %q: it is NAME: VALUE", name)
		}
		value = strings.TrimSpace(value)
		if from, taken := strings.CutPrefix(value, "${env:"); taken {
			if value, ok = lookup(strings.TrimSuffix(from, "}")); !ok {
				return protocol.Errorf(protocol.CodeUsage, "--header %s: the environment variable is not set", name)
			}
		}
		if c.Header == nil {
			c.Header = http.Header{}
		}
		c.Header.Add(name, value)
	}
	if o.bearer != "" {
		token, ok := lookup(o.bearer)
		if !ok || token == "" {
			return protocol.Errorf(protocol.CodeUsage, "--bearer-env: the environment variable %s is not set", o.bearer)
		}
		c.Token = func(context.Context) (string, error) { return token, nil }
	}
	for _, pair := range o.env {
		name, _, given := strings.Cut(pair, "=")
		if !given {
			value, ok := lookup(name)
			if !ok {
				return protocol.Errorf(protocol.CodeUsage, "--env %s: the environment variable is not set", name)
			}
			pair = name + "=" + value
		}
		c.Env = append(c.Env, pair)
	}
	for _, e := range o.effects {
		name, effect, one := strings.Cut(e, "=")
		if !one {
			name, effect = "", e
		}
		if err := workerfile.CheckEffect(protocol.Effect(effect)); err != nil {
			return err
		}
		if !one {
			c.Settings.Effect = tool.Effect(effect)
			continue
		}
		if c.Effects == nil {
			c.Effects = map[string]tool.Effect{}
		}
		c.Effects[name] = tool.Effect(effect)
	}
	if len(o.allow) > 0 {
		c.Only = slices.Clone(o.allow)
	}
	return nil
}

// mcpServers are the servers' toolsets, and the tools that ask for them.
func mcpServers(all []mcptoolset.Config) up.Connected {
	return func(conn *natswire.Conn, log *slog.Logger) (sets []tool.Toolset, tools []tool.Tool, err error) {
		for _, cfg := range all {
			set, asks, err := mcpServer(cfg, conn, log)
			if err != nil {
				return nil, nil, err
			}
			sets, tools = append(sets, set), append(tools, asks)
		}
		return sets, tools, nil
	}
}

// mcpServer is a server's toolset, and the tool that asks people what the server asks in the middle of a call.
func mcpServer(cfg mcptoolset.Config, conn *natswire.Conn, log *slog.Logger) (tool.Toolset, tool.Tool, error) {
	c, err := client.New(client.Config{Bus: conn, Names: conn.Names()})
	if err != nil {
		return nil, nil, err
	}
	prefix := cfg.Prefix
	if prefix == "" {
		prefix = "mcp"
	}
	name := tool.Alias(prefix + "_elicit")
	limit := cfg.ElicitLimit
	if limit == 0 {
		limit = mcptoolset.DefaultElicitLimit
	}
	cfg.Logger = log.With("mcp", prefix)
	cfg.Elicit = elicit.By(c, name, prefix, cfg.Logger)
	set, err := mcptoolset.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	asks, err := elicit.Tool(name, limit)
	return set, asks, err
}
