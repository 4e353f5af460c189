//go:build !race

package invoke

import (
	"encoding/json"
	"testing"
)

func TestTheBudgetOfPlainArgumentsIsNoAllocation(t *testing.T) {
	s := compiled(t, formSchema)
	args := json.RawMessage(`{"text":"to be or not to be","n":1,"list":[{"k":"x"}]}`)
	if got := testing.AllocsPerRun(100, func() { _, _ = s.Normalize(args) }); got > 0 {
		t.Errorf("%.0f allocations", got)
	}
}
