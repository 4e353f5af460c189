package demo

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shell is a fleet whose binary is a shell.
func shell(t *testing.T) (f *fleet, failed chan error) {
	t.Helper()
	path, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell here")
	}
	failed = make(chan error, 1)
	f = &fleet{binary: path, logs: t.TempDir(), env: os.Environ(), failed: func(err error) { failed <- err }, asked: map[int]struct{}{}}
	t.Cleanup(f.stop)
	return f, failed
}

func TestAChildThatEndsByItselfIsTold(t *testing.T) {
	f, failed := shell(t)
	if _, err := f.start("child", nil, "-c", "echo first >&2; echo last >&2; exit 3"); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !strings.Contains(err.Error(), "child ended by itself (exit status 3)") || !strings.Contains(err.Error(), "first; last") {
		t.Error(err)
	}
}

func TestAKilledChildIsGoneAndNoFailure(t *testing.T) {
	f, failed := shell(t)
	p, err := f.start("child", nil, "-c", "exec sleep 60")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.kill(p); err != nil {
		t.Fatal(err)
	}
	if p.cmd.ProcessState == nil || p.cmd.ProcessState.Success() {
		t.Error("it still runs, or ended well")
	}
	select {
	case err := <-failed:
		t.Error(err)
	default:
	}
}

func TestTheFirstLineOfAChildIsAwaited(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f, _ := shell(t)
	if _, err := f.start("child", w, "-c", "echo one; echo two; exec sleep 60"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if line, err := firstLine(t.Context(), r); line != "one" || err != nil {
		t.Error(line, err)
	}
}

func TestWaitingForAFirstLineEndsWithItsContext(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := firstLine(ctx, r); err != context.DeadlineExceeded {
		t.Error(err)
	}
}

func TestChildrenDoNotInheritWhatLeadsElsewhere(t *testing.T) {
	t.Setenv("TOOLFABRIC_NATS", "nats://elsewhere:4222")
	t.Setenv("GOOGLE_API_KEY", "a real one")
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
	env := strings.Join(environment("settings.yaml", "http://model"), "\n")
	for _, gone := range []string{"elsewhere", "a real one", "VERTEXAI"} {
		if strings.Contains(env, gone) {
			t.Errorf("%s is passed on", gone)
		}
	}
	if !strings.Contains(env, "GOOGLE_GEMINI_BASE_URL=http://model") || !strings.Contains(env, "PATH=") {
		t.Error(env)
	}
}
