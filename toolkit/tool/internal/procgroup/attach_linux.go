package procgroup

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Attach has cmd die with this process, however that dies. It comes after Own and before the start. Linux sees to it when the
// thread ends that started cmd, so that thread is the calling goroutine's alone until release.
func Attach(cmd *exec.Cmd) (release func()) {
	runtime.LockOSThread()
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return runtime.UnlockOSThread
}
