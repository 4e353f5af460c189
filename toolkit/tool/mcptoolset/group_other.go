//go:build !unix

package mcptoolset

import "os/exec"

// ownGroup leaves cmd as it is: only the command itself is killed here, not what it started.
func ownGroup(*exec.Cmd) {}

func askGroup(*exec.Cmd)     {}
func endGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
