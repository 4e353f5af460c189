package exectool

import (
	"os/exec"
	"runtime"
	"syscall"
)

// runAttached runs cmd, which is killed when this process dies, however it dies. Linux does so when the thread ends that
// started it, so that thread is this goroutine's alone until the command has ended.
func runAttached(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return cmd.Run()
}
