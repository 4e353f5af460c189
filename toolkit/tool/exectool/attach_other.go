//go:build !linux

package exectool

import "os/exec"

// runAttached runs cmd. Where the system does not see to it, the command outlives a process that is killed.
func runAttached(cmd *exec.Cmd) error { return cmd.Run() }
