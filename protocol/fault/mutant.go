//go:build !mutants

package fault

// Mutant reports whether the code is to break the guarantee of that name. It is false in this build.
func Mutant(string) bool { return false }
