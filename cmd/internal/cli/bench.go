package cli

import (
	"context"
	"io"
	"os"
	"os/exec"
	"runtime/pprof"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/bench"
	"github.com/toolfabric/toolfabric/protocol"
)

// benchFlags is what bench is told.
type benchFlags struct {
	rounds, calls      int
	inFlight           []int
	subjects           []string
	embedded, separate bool
	sync, profile      string
}

func (a *app) benchCmd() *cobra.Command {
	var b benchFlags
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure the cost of calls on this machine", Args: cobra.NoArgs,
		Long: `Bench starts servers of its own, in this process and as another one, and measures on them in turn: a plain request and its
reply, the least that makes a call durable (the raw round trip), and what the fabric makes of it: calls inside a running
session, turns of 8 calls at once, whole sessions; and what these write, from a bare client: as near as anything with the
same guarantees can come to the raw round trip. The model of these sessions answers at once; coordinator, two workers and
client are in this process, each with a connection of its own. All payloads have the same size, and what is compared is
measured in the same rounds. Spans are recorded and batched, and sent nowhere. It takes about two minutes and keeps nothing.`,
		Example: `  toolfabric bench
  toolfabric bench --embedded --subjects idempotent,session --rounds 1
  toolfabric bench --output json > bench.json`,
	}
	f := cmd.Flags()
	f.IntVar(&b.rounds, "rounds", 5, "`NUMBER` of times all is measured; figures are medians")
	f.IntVar(&b.calls, "calls", 1000, "`NUMBER` of calls of a round where throughput is measured; a fifth of it at 1 in flight")
	f.IntSliceVar(&b.inFlight, "in-flight", []int{64, 256}, "`NUMBERS` of calls open at once where throughput is measured")
	f.StringSliceVar(&b.subjects, "subjects", bench.Choices(), "`NAMES` of what is measured beside the plain and the raw round trip")
	f.BoolVar(&b.embedded, "embedded", false, "measure only with the server in this process")
	f.BoolVar(&b.separate, "separate", false, "measure only with the server as another process")
	f.StringVar(&b.sync, "sync", "100ms", "always: each message is on the disk before its ack; 100ms: the disk is synced that often")
	f.StringVar(&b.profile, "cpuprofile", "", "`FILE` for a CPU profile of this process")
	_ = f.MarkHidden("cpuprofile") // it exists
	cmd.MarkFlagsMutuallyExclusive("embedded", "separate")
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error { return a.bench(ctx, &b) })
	cmd.AddCommand(a.benchServeCmd(), a.benchSessionsCmd(), a.benchParkCmd())
	return cmd
}

func (a *app) bench(ctx context.Context, b *benchFlags) (err error) {
	if b.sync != "always" && b.sync != "100ms" {
		return protocol.Errorf(protocol.CodeUsage, "--sync %q: it is always or 100ms", b.sync)
	}
	if b.rounds < 1 || b.calls < 1 || slices.ContainsFunc(b.inFlight, func(n int) bool { return n < 1 }) {
		return protocol.Errorf(protocol.CodeUsage, "--rounds, --calls and --in-flight are at least 1")
	}
	openers, err := bench.Choose(b.subjects)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "toolfabric-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // temporary in any case
	cfg := bench.Config{
		Dir: dir, SyncAlways: b.sync == "always", Subjects: openers, Rounds: b.rounds,
		Calls: b.calls, SingleCalls: max(1, b.calls/5), InFlight: b.inFlight, Progress: a.err, NoEmbedded: b.separate,
	}
	if !b.embedded {
		if cfg.Command, err = a.benchServer(); err != nil {
			return err
		}
	}
	stop, err := profileTo(b.profile)
	if err != nil {
		return err
	}
	report, err := bench.Run(ctx, cfg)
	stop()
	if err != nil {
		return err
	}
	return a.printReport(report)
}

// benchServer is the command of the separate server of a measurement.
func (a *app) benchServer() (func(bench.ServeConfig) *exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return func(s bench.ServeConfig) *exec.Cmd {
		cmd := exec.Command(self, "bench", "serve", "--dir", s.Dir)
		if s.SyncAlways {
			cmd.Args = append(cmd.Args, "--sync", "always")
		}
		cmd.Stderr = a.err.Writer
		return cmd
	}, nil
}

// profileTo writes a CPU profile until stop is called; an empty name is none.
func profileTo(name string) (stop func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	file, err := os.Create(name)
	if err == nil {
		err = pprof.StartCPUProfile(file)
	}
	if err != nil {
		return nil, protocol.Wrap(err, protocol.CodeUsage, "--cpuprofile %s", name)
	}
	return func() { pprof.StopCPUProfile(); _ = file.Close() }, nil
}

// benchServeCmd is the separate server that bench starts.
func (a *app) benchServeCmd() *cobra.Command {
	var dir, sync string
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the separate server of a measurement", Args: cobra.NoArgs, Hidden: true,
		Example: "  toolfabric bench serve --dir /tmp/streams",
	}
	cmd.Flags().StringVar(&dir, "dir", "", "`DIR` of the streams, empty or absent")
	cmd.Flags().StringVar(&sync, "sync", "100ms", "always or 100ms")
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error {
		if dir == "" {
			return protocol.Errorf(protocol.CodeUsage, "where do the streams go? name a directory with --dir DIR")
		}
		return bench.Serve(ctx, bench.ServeConfig{Dir: dir, SyncAlways: sync == "always"}, a.in, a.out.Writer)
	})
	return cmd
}

// printReport prints what was measured: tables for people.
func (a *app) printReport(report interface{ Print(io.Writer) error }) error {
	return a.print(report, func() error {
		var text strings.Builder
		if err := report.Print(&text); err != nil {
			return err
		}
		return a.write(text.String())
	})
}
