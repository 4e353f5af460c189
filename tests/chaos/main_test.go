// Package chaos breaks real processes at every fault point, and under them the broker, while sessions run, and judges what
// is left: the streams, and a ledger of effects that the tools write beside the fabric.
//
// Without -all it does a selection. make chaos does all, and prints how long each case took from the fault to the last
// answer.
package chaos

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var all = flag.Bool("all", false, "every point with every fault, and what takes minutes; not a selection")

// atOnce is how many cases run beside each other: they wait far more than they compute.
const atOnce = "4"

// binary is toolfabric with its fault points, built once.
var binary string

// ledgerVar makes this program a tool: it names the ledger.
const ledgerVar = "CHAOS_LEDGER"

func TestMain(m *testing.M) {
	if path := os.Getenv(ledgerVar); path != "" {
		if err := runTool(path, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if !set {
		_ = flag.Set("test.parallel", atOnce)
	}
	os.Exit(build(m))
}

func build(m *testing.M) int {
	if testing.Short() {
		return m.Run() // each test says that it is skipped
	}
	dir, err := os.MkdirTemp("", "toolfabric-chaos-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "toolfabric")
	if out, err := exec.Command("go", "build", "-tags", "faults", "-o", binary, "../../cmd/toolfabric").CombinedOutput(); err != nil {
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

// effect is a line of the ledger: a tool did something to the world.
type effect struct {
	Call string          `json:"call"`
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
	At   time.Time       `json:"at"`

	Handle string `json:"handle,omitempty"` // for the result of a tool that takes long
}

// runTool is what a worker runs for a call: it enters the effect in one write and answers with the text it was given. The
// tool bulk answers with more than a log holds.
func runTool(ledger, name string) error {
	var args struct {
		Text string `json:"text"`
	}
	raw, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return err
	}
	line, err := json.Marshal(effect{Call: os.Getenv("TF_CALL_ID"), Tool: name, Args: raw, At: time.Now(), Handle: os.Getenv("TF_RESULT_HANDLE")})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if name == "report" {
		return nil // its result comes from outside
	}
	answer := name + " " + args.Text
	if name == "bulk" {
		answer += strings.Repeat(" and more", 200<<10/len(" and more"))
	}
	return json.NewEncoder(os.Stdout).Encode(answer)
}

// skipShort leaves out what starts processes.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("chaos runs real processes for many seconds: leave -short away")
	}
}
