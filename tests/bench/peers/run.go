package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"time"
)

// run measures and prints. Everything that it starts it also stops, and its directory is removed.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	if len(args) > 0 && args[0] == serveNATS {
		return beNATS(ctx, args[1:], stdin)
	}
	var cfg Config
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&cfg.Rounds, "rounds", 5, "times all are measured; figures are medians")
	flags.IntVar(&cfg.Single, "single", 300, "calls of a round at 1 in flight")
	flags.IntVar(&cfg.Calls, "calls", 3000, "calls of a round where throughput is measured")
	flags.IntVar(&cfg.Many, "in-flight", 64, "calls open at once where throughput is measured, at most 256")
	flags.DurationVar(&cfg.Longest, "longest", 4*time.Second, "the longest time of one measurement; a slow peer makes fewer calls")
	only := flags.String("only", "", "measure only systems whose name has this in it")
	output := flags.String("output", "markdown", "markdown or json")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if min(cfg.Rounds, cfg.Single, cfg.Calls, cfg.Many) < 1 || cfg.Many > slots || cfg.Longest <= 0 || *output != "markdown" && *output != "json" {
		flags.Usage()
		return errors.New("a flag has a value that makes no sense")
	}
	dir, err := os.MkdirTemp("", "toolfabric-peers-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // a server that refuses to run as root reads it as somebody else
		return err
	}
	var chosen []Peer
	for _, p := range peers() {
		if strings.Contains(strings.ToLower(p.System), strings.ToLower(*only)) {
			chosen = append(chosen, p)
		}
	}
	report, err := measureAll(ctx, chosen, &Env{Dir: dir, Log: stderr, got: map[string]string{}}, cfg)
	if err != nil {
		return err
	}
	if *output == "json" {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(report)
	}
	return report.Print(stdout)
}
