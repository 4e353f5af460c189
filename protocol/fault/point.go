//go:build !faults

package fault

// Point is where a test may end, stop or delay the process. It does nothing in this build.
func Point(string) {}
