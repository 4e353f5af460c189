package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/boot"
	"github.com/toolfabric/toolfabric/cmd/internal/demo"
	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/worker"
)

// demoPatience bounds the whole tour, which takes a few seconds.
const demoPatience = 90 * time.Second

func (a *app) demoCmd() *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use: "demo", Short: "See it all work, offline, in a few seconds", Args: cobra.NoArgs,
		Long: `Demo starts a nats-server, a coordinator, two workers and a model that follows a script, each as a process of its own,
and asks an agent about three files of this folder. It kills one worker in the middle of a call and shows that the answer is
right all the same. Then it asks for something that a person must agree to and for something that takes long, kills the
coordinator while the session waits, agrees with a publish, and gives the long call its result from outside. No network and
no key are needed, and the files are only read. It exits with 0 when all that it claims was so, and with 5 when it was not.`,
		Example: `  toolfabric demo
  toolfabric demo --keep                      keeps its data, to be looked at with the other commands
  toolfabric demo --output json | jq .checks`,
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the data of the tour and say where it is")
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error { return a.demo(ctx, keep) })
	cmd.AddCommand(a.demoWorkerCmd())
	return cmd
}

func (a *app) demo(ctx context.Context, keep bool) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, demoPatience,
		protocol.Errorf(protocol.CodeInternal, "the tour took more than %s and was given up; see its logs with --keep", demoPatience))
	defer cancel()
	// Whoever reads the output may leave before its end: a write then fails, and the clean-up still happens.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	g := &guide{a: a, calls: map[string]protocol.Call{}}
	cfg := demo.Config{Show: g}
	if cfg.Binary, err = os.Executable(); err != nil {
		return err
	}
	if cfg.Dir, err = os.Getwd(); err != nil {
		return protocol.Wrap(err, protocol.CodeUsage, "the working folder is not there")
	}
	g.dir = cfg.Dir
	if cfg.Data, err = os.MkdirTemp("", "toolfabric-demo-"); err != nil {
		return protocol.Wrap(err, protocol.CodeUsage, "no temporary folder can be made; TMPDIR names where")
	}
	if cfg.Data, err = filepath.Abs(cfg.Data); err != nil {
		return err
	}
	if !keep {
		defer func() { err = errors.Join(err, os.RemoveAll(cfg.Data)) }()
	}
	t, err := demo.Run(ctx, cfg)
	if err != nil {
		if keep {
			a.say("kept in %s", cfg.Data)
		}
		return err
	}
	if err := a.print(t, func() error { return a.showTour(t) }); err != nil {
		return err
	}
	if keep {
		a.say("\nkept in %[3]s; look at it with\n  toolfabric up --data %[1]s\nand, in another terminal,\n  toolfabric --data %[1]s sessions show %[2]s\n  toolfabric --data %[1]s trace %[2]s",
			boot.Quoted(cfg.NATS()), t.Session, cfg.Data)
	}
	for _, c := range t.Checks {
		if !c.OK {
			return &failure{code: "demo_failed", message: "it is not true that " + c.Claim + ": " + c.Found}
		}
	}
	return nil
}

// showTour prints what follows the conversation.
func (a *app) showTour(t *demo.Tour) error {
	fmt.Fprintf(a.out, "\n%s\n", a.out.Paint(term.Dim, "The trace of this session, across its processes:"))
	if err := writeTrace(a.out, t.Trace, time.Now()); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	for _, c := range t.Checks {
		mark := a.out.Paint(term.Green, "✓")
		if !c.OK {
			mark = a.out.Paint(term.Red, "✗")
		}
		fmt.Fprintf(a.out, "%s %s\n", mark, c.Claim)
	}
	_, err := fmt.Fprintf(a.out, "%s\n", a.out.Paint(term.Dim, "in "+span(time.Duration(t.Millis)*time.Millisecond)))
	return err
}

// guide tells a tour as it goes: the conversation on stdout, the processes on stderr. Programs get the tour as JSON
// instead of the conversation.
type guide struct {
	a     *app
	dir   string                   // the working folder, or the one that was said to be asked about instead
	calls map[string]protocol.Call // that are open
}

func (g *guide) Started(p demo.Process) {
	g.a.say("%s %s", g.a.err.Paint(term.Dim, fmt.Sprintf("started %-11s pid %-7d", p.Name, p.PID)), g.a.err.Paint(term.Dim, "toolfabric "+verb(p.Args)))
}

// verb is a command line up to its flags.
func verb(args []string) string {
	if i := slices.IndexFunc(args, func(s string) bool { return strings.HasPrefix(s, "-") }); i >= 0 {
		args = args[:i]
	}
	return strings.Join(args, " ")
}

