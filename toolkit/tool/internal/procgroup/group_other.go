//go:build !unix

package procgroup

import "os/exec"

// Own leaves cmd as it is: only the program itself is killed here, not what it started.
func Own(*exec.Cmd) {}

func Terminate(*exec.Cmd) error { return nil }

func Kill(cmd *exec.Cmd) error { return cmd.Process.Kill() }
