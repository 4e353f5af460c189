package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toolfabric/toolfabric/toolkit/model/fakellm"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"toolfabric": func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			context.AfterFunc(ctx, stop)
			os.Exit(Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			script, err := scripted.Parse([]byte(geminiScript))
			if err != nil {
				return err
			}
			handler, err := fakellm.New(fakellm.Config{Script: script})
			if err != nil {
				return err
			}
			gemini := httptest.NewServer(handler)
			env.Defer(gemini.Close)
			env.Setenv("GOOGLE_API_KEY", "any")
			env.Setenv("GOOGLE_GEMINI_BASE_URL", gemini.URL)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_DATA_HOME", filepath.Join(env.WorkDir, "data"))
			env.Setenv("TOOLFABRIC_DATA", filepath.Join(env.WorkDir, "fabric")) // not the default: nothing else of this machine answers
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "await": await},
	})
}

const geminiScript = `
rules:
  - user: 'count (?P<what>.+)'
    calls:
      - tool: word_count
        each: {of: '{{ .what }}', split: ',\s*', as: part}
        args: {text: '{{ .part }}'}
  - user: 'count'
    after: [word_count]
    text: "{{ range .results.word_count }}{{ .args.text }}: {{ .value }} words. {{ end }}"
    chunks: 3
  - user: 'again'
    text: "\e[31mHello again.\e[0m"
`

// exits runs a command that must end with an exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// await runs a command until it succeeds: what it needs is starting in another process.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: await COMMAND [ARG...]")
	}
	deadline, tick := time.After(2*time.Minute), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for ts.Exec(args[0], args[1:]...) != nil {
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("%v never succeeded", args)
		}
	}
}

// command runs one command line in this process.
func command(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	var out, err bytes.Buffer
	code = Main(t.Context(), args, bytes.NewBufferString(stdin), &out, &err)
	return code, out.String(), err.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs:\n%s", file, got)
	}
}
