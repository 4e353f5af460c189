package functiontool_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
	"github.com/toolfabric/toolfabric/toolkit/tooltest"
)

type orderIn struct {
	Order string `json:"order" jsonschema:"the order's number"`
	Full  bool   `json:"full,omitempty"`
}

type orderOut struct {
	Order string `json:"order"`
	Total int64  `json:"total"`
	State string `json:"state"`
}

func lookup(ctx tool.Context, in orderIn) (orderOut, error) {
	switch in.Order {
	case "gone":
		return orderOut{}, errors.New("no such order")
	case "slow":
		<-ctx.Done()
		return orderOut{}, ctx.Err()
	}
	return orderOut{Order: in.Order, Total: 4200, State: "paid"}, nil
}

func lookupTool(t testing.TB) tool.Tool {
	return mustNew(t, functiontool.Config{Name: "lookup_order", Description: "Looks up an order.", Effect: tool.Read}, lookup)
}

func TestTheSuite(t *testing.T) {
	tooltest.Run(t, func() tool.Tool { return lookupTool(t) },
		tooltest.Case{Name: "found", Args: `{"order":"7","full":null}`, Want: `{"order":"7","total":4200,"state":"paid"}`},
		tooltest.Case{Name: "not found", Args: `{"order":"gone"}`, Outcome: protocol.OutcomeFailed, Want: `{"error":"no such order"}`},
		tooltest.Case{Name: "slow", Args: `{"order":"slow"}`, Blocks: true},
		tooltest.Case{Name: "missing", Args: `{}`, Refused: true},
		tooltest.Case{Name: "wrong case", Args: `{"Order":"7"}`, Refused: true},
	)
}

func smallCall(t testing.TB) func() {
	it, err := invoke.New(lookupTool(t))
	if err != nil {
		t.Fatal(err)
	}
	c := invoke.Call{Envelope: protocol.Envelope{Call: "c1", Args: json.RawMessage(`{"order":"10042","full":true}`)}, Attempt: 1, Worker: "w1"}
	return func() {
		if r, err := it.Run(t.Context(), c); err != nil || r.Outcome != protocol.OutcomeCompleted {
			t.Fatalf("%v, %s", err, r.Value)
		}
	}
}

func BenchmarkSmallCall(b *testing.B) {
	run := smallCall(b)
	b.ReportAllocs()
	for b.Loop() {
		run()
	}
}
