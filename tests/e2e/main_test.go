// Package e2e runs the built binary as people do: several processes, real signals, what they print and how they exit.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// binary is toolfabric, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "toolfabric-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "toolfabric")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/toolfabric").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "the binary cannot be built: %v\n%s", err, out)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
