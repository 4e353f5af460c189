//go:build unix

package bench

import (
	"syscall"
	"time"
)

// ownCPU is the user and system time of this process and of the children it has waited for. Children that still run are
// not in it: a separate broker is asked for its own.
func ownCPU() time.Duration {
	var total time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return total
}
