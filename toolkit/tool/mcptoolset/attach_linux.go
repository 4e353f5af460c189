package mcptoolset

import (
	"os/exec"
	"runtime"
	"syscall"
)

// attach makes cmd die with this process, however that dies. Linux does so when the thread ends that started it, so that
// thread is the calling goroutine's alone until release.
func attach(cmd *exec.Cmd) (release func()) {
	runtime.LockOSThread()
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return runtime.UnlockOSThread
}
