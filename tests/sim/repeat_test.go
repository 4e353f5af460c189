//go:build !race

package sim_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestOneSeedGivesOneHistoryOfTheFabric is not for the race detector, under which the Go scheduler shuffles its run queue on
// purpose: what is woken at one instant then runs in another order each time. make sim runs it.
func TestOneSeedGivesOneHistoryOfTheFabric(t *testing.T) {
	for i := range uint64(*repeat) {
		p := planOf(*firstOne+i, names(t))
		_, first := storm(t, p)
		runtime.GC()
		_, second := storm(t, p)
		if slices.Equal(first, second) {
			continue
		}
		for i := range min(len(first), len(second)) {
			if first[i] != second[i] {
				t.Fatalf("seed %d, line %d:\n%s\n%s", p.Seed, i, strings.Join(first[max(0, i-5):i+1], "\n"), second[i])
			}
		}
		t.Fatalf("seed %d: %d and %d lines", p.Seed, len(first), len(second))
	}
}
