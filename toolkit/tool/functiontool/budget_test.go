//go:build !race

package functiontool_test

import (
	"encoding/json"
	"testing"
)

// smallCallBudget is how many allocations one small call may cost, all of it: checks, both contexts, the goroutine, the
// decoding and the encoding. Measured: 15.
const smallCallBudget = 16

func TestASmallCallStaysWithinItsAllocationBudget(t *testing.T) {
	if got := testing.AllocsPerRun(200, smallCall(t)); got > smallCallBudget {
		t.Errorf("a small call costs %.0f allocations, more than %d", got, smallCallBudget)
	}
}

// What it costs to decode arguments and encode an answer, without checks and contexts.
func TestConversionsStayWithinTheirAllocationBudgets(t *testing.T) {
	for _, c := range conversions {
		made, args := c.make(t), json.RawMessage(c.args)
		got := testing.AllocsPerRun(200, func() {
			if _, err := made.RunJSON(silent{}, args); err != nil {
				t.Fatal(err)
			}
		})
		if got > c.allocs {
			t.Errorf("%s costs %.0f allocations, more than %.0f", c.name, got, c.allocs)
		}
	}
}
