//go:build unix

package exectool_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/exectool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
	"github.com/toolfabric/toolfabric/toolkit/tooltest"
)

func TestMain(m *testing.M) {
	if pipe := os.Getenv(doomedPipe); pipe != "" {
		holdPipe(pipe)
	}
	goleak.VerifyTestMain(m)
}

// doomedPipe makes this program a worker whose command holds a pipe open; it names the pipe.
const doomedPipe = "EXECTOOL_TEST_PIPE"

func holdPipe(pipe string) {
	et, err := exectool.New(command("", "sh", "-c", `exec 3>"$0"; echo $$ >&3; exec sleep 1000`, pipe))
	if err == nil {
		var it *invoke.Tool
		if it, err = invoke.New(et); err == nil {
			_, err = it.Run(context.Background(), invoke.Call{Envelope: protocol.Envelope{Call: "c1", Session: "s1", Args: []byte(`{}`)}, Attempt: 1})
		}
	}
	_, _ = os.Stderr.WriteString("the command has ended: " + err.Error())
	os.Exit(1)
}

const textSchema = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`

func command(schema string, argv ...string) exectool.Config {
	return exectool.Config{Name: "x", Description: "A command.", Argv: argv, Schema: json.RawMessage(schema)}
}

func run(t *testing.T, ctx context.Context, cfg exectool.Config, args string) protocol.Result {
	t.Helper()
	et, err := exectool.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	it, err := invoke.New(et)
	if err != nil {
		t.Fatal(err)
	}
	r, err := it.Run(ctx, invoke.Call{Envelope: protocol.Envelope{Call: "c1", Session: "s1", Args: json.RawMessage(args)}, Attempt: 2})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTheSuite(t *testing.T) {
	tooltest.Run(t, func() tool.Tool {
		et, err := exectool.New(command(textSchema, "wc", "-w"))
		if err != nil {
			t.Fatal(err)
		}
		return et
	},
		tooltest.Case{Name: "words", Args: `{"text":"a\nb c"}`, Want: `{"result":3}`},
		tooltest.Case{Name: "missing", Args: `{}`, Refused: true},
		tooltest.Case{Name: "other type", Args: `{"text":1}`, Refused: true},
	)
	tooltest.Run(t, func() tool.Tool {
		et, err := exectool.New(command("", "sleep", "1000"))
		if err != nil {
			t.Fatal(err)
		}
		return et
	}, tooltest.Case{Name: "sleep", Args: `{}`, Blocks: true})
}

func TestInputAndOutput(t *testing.T) {
	two := `{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer"}}}`
	name := func(cfg exectool.Config, stdin string) exectool.Config { cfg.Stdin = stdin; return cfg }
	for _, c := range []struct {
		what string
		cfg  exectool.Config
		args string
		want string
	}{
		{"text", command(textSchema, "cat"), `{"text":"a\nb\n\n"}`, `{"result":"a\nb\n"}`},
		{"JSON in and out", command(two, "cat"), `{"a":"x","n":9007199254740993}`, `{"a":"x","n":9007199254740993}`},
		{"one property of several", name(command(two, "cat"), "n"), `{"a":"x","n":12}`, `{"result":12}`},
		{"JSON though one would do", name(command(textSchema, "cat"), "json"), `{"text":"x"}`, `{"text":"x"}`},
		{"nothing to read", command(`{"type":"object","properties":{"a":{"type":"string"}}}`, "sh", "-c", `cat; echo "$1"`, "sh", "{a}"), `{"a":"$(id); rm -rf /"}`, `{"result":"$(id); rm -rf /"}`},
		{"left out", command(two, "sh", "-c", `echo $#`, "sh", "{a}", "{n}"), `{"n":1}`, `{"result":1}`},
		{"dash after --", command(textSchema, "echo", "--", "{text}"), `{"text":"-n"}`, `{"result":"-- -n"}`},
		{"dash", command(textSchema, "echo", "{text}"), `{"text":"-n"}`, `{"error":"/text: \"-n\" begins with a dash, which the command would take for an option"}`},
		{"NUL", command(textSchema, "echo", "{text}"), `{"text":"a\u0000b"}`, `{"error":"/text: holds a NUL byte"}`},
		{"no output", command("", "true"), `{}`, `{"result":""}`},
		{"bytes", command("", "printf", `\377`), `{}`, `{"result":"data:application/octet-stream;base64,/w=="}`},
		{"a key twice", command("", "echo", `{"a":1,"a":2}`), `{}`, `{"result":"{\"a\":1,\"a\":2}"}`},
		{"exit code", command("", "sh", "-c", `echo bad >&2; exit 3`), `{}`, `{"error":"exit 3: bad"}`},
		{"exit code in silence", command("", "false"), `{}`, `{"error":"exit 1"}`},
		{"signal", command("", "sh", "-c", `kill -9 $$`), `{}`, `{"error":"exit 137 (killed)"}`},
	} {
		if got := run(t, t.Context(), c.cfg, c.args); string(got.Value) != c.want {
			t.Errorf("%s: got %s, want %s", c.what, got.Value, c.want)
		}
	}
}

