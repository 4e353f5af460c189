package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/bench"
	"github.com/toolfabric/toolfabric/protocol"
)

func (a *app) benchParkCmd() *cobra.Command {
	var cfg bench.ParkConfig
	var profile string
	cmd := &cobra.Command{
		Use: "park", Short: "Measure the cost of sessions that wait for a person", Args: cobra.NoArgs,
		Long: `Park has many sessions ask for a person's word, and prints what each costs while it waits: memory and goroutines of the
process with the coordinator, memory and disk of the server, and the messages that it stores. Then it times, among all that
wait, the first page of the list and finding one call by its id, and from the publish of an approval to the worker's start,
beside ordinary calls, in turn. 100,000 sessions take some minutes. It keeps nothing.`,
		Example: `  toolfabric bench park
  toolfabric bench park --n 1000000
  toolfabric bench park --n 5000 --output json`,
	}
	f := cmd.Flags()
	f.IntVar(&cfg.Sessions, "n", 100_000, "`NUMBER` of sessions that wait")
	f.IntVar(&cfg.InFlight, "in-flight", 256, "`NUMBER` of sessions on their way to their wait at once")
	f.IntVar(&cfg.Replies, "replies", 200, "`NUMBER` of approvals, and of ordinary calls of each kind, that are timed")
	f.StringVar(&profile, "cpuprofile", "", "`FILE` for a CPU profile of this process")
	_ = f.MarkHidden("cpuprofile") // it exists
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error { return a.benchPark(ctx, cfg, profile) })
	return cmd
}

func (a *app) benchPark(ctx context.Context, cfg bench.ParkConfig, profile string) error {
	if min(cfg.Sessions, cfg.InFlight, cfg.Replies) < 1 {
		return protocol.Errorf(protocol.CodeUsage, "--n, --in-flight and --replies are at least 1")
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
	stop, err := profileTo(profile)
	if err != nil {
		return err
	}
	report, err := bench.MeasurePark(ctx, cfg)
	stop()
	if err != nil {
		return err
	}
	return a.printReport(report)
}
