package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/bench"
	"github.com/toolfabric/toolfabric/protocol"
)

func (a *app) benchSessionsCmd() *cobra.Command {
	var cfg bench.GrowthConfig
	cmd := &cobra.Command{
		Use: "sessions", Short: "Measure the cost of sessions at rest and of long ones", Args: cobra.NoArgs,
		Long: `Sessions measures what must not grow. It has many sessions run and come to rest, and prints heap and goroutines of the
process with the coordinator before and after. Then it measures turns and runs in a session with a short log and in one with
a long log, in turn, and prints the fabric's own part of their time. Reading the log for the model and building its requests
grow with the conversation and are printed beside it. It takes about two minutes and keeps nothing.`,
		Example: `  toolfabric bench sessions
  toolfabric bench sessions --idle 1000 --long 2000 --output json`,
	}
	f := cmd.Flags()
	f.IntVar(&cfg.Idle, "idle", 10_000, "`NUMBER` of sessions that run and then rest")
	f.IntVar(&cfg.Short, "short", 100, "`NUMBER` of events in the log of the short session")
	f.IntVar(&cfg.Long, "long", 10_000, "`NUMBER` of events in the log of the long session")
	f.IntVar(&cfg.Measured, "measured", 20, "`NUMBER` of turns, and of runs, of a round in each session")
	f.IntVar(&cfg.Rounds, "rounds", 5, "`NUMBER` of times both are measured; figures are medians")
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error { return a.benchSessions(ctx, cfg) })
	return cmd
}

func (a *app) benchSessions(ctx context.Context, cfg bench.GrowthConfig) error {
	if min(cfg.Idle, cfg.Short, cfg.Long, cfg.Measured, cfg.Rounds) < 1 {
		return protocol.Errorf(protocol.CodeUsage, "--idle, --short, --long, --measured and --rounds are at least 1")
	}
	dir, err := os.MkdirTemp("", "toolfabric-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // temporary in any case
	cfg.Dir, cfg.Progress = dir, a.err
	if cfg.Command, err = a.benchServer(); err != nil {
		return err
	}
	report, err := bench.MeasureGrowth(ctx, cfg)
	if err != nil {
		return err
	}
	return a.printReport(report)
}