func TestTheEnvironmentIsClean(t *testing.T) {
	t.Setenv("TF_TEST_SECRET", "hidden")
	t.Setenv("LD_PRELOAD", "")
	cfg := command("", "env")
	cfg.Env = []string{"EXTRA=1"}
	got := string(run(t, t.Context(), cfg, `{}`).Value)
	for _, want := range []string{"TF_CALL_ID=c1", "TF_SESSION=s1", "TF_ATTEMPT=2", "EXTRA=1", "PATH="} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	if strings.Contains(got, "hidden") || strings.Contains(got, "LD_PRELOAD") {
		t.Errorf("the worker's environment came through: %s", got)
	}
}

func TestTooMuchOutputIsKilledAndShown(t *testing.T) {
	cfg := command("", "yes")
	cfg.MaxOutput = 1000
	r := run(t, t.Context(), cfg, `{}`)
	if r.Outcome != protocol.OutcomeFailed || !strings.Contains(string(r.Value), "more than 1000 bytes") || !strings.Contains(string(r.Value), `y\ny\n`) {
		t.Errorf("got %s %s", r.Outcome, r.Value)
	}
}

func TestOnlyTheEndOfStandardErrorIsShown(t *testing.T) {
	r := run(t, t.Context(), command("", "sh", "-c", `i=0; while [ $i -lt 500 ]; do echo "line $i" >&2; i=$((i+1)); done; exit 1`), `{}`)
	if s := string(r.Value); len(s) > 4000 || !strings.Contains(s, "exit 1: ... ") || !strings.HasSuffix(s, `line 499"}`) {
		t.Errorf("got %d bytes: %.200s", len(s), s)
	}
}

// The command's child holds the pipe open: the pipe ends when the whole group is dead.
func TestChildrenDieWithTheCommand(t *testing.T) {
	for name, script := range map[string]string{
		"cancelled":        `exec 3>"$0"; sleep 1000 & wait`,
		"exited before it": `exec 3>"$0"; sleep 1000 >/dev/null 2>&1 & exit 0`,
	} {
		t.Run(name, func(t *testing.T) {
			pipe := filepath.Join(t.TempDir(), "alive")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			dead := make(chan error, 1)
			go func() {
				f, err := os.Open(pipe) // returns once the command has opened it
				if err == nil {
					if name == "cancelled" {
						cancel()
					}
					_, err = io.ReadAll(f)
					_ = f.Close()
				}
				dead <- err
			}()
			r := run(t, ctx, command("", "sh", "-c", script, pipe), `{}`)
			if want := map[string]protocol.Outcome{"cancelled": protocol.OutcomeCancelled}[name]; want != "" && r.Outcome != want {
				t.Errorf("got %s %s", r.Outcome, r.Value)
			}
			if err := <-dead; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	env := command("", "true")
	env.Env = []string{"NOVALUE"}
	dir := command("", "true")
	dir.Dir = "/does/not/exist"
	stdin := command(textSchema, "cat")
	stdin.Stdin = "txt"
	for _, c := range []struct {
		cfg  exectool.Config
		code protocol.Code
		want string
	}{
		{exectool.Config{Name: "a.b", Argv: []string{"true"}}, protocol.CodeBadName, "a_b"},
		{command(""), protocol.CodeUsage, "no command"},
		{command("", "no-such-command-here"), protocol.CodeUsage, "not there"},
		{command(`{"type":"array"}`, "true"), protocol.CodeBadDeclaration, "tool x"},
		{command(textSchema, "echo", "{txt}"), protocol.CodeUsage, "{txt}"},
		{command(`{"properties":{"l":{"type":"array"}}}`, "echo", "{l}"), protocol.CodeUsage, "array"},
		{env, protocol.CodeUsage, "NOVALUE"},
		{dir, protocol.CodeUsage, "/does/not/exist"},
		{stdin, protocol.CodeUsage, "txt"},
	} {
		_, err := exectool.New(c.cfg)
		if protocol.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %s with %s", c.cfg, err, c.code, c.want)
		}
	}
}

func TestLongRunningCommand(t *testing.T) {
	cfg := command(`{"type":"object","properties":{"what":{"type":"string"}}}`, "sh", "-c", `cat >/dev/null; test "$1" = quiet || printf '{"ticket":"%s"}' "$TF_RESULT_HANDLE"`, "sh", "{what}")
	cfg.LongRunning = true
	if r := run(t, t.Context(), cfg, `{"what":"quiet"}`); r.Outcome != protocol.OutcomePending || r.Value != nil {
		t.Errorf("a command that writes nothing: %s, %s", r.Outcome, r.Value)
	}
	if r := run(t, t.Context(), cfg, `{"what":"loud"}`); r.Outcome != protocol.OutcomePending || string(r.Value) != `{"ticket":".x.s1.c1.1"}` {
		t.Errorf("a command that writes a ticket: %s, %s", r.Outcome, r.Value)
	}
	cfg.LongRunning = false
	if r := run(t, t.Context(), cfg, `{"what":"loud"}`); r.Outcome != protocol.OutcomeCompleted || string(r.Value) != `{"ticket":""}` {
		t.Errorf("another command has a handle: %s, %s", r.Outcome, r.Value)
	}
}
