//go:build !mutants && !faults

package fault_test

import (
	"testing"

	"github.com/toolfabric/toolfabric/protocol/fault"
)

func TestAPlainBuildBreaksNothing(t *testing.T) {
	t.Setenv("TF_MUTANT", "claim-none")
	if fault.Mutant("claim-none") {
		t.Error("a plain build has mutants")
	}
	fault.Point("K1") // returns
}
