package tooltest_test

import (
	"errors"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/toolkit/tooltest"
)

// faulty are tools that break the contract, and what the suite says of them.
var faulty = map[string]struct {
	run  func(t *testing.T)
	says []string
}{
	"another one each time": {func(t *testing.T) {
		made := 0
		tooltest.Run(t, func() tool.Tool {
			made++
			return described(t, "Made "+strconv.Itoa(made), refund)
		})
	}, []string{"the digest changes"}},
	"no description": {func(t *testing.T) {
		tooltest.Run(t, func() tool.Tool { return described(t, " ", refund) })
	}, []string{"the description is empty"}},
	"other answers": {func(t *testing.T) {
		tooltest.Run(t, made(t, functiontool.Config{}, refund),
			tooltest.Case{Name: "value", Args: `{"amount":1}`, Want: `{"refunded":2}`},
			tooltest.Case{Name: "outcome", Args: `{"amount":1}`, Outcome: protocol.OutcomeFailed, Code: protocol.CodeToolPanic},
			tooltest.Case{Name: "words", Args: `{"amount":1}`, Tells: []string{"half"}},
			tooltest.Case{Name: "taken", Args: `{"amount":1}`, Refused: true})
	}, []string{`got {"refunded":1}, want {"refunded":2}`, "the outcome is completed , want failed tool_panic", `and not ["half"]`, "want them refused"}},
	"not idempotent": {func(t *testing.T) {
		var runs atomic.Int64
		tooltest.Run(t, made(t, functiontool.Config{Effect: tool.Idempotent}, func(ctx tool.Context, in order) (map[string]any, error) {
			if runs.Add(1); ctx.Attempt() > 1 {
				return nil, errors.New("it was refunded before")
			}
			return map[string]any{"refunded": in.Amount}, nil
		}), tooltest.Case{Name: "refund", Args: `{"amount":1}`, Want: `{"refunded":1}`})
	}, []string{"it was refunded before"}},
	"a stack for the model": {func(t *testing.T) {
		tooltest.Run(t, made(t, functiontool.Config{}, func(tool.Context, order) (map[string]any, error) {
			return nil, errors.New(string(debug.Stack()))
		}), tooltest.Case{Name: "refund", Args: `{"amount":1}`, Outcome: protocol.OutcomeFailed})
	}, []string{"tells the model a stack"}},
	"deaf": {func(t *testing.T) {

		heard := make(chan struct{})
		t.Cleanup(func() { close(heard) })
		tooltest.Run(t, made(t, functiontool.Config{}, func(tool.Context, order) (map[string]any, error) {

			<-heard
			return nil, nil
		}), tooltest.Case{Name: "refund", Args: `{"amount":1}`, Blocks: true})
	}, []string{"executions ignored the end of their context"}},
	"leaves a goroutine": {func(t *testing.T) {
		end := make(chan struct{})
		t.Cleanup(func() { close(end) })
		tooltest.Run(t, made(t, functiontool.Config{}, func(tool.Context, order) (map[string]any, error) {
			go func() { <-end }()
			return nil, nil
		}), tooltest.Case{Name: "refund", Args: `{"amount":1}`})
	}, []string{"found unexpected goroutines"}},
}

func described(t *testing.T, text string, f functiontool.Func[order, map[string]any]) tool.Tool {
	made, err := functiontool.New(functiontool.Config{Name: "refund", Description: text}, f)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

const asFaulty = "TOOLTEST_FAULTY"

// TestFaultyTools fails: TestTheSuiteFindsFaults runs it in a process of its own and reads what it says.
func TestFaultyTools(t *testing.T) {
	if os.Getenv(asFaulty) == "" {
		t.Skip("run by TestTheSuiteFindsFaults")
	}
	for name, c := range faulty {
		t.Run(name, c.run)
	}
}

func TestTheSuiteFindsFaults(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFaultyTools$", "-test.v")
	cmd.Env = append(os.Environ(), asFaulty+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatal("faulty tools pass")
	}
	for name, c := range faulty {
		if !strings.Contains(string(out), "--- FAIL: TestFaultyTools/"+strings.ReplaceAll(name, " ", "_")) {
			t.Errorf("%s: the tool passes", name)
		}
		for _, want := range c.says {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: nothing says %q", name, want)
			}
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}
