//go:build unix

package procgroup

import (
	"os/exec"
	"syscall"
)

// Own has cmd start in a process group of its own.
func Own(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Terminate asks cmd, which was started, and what it started to end.
func Terminate(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// Kill kills cmd, which was started, and what it started; after its end what it left running. The group keeps its number
// while one of its processes lives; where none does the kill finds nothing, since a number is not given out again at once.
func Kill(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
