package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolfabric/toolfabric/cmd/internal/boot"
	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// app is what the verbs share: settings and where to write.
type app struct {
	set boot.Settings
	in  io.Reader
	ask bool // a person sits here: in is a terminal, and so is err

	where reach
	verbs []string
	out   term.Screen
	err   term.Screen
}

// Main runs one command line and returns its exit code. ctx ends when the user interrupts it.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{in: stdin, out: term.NewScreen(stdout), err: term.NewScreen(stderr)}
	a.ask = a.err.TTY && term.Terminal(stdin)
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil {
		a.locate(cmd) // an error may come before any verb runs
		a.report(cmd, err)
	}
	return exitCode(err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "toolfabric",
		Short: "Durable tool calls for LLM agents over NATS",
		Long: `Toolfabric runs the loop of an LLM agent in coordinators and each of its tools in a pool of workers, joined by NATS
JetStream: what was accepted survives the death of any of them.

Exit codes: 0 ok, 2 usage or configuration, 3 authentication or permission, 4 unreachable, 5 refused or failed run,
6 internal, 130 interrupted. A run or call that waits for a person or for a result from outside has not failed: run and call
then say what it waits for and exit with 0; --wait makes them wait for the end.`,
		Example: `  toolfabric demo                                                     see it work, offline
  toolfabric up --agents ./agents                                     everything in one process
  toolfabric worker exec --name word_count --description "Counts words" --schema schema.json -- wc -w
  toolfabric call word_count --args '{"text":"a b c"}'
  toolfabric run --agent helper "How many words has README.md?"`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: a.prepare,
		Args:              noVerb,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	a.set.Register(root.PersistentFlags())
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(usageTemplate)
	root.SetHelpTemplate(helpTemplate)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpCommand(helpCmd(root))
	root.AddCommand(
		a.demoCmd(), a.upCmd(), a.coordinatorCmd(), a.workerCmd(),
		a.runCmd(), a.callCmd(), a.toolsCmd(), a.poolsCmd(), a.sessionsCmd(),
		a.approvalsCmd(), a.callsCmd(), a.dlqCmd(), a.agentsCmd(), a.skillsCmd(), a.traceCmd(),
		a.doctorCmd(), a.fakeLLMCmd(), a.benchCmd(), a.versionCmd(),
	)
	return root
}

// helpCmd is help as a command. Unlike cobra's own it fails for what is no command.
func helpCmd(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]...", Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 {
				err = noVerb(about, rest)
			}
			if err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// noVerb refuses what is no command of cmd, and names the one that was probably meant.
func noVerb(cmd *cobra.Command, args []string) error {
	err := cobra.NoArgs(cmd, args)
	if err == nil {
		return nil
	}
	var known []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	if meant := protocol.Meant(args[0], known); meant != "" {
		return fmt.Errorf("%w; did you mean %s?", err, meant)
	}
	return err
}

// flagError adds the flag that a misspelled one was probably meant to be.
func flagError(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if meant := protocol.Meant(unknown.GetSpecifiedName(), known); meant != "" && len(unknown.GetSpecifiedName()) > 1 {
		return fmt.Errorf("%w; did you mean --%s?", err, meant)
	}
	return err
}

// prepare settles the settings before any verb runs.
func (a *app) prepare(cmd *cobra.Command, _ []string) error {
	a.locate(cmd)
	if err := boot.Resolve(cmd.Flags(), os.LookupEnv); err != nil {
		return err
	}
	a.out.Raw, a.err.Raw = a.set.Raw, a.set.Raw
	return a.set.Check()
}

// locate notes where the command line says that the fabric is.
func (a *app) locate(cmd *cobra.Command) {
	a.where, a.verbs = nil, nil
	cmd.Flags().Visit(a.where.note)
	for _, c := range cmd.Root().Commands() {
		a.verbs = append(a.verbs, c.Name())
	}
}

// line is a command line that reaches the same fabric as this one.
func (a *app) line(format string, args ...any) string {
	return "toolfabric " + fmt.Sprintf(format, args...) + a.where.flags("")
}

// natsLine is a line of the nats command that does.
func (a *app) natsLine(format string, args ...any) string {
	where := ""
	switch url := cmp.Or(a.set.NATS, boot.ReadEndpoint(a.set.Data).URL); {
	case a.set.Context != "":
		where = " --context " + boot.Quoted(a.set.Context)
	case url != "" && url != "nats://127.0.0.1:4222":
		where = " --server " + boot.Quoted(natswire.Redact(url))
	}
	if a.set.Creds != "" {
		where += " --creds " + boot.Quoted(a.set.Creds)
	}
	return "nats" + where + " " + fmt.Sprintf(format, args...)
}

// do makes a verb's function a cobra one.
func (a *app) do(verb func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := verb(cmd.Context(), args)
		if err != nil && cmd.Context().Err() != nil && protocol.CodeOf(err) == protocol.CodeCancelled {
			a.say("interrupted")
			err = errDetached
		}
		if err != nil {
			return ranError{err}
		}
		return nil
	}
}

// logger writes to stderr. level stands when the user named none.
func (a *app) logger(level slog.Level) *slog.Logger {
	return boot.Logger(a.err.Writer, a.set.LogLevel, level)
}

// group is a command whose bare form is its listing.
func group(use, short, example string, ls *cobra.Command, more ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Example: example, Args: noVerb, RunE: ls.RunE}
	cmd.Flags().AddFlagSet(ls.Flags())
	cmd.AddCommand(ls)
	cmd.AddCommand(more...)
	return cmd
}

const helpTemplate = `{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}
{{end}}{{if .HasExample}}
Examples:
{{.Example}}
{{end}}
{{.UsageString}}`

const usageTemplate = `Usage:
  {{.UseLine}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}

Global flags:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
`
