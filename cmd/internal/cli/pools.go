package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
)

func (a *app) poolsCmd() *cobra.Command {
	ls := &cobra.Command{
		Use: "ls", Short: "List the pools with their workers and backlog", Args: cobra.NoArgs,
		Example: "  toolfabric pools ls\n  toolfabric pools ls --output json",
		RunE:    a.do(a.poolsLs),
	}
	show := &cobra.Command{
		Use: "show TOOL", Short: "Show the workers of one pool", Args: cobra.ExactArgs(1),
		Example: "  toolfabric pools show word_count",
		RunE:    a.do(a.poolsShow),
	}
	return group("pools", "Who serves each tool, and what waits", "  toolfabric pools\n  toolfabric pools show word_count", ls, show)
}

func (a *app) poolsLs(ctx context.Context, _ []string) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	pools, err := s.client.Pools(ctx)
	if err != nil {
		return a.absent(ctx, s, err)
	}
	return a.print(pools, func() error { return a.poolTable(pools...) })
}

func (a *app) poolTable(pools ...client.Pool) error {
	rows := make([][]string, 0, len(pools))
	for _, p := range pools {
		rows = append(rows, []string{
			p.Tool, strconv.Itoa(p.Serving()), strconv.Itoa(p.Slots), strconv.Itoa(p.Active),
			strconv.FormatUint(p.Pending, 10), strconv.Itoa(p.InFlight),
		})
	}
	if err := a.list([]string{"TOOL", "WORKERS", "SLOTS", "ACTIVE", "PENDING", "IN-FLIGHT"}, rows, noTools); err != nil {
		return err
	}
	for _, p := range pools {
		if n := p.Versions(); n > 1 {
			a.say("%s %s is served in %d versions; toolfabric pools show %s tells who serves which", a.err.Paint(term.Yellow, "!"), p.Tool, n, p.Tool)
		}
	}
	return nil
}

func (a *app) poolsShow(ctx context.Context, args []string) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	pool, err := s.client.Pool(ctx, args[0])
	if err != nil {
		return err
	}
	return a.print(pool, func() error {
		if err := a.poolTable(pool); err != nil {
			return err
		}
		if len(pool.Workers) == 0 {
			a.say("nobody serves %s now; calls wait for a worker until their queue timeout", pool.Tool)
			return nil
		}
		rows := make([][]string, 0, len(pool.Workers))
		for _, w := range pool.Workers {
			state := "serving"
			if w.Draining {
				state = "draining"
			}
			digest := w.Declaration.Digest()
			rows = append(rows, []string{w.Worker, w.Host, state, strconv.Itoa(w.Slots), strconv.Itoa(w.Active), ago(time.UnixMilli(w.Started)), short(digest)})
		}
		fmt.Fprintln(a.out)
		return a.table([]string{"WORKER", "HOST", "STATE", "SLOTS", "ACTIVE", "STARTED", "DIGEST"}, rows)
	})
}
