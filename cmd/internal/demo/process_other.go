//go:build !linux

package demo

import "syscall"

// attached children are ordinary ones: Ctrl-C reaches them too.
func attached() *syscall.SysProcAttr { return nil }
