package boot

import (
	"os"
	"runtime/debug"
)

// collectAt is how far the heap grows over what is alive before it is collected, in per cent. What is alive is small here and
// what a call allocates is not: at Go's default of 100 a third of the CPU goes into collecting.
const collectAt = 400

// Memory sets how often the process collects garbage, unless GOGC says so.
func Memory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
}
