package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Env is where peers live: a temporary directory, and the processes that were started in it.
type Env struct {
	Dir string
	Log io.Writer         // for people
	got map[string]string // programs that were fetched, by name
}

const startLimit = 60 * time.Second

// process is a server that was started here. It is stopped by its own id.
type process struct {
	cmd    *exec.Cmd
	output *tail
	exited chan struct{}
}

// start runs a server and waits until something accepts connections at address.
func (e *Env) start(ctx context.Context, address string, cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, output: &tail{}, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.output, p.output
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { defer close(p.exited); _ = cmd.Wait() }()
	deadline := time.After(startLimit)
	for {
		if conn, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			_ = conn.Close()
			return p, nil
		}
		select {
		case <-p.exited:
			return nil, fmt.Errorf("%s ended: %s", filepath.Base(cmd.Path), p.output)
		case <-deadline:
			p.stop()
			return nil, fmt.Errorf("%s does not listen on %s after %s: %s", filepath.Base(cmd.Path), address, startLimit, p.output)
		case <-ctx.Done():
			p.stop()
			return nil, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop asks the process to end, and kills it when it does not.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-p.exited:
	case <-time.After(15 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// tail keeps the end of what a process says.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-2000):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}

// dir makes a folder of its own below the environment's.
func (e *Env) dir(name string) (string, error) {
	dir, err := os.MkdirTemp(e.Dir, name+"-")
	if err == nil {
		err = os.Chmod(dir, 0o755) //nolint:gosec // a server that refuses to run as root reads it as somebody else
	}
	return dir, err
}

// freePort is a loopback port that nobody uses now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// asNobody has cmd run as another user when this one is root, and gives it dir: PostgreSQL refuses to run as root.
func asNobody(cmd *exec.Cmd, dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return err
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}} //nolint:gosec // ids of the system
	return os.Chown(dir, uid, gid)
}