func (g *guide) Asked(dir, question string) {
	if dir != g.dir {
		g.a.say("this folder has too few small text files; the tour has written its own")
		g.dir = dir
	}
	g.line("\n%s\n%s\n", g.a.out.Paint(term.Yellow, "you:"), g.a.out.Text(question))
}

func (g *guide) Running(r demo.Running) {
	if call, ok := g.calls[r.Call]; ok {
		g.line("  %s %s %s %s", g.a.out.Paint(term.Dim, "…"), call.Tool, oneLine(call.Args, 80), g.a.out.Paint(term.Dim, attemptOf(r.Worker, r.Attempt)))
	}
}

func (g *guide) Killed(p demo.Process) {
	g.line("  %s %s", g.a.out.Paint(term.Red, "✗"), g.a.out.Paint(term.Red, fmt.Sprintf("%s (pid %d) is killed with SIGKILL in the middle of its call; after %s of silence another worker gets it", p.Name, p.PID, demo.Lease)))
}

func (g *guide) Answered(text string) {
	g.line("\n%s\n%s", g.a.out.Paint(term.Yellow, demo.Agent+":"), g.a.out.Text(text))
}

func (g *guide) Waits(p client.Parked) {
	what := "its result"
	if p.Confirmation != nil {
		what = "a person's word"
	}
	g.line("  %s %s", g.a.out.Paint(term.Yellow, "?"), g.a.out.Paint(term.Yellow, fmt.Sprintf("%s waits for %s; nothing is held but its records", p.Tool, what)))
}

func (g *guide) Restarted(old, young demo.Process) {
	g.line("  %s %s", g.a.out.Paint(term.Red, "✗"), g.a.out.Paint(term.Red, fmt.Sprintf("%s (pid %d) is killed with SIGKILL while the session waits", old.Name, old.PID)))
	g.Started(young)
}

func (g *guide) Does(command ...string) {
	quoted := make([]string, len(command))
	for i, arg := range command {
		quoted[i] = boot.Quoted(arg)
	}
	g.line("  %s %s", g.a.out.Paint(term.Dim, "$"), strings.Join(quoted, " "))
}

func (g *guide) Update(u client.Update) {
	switch {
	case u.Done != nil:
		g.answered(u.Done.Call, u.Done.Result)
	case u.Entry != nil:
		for _, answer := range u.Entry.Event.Answers {
			g.answered(answer.Call, answer.Result)
		}
		if u.Entry.Event.Turn == nil {
			return
		}
		for _, call := range u.Entry.Event.Turn.Calls {
			g.calls[call.ID] = call
			g.line("  %s %s %s", g.a.out.Paint(term.Cyan, ">"), call.Tool, oneLine(call.Args, 80))
		}
	}
}

func (g *guide) answered(id string, r protocol.Result) {
	call, open := g.calls[id]
	if !open {
		return
	}
	delete(g.calls, id)
	g.line("  %s %s %s %s", g.a.out.Paint(term.Green, "<"), call.Tool, oneLine(bare(r.Value), 120), g.a.out.Paint(term.Dim, attemptOf(r.Worker, r.Attempt)))
}

func attemptOf(worker string, attempt int) string {
	if attempt > 1 {
		return fmt.Sprintf("%s, attempt %d", worker, attempt)
	}
	return worker
}

func (g *guide) line(format string, args ...any) {
	if g.a.set.Output != "json" {
		fmt.Fprintf(g.a.out, format+"\n", args...)
	}
}

// demoWorkerCmd is the worker of the tour, whose tools are functions of this binary.
func (a *app) demoWorkerCmd() *cobra.Command {
	var b demo.Bench
	cmd := &cobra.Command{
		Use: "worker", Short: "Serve the tools of the tour", Args: cobra.NoArgs, Hidden: true,
		Example: "  toolfabric demo worker --name worker-1 --dir . --ledger ledger.jsonl --gate gate",
	}
	f := cmd.Flags()
	f.StringVar(&b.Worker, "name", "", "the worker's `NAME`")
	f.StringVar(&b.Dir, "dir", "", "`DIR` that paths start from")
	f.StringVar(&b.Ledger, "ledger", "", "`FILE` of effects")
	f.StringVar(&b.Gate, "gate", "", "`FILE` that must be there before an effect")
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error {
		tools, err := b.Tools()
		if err != nil {
			return err
		}
		return a.work(ctx, worker.Config{ID: b.Worker, Tools: tools, ToolSlots: demo.Slots})
	})
	return cmd
}
