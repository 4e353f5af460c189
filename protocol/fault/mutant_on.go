//go:build mutants

package fault

import (
	"os"
	"sync/atomic"
)

var inUse atomic.Value // string

func init() { Use(os.Getenv("TF_MUTANT")) }

// Use switches one mutant on and all others off; empty is none. It panics for a name that is not in Mutants. It may be
// called while the code runs.
func Use(name string) {
	if _, ok := Mutants[name]; !ok && name != "" {
		panic("fault: there is no mutant " + name)
	}
	inUse.Store(name)
}

// Mutant reports whether the code is to break the guarantee of that name. It panics for one that is not in Mutants.
func Mutant(name string) bool {
	if _, ok := Mutants[name]; !ok {
		panic("fault: there is no mutant " + name)
	}
	return inUse.Load() == name
}
