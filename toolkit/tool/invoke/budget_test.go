//go:build !race

package invoke_test

import (
	"encoding/json"
	"testing"
)

func TestChecksOfArgumentsStayWithinTheirAllocationBudgets(t *testing.T) {
	for _, c := range validations {
		s, args := compiled(t, c.schema), json.RawMessage(c.args)
		got := testing.AllocsPerRun(200, func() {
			if _, err := s.Normalize(args); err != nil {
				t.Fatal(err)
			}
		})
		if got > c.allocs {
			t.Errorf("%s costs %.0f allocations, more than %.0f", c.name, got, c.allocs)
		}
	}
}
