package sim_test

import (
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

// One processor: goroutines that wake at the same instant then run in one order, and a seed gives one history.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	goleak.VerifyTestMain(m)
}
