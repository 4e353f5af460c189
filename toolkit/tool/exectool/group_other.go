//go:build !unix

package exectool

import "os/exec"

// ownGroup leaves cmd as it is: only the command itself is killed here, not what it started.
func ownGroup(*exec.Cmd) {}

func endGroup(*exec.Cmd) {}
