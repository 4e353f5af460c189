package demo

import "syscall"

// attached children have a process group of their own, so that Ctrl-C reaches this process first, and die with
// the thread that starts them.
func attached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
