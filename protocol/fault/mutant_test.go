//go:build mutants

package fault_test

import (
	"testing"

	"github.com/toolfabric/toolfabric/protocol/fault"
)

func TestOneMutantIsInUse(t *testing.T) {
	t.Cleanup(func() { fault.Use("") })
	fault.Use("claim-none")
	if !fault.Mutant("claim-none") || fault.Mutant("claim-of-another") {
		t.Error("Use switches on the mutant it names, and no other")
	}
	fault.Use("")
	if fault.Mutant("claim-none") {
		t.Error("Use of none switches all off")
	}
	for _, misuse := range []func(){func() { fault.Use("clam-none") }, func() { fault.Mutant("clam-none") }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a name that is not in the table is taken")
				}
			}()
			misuse()
		}()
	}
}
