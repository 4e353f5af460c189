package integration

import (
	"sync/atomic"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
)

type addArgs struct {
	A int `json:"a"`
	B int `json:"b"`
}

func adder(t *testing.T, runs *atomic.Int32, effect tool.Effect) tool.Tool {
	t.Helper()
	tl, err := functiontool.New(functiontool.Config{Name: "add", Description: "Adds two numbers", Effect: effect},
		func(_ tool.Context, in addArgs) (int, error) {
			runs.Add(1)
			return in.A + in.B, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

const sums = `
rules:
  - user: 'add (?P<a>\d+) and (?P<b>\d+)'
    calls:
      - {tool: add, args: {a: {json: '{{ .a }}'}, b: {json: '{{ .b }}'}}}
  - user: 'add'
    after: [add]
    text: 'the sum is {{ (index .results.add 0).value }}'
`

func TestAgentAnswersThroughAWorker(t *testing.T) {
	f := newFabric(t)
	f.coordinate(newAgent(t, "math", script(t, sums), "add"))
	var runs atomic.Int32
	f.work(adder(t, &runs, tool.AtMostOnce))
	out := f.ask("math", "", "add 2 and 40")
	if out.Problem != nil {
		t.Fatalf("the run failed: %+v", out.Problem)
	}
	contains(t, "the answer", out.Text, "the sum is 42")
	out = f.ask("math", out.Session, "add 20 and 40")
	contains(t, "the second answer", out.Text, "the sum is 60")
	if n := runs.Load(); n != 2 {
		t.Errorf("the tool ran %d times, want 2", n)
	}
}

func TestOneDurableCall(t *testing.T) {
	f := newFabric(t)
	f.coordinate()
	var runs atomic.Int32
	f.work(adder(t, &runs, tool.Idempotent))
	r, err := f.call("add", `{"a":1,"b":2}`)
	if err != nil {
		t.Fatal(err)
	}
	if string(r.Value) != `{"result":3}` || r.Outcome != protocol.OutcomeCompleted {
		t.Errorf("got %s %s", r.Outcome, r.Value)
	}
	_, err = f.call("add", `{"a":1,"b":"x"}`)
	if protocol.CodeOf(err) != protocol.CodeSchemaViolation {
		t.Errorf("got %v, want schema_violation", err)
	}
	_, err = f.call("ad", `{}`)
	if protocol.CodeOf(err) != protocol.CodeUnknownTool {
		t.Errorf("got %v, want unknown_tool", err)
	}
}
