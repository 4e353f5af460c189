//go:build !linux

package mcptoolset

import "os/exec"

// attach does nothing: where the system does not see to it, the command outlives a process that is killed.
func attach(*exec.Cmd) (release func()) { return func() {} }
