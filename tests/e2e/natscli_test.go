package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// natsVersion is the command line of NATS that the tests publish with, as somebody does who has nothing of ours.
const natsVersion = "v0.5.0"

// natsBuild is far above what its dependencies take on a slow line and a busy machine.
const natsBuild = 8 * time.Minute

// natsCLI builds the nats command, once for all runs of all checkouts' tests in this one: .tools keeps it.
var natsCLI = sync.OnceValues(func() (path string, err error) {
	tools, err := filepath.Abs("../../.tools")
	if err != nil {
		return "", err
	}
	path = filepath.Join(tools, "nats-"+natsVersion)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(tools, 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(tools, "nats-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), natsBuild)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "install", "github.com/nats-io/natscli/nats@"+natsVersion)
	build.Dir, build.Env = dir, append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", build, err, out)
	}
	return path, os.Rename(filepath.Join(dir, "nats"), path)
})

// needNATS leaves a test out under -short, because the nats command may have to be built, and otherwise fails it when
// that cannot be done.
func needNATS(t *testing.T) (program string) {
	t.Helper()
	if testing.Short() {
		t.Skip("publishes with natscli " + natsVersion + ", which may have to be built: leave -short away")
	}
	program, err := natsCLI()
	if err != nil {
		t.Fatalf("natscli %s cannot be built, and what others publish is not tested without it: %v", natsVersion, err)
	}
	return program
}

// pub publishes as nats pub does.
func (w *watcher) pub(subject, body string) {
	w.p.t.Helper()
	c := w.p.startProgram(needNATS(w.p.t), "pub", "--server", w.url, subject, body)
	if code := c.exit(); code != 0 {
		w.p.t.Fatalf("nats pub %s: exit %d\n%s", subject, code, c.stderr.String())
	}
}
