package conformance

import (
	"bytes"
	"context"
	"flag"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolfabric/toolfabric/toolkit/model/fakellm"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const patience = 2 * time.Minute

func TestMovedProgramsDoWhatTheyDid(t *testing.T) {
	programs, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		if p.Name() == killed {
			continue
		}
		t.Run(p.Name(), func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			stdout, err := play(t, p.Name(), home)
			if err != nil {
				t.Errorf("it ended with %v", err)
			}
			if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
				t.Errorf("it left %v behind, %v", left, err)
			}
			golden(t, p.Name(), stdout)
		})
	}
}

// killed is a program that is killed the first time.
const killed = "restart"

func TestAKilledProgramGoesOnWithTheSameData(t *testing.T) {
	t.Parallel()
	home, data := t.TempDir(), "TOOLFABRIC_DATA="+filepath.Join(t.TempDir(), "data")
	first, err := play(t, killed, home, data)
	if err == nil {
		t.Error("it was not killed")
	}
	second, err := play(t, killed, home, data)
	if err != nil {
		t.Errorf("the second time it ended with %v", err)
	}
	golden(t, killed, first+"started again\n"+second)
}

// golden compares what a program wrote with what it wrote before.
func golden(t *testing.T, program, stdout string) {
	t.Helper()
	path := filepath.Join("testdata", program, "stdout.golden")
	if *update {
		if err := os.WriteFile(path, []byte(stdout), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
}

// play runs a program to its end, with a Gemini that plays its script, and returns what it wrote to stdout and how it ended.
// Its files belong into home.
func play(t *testing.T, program, home string, env ...string) (stdout string, err error) {
	t.Helper()
	dir := filepath.Join("testdata", program)
	script, err := scripted.Load(filepath.Join(dir, "script.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	llm, err := fakellm.New(fakellm.Config{Script: script})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(llm)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, program)
	cmd.Dir = home
	cmd.Env = append([]string{"GOOGLE_API_KEY=none", "GOOGLE_GEMINI_BASE_URL=" + server.URL, "HOME=" + home, "TMPDIR=" + home}, env...)
	if stdin, err := os.ReadFile(filepath.Join(dir, "stdin.txt")); err == nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	if err = cmd.Run(); err != nil {
		t.Logf("stderr of %s:\n%s", program, &talk)
	}
	return out.String(), err
}
