package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolfabric/toolfabric/protocol"
)

// walk visits every command that a user can type.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, c := range cmd.Commands() {
		if c.Name() != "help" && c.Name() != "completion" {
			walk(c, visit)
		}
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	names := map[string]bool{}
	walk((&app{}).root(), func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		names[path] = true
		if cmd.Short == "" || len(cmd.Short) > 60 || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: the short text %q is not one of 1 to 60 characters without a full stop", path, cmd.Short)
		}
		if !strings.Contains(cmd.Example, path) {
			t.Errorf("%s: no example runs it", path)
		}
		for line := range strings.Lines(cmd.Example) {
			if !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: the example %q is not indented by two", path, line)
			}
		}
		for _, name := range []string{"wait", "id", "stream", "as", "digest", "watch", "interim", "keep"} {
			if cmd.LocalFlags().Lookup(name) != nil && !cmd.HasSubCommands() && !strings.Contains(cmd.Example, " --"+name) {
				t.Errorf("%s: no example has --%s, which explains itself to nobody", path, name)
			}
		}
		if cmd.RunE == nil || cmd.Args == nil {
			t.Errorf("%s: takes any arguments or does nothing", path)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s: --%s has no text", path, f.Name)
			}
		})
	})
	for _, want := range []string{
		"up", "coordinator", "worker", "worker exec", "worker http", "worker openapi", "worker mcp", "run", "call", "tools", "tools ls", "tools show", "tools forget", "pools ls", "pools show",
		"sessions ls", "sessions show", "sessions log", "sessions delete", "sessions cancel",
		"approvals ls", "approvals show", "approvals approve", "approvals deny", "calls ls", "calls show", "calls complete", "calls cancel",
		"dlq ls", "dlq show", "dlq retry", "dlq drop", "agents ls", "agents show", "agents validate", "skills put", "skills ls", "skills show", "skills rm", "trace", "doctor", "fake-llm", "bench", "version",
	} {
		if !names["toolfabric "+want] {
			t.Errorf("no command %s", want)
		}
	}
}

func TestHelpBeginsWithExamples(t *testing.T) {
	_, out, _ := command(t, "", "call", "--help")
	examples, usage := strings.Index(out, "Examples:"), strings.Index(out, "Usage:")
	if examples < 0 || usage < examples {
		t.Errorf("help:\n%s", out)
	}
}

func TestEveryCommandRefusesAWrongCommandLineWith2(t *testing.T) {
	walk((&app{}).root(), func(cmd *cobra.Command) {
		args := strings.Fields(cmd.CommandPath())[1:]
		if code, _, stderr := command(t, "", append(args, "--no-such-flag")...); code != exitUsage || !strings.Contains(stderr, "no-such-flag") {
			t.Errorf("%v --no-such-flag: exit %d, %s", args, code, stderr)
		}
		many := append(args, "a", "b", "c")
		if strings.Contains(cmd.Use, "...") {
			return
		}
		if code, _, stderr := command(t, "", many...); code != exitUsage {
			t.Errorf("%v: exit %d, %s", many, code, stderr)
		}
	})
}

func TestExitCodesFollowTheKindOfFailure(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("unknown flag: --x"), 2},
		{ranError{protocol.Errorf(protocol.CodeUsage, "x")}, 2},
		{ranError{protocol.Errorf(protocol.CodeBadName, "x")}, 2},
		{ranError{protocol.Errorf(protocol.CodeAuth, "x")}, 3},
		{ranError{protocol.Errorf(protocol.CodeForbidden, "x")}, 3},
		{ranError{protocol.Errorf(protocol.CodeUnreachable, "x")}, 4},
		{ranError{fmt.Errorf("run: %w", protocol.Errorf(protocol.CodeServerTooOld, "x"))}, 4},
		{ranError{protocol.Errorf(protocol.CodeUnknownTool, "x")}, 5},
		{ranError{protocol.Errorf(protocol.CodeStorageFull, "x")}, 5},
		{ranError{&failure{code: string(protocol.CodeInternal), message: "a run that failed"}}, 5},
		{ranError{protocol.Errorf(protocol.CodeInternal, "x")}, 6},
		{ranError{io.ErrUnexpectedEOF}, 6},
		{ranError{errDetached}, 130},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: exit %d, want %d", c.err, got, c.want)
		}
	}
}
