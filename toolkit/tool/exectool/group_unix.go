//go:build unix

package exectool

import (
	"os/exec"
	"syscall"
)

// ownGroup starts cmd in a process group of its own and kills the whole of it when its context ends.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endGroup kills what cmd left running. The group keeps its number while one of its processes lives; where none does the
// kill finds nothing, since a number is not given out again at once.
func endGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
