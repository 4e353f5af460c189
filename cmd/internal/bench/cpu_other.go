//go:build !unix

package bench

import "time"

// ownCPU is not known here: the report shows 0 for CPU per call.
func ownCPU() time.Duration { return 0 }
