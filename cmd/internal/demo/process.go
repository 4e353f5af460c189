package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
)

// Process is a process of the tour.
type Process struct {
	Name string   `json:"name"`
	PID  int      `json:"pid"`
	Args []string `json:"args"` // of this binary
}

// process is a child.
type process struct {
	Process
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has
	log   string        // file of its stderr
}

// fleet is the children of a tour. Its methods belong to one goroutine.
type fleet struct {
	binary string
	dir    string           // working directory of the children
	logs   string           // folder of their logs
	env    []string         // of the children
	failed func(error)      // told of a child that ended though nobody asked it to
	all    []*process       // in the order of their start
	mu     sync.Mutex       // guards asked
	asked  map[int]struct{} // processes that were asked to end
}

// start runs this binary with args. What the child prints goes to stdout, which may be nil.
func (f *fleet) start(name string, stdout *os.File, args ...string) (*process, error) {
	p := &process{
		Process: Process{Name: name, Args: args},
		cmd:     exec.Command(f.binary, args...),
		ended:   make(chan struct{}),
		log:     filepath.Join(f.logs, name+".log"),
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr, p.cmd.SysProcAttr = f.dir, f.env, log, attached()
	if stdout != nil {
		p.cmd.Stdout = stdout
	}
	started := make(chan error)
	go func() {
		// A child is attached to the thread that started it: the thread is this goroutine's alone until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.ended)
		err := p.cmd.Start()
		if err == nil {
			p.PID = p.cmd.Process.Pid
		}
		if started <- err; err != nil {
			return
		}
		err = p.cmd.Wait()
		f.mu.Lock()
		_, asked := f.asked[p.PID]
		f.mu.Unlock()
		if !asked {
			f.failed(protocol.Errorf(protocol.CodeInternal, "%s ended by itself (%v); its last words: %s", name, ending(err), p.lastWords()))
		}
	}()
	if err := <-started; err != nil {
		return nil, protocol.Wrap(err, protocol.CodeInternal, "%s cannot be started", name)
	}
	f.all = append(f.all, p)
	return p, nil
}

func ending(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// lastWords is the end of the child's log, on one line.
func (p *process) lastWords() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	text = bytes.TrimSpace(text)
	return strings.ReplaceAll(string(text[max(0, len(text)-500):]), "\n", "; ")
}

// kill ends a child with SIGKILL and waits until it is gone.
func (f *fleet) kill(p *process) error {
	f.ask(p)
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	return nil
}

// stop ends the children: with SIGTERM, and after 3 s with SIGKILL.
func (f *fleet) stop() {
	for _, p := range f.all {
		f.ask(p)
		if p.cmd.Process.Signal(syscall.SIGTERM) != nil {
			_ = p.cmd.Process.Kill() // gone, or a system without signals
		}
	}
	patience := time.After(3 * time.Second)
	for _, p := range f.all {
		select {
		case <-p.ended:
		case <-patience:
			for _, p := range f.all {
				_ = p.cmd.Process.Kill()
			}
			<-p.ended
		}
	}
}

func (f *fleet) ask(p *process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[p.PID] = struct{}{}
}

// environment is ours without what would lead a child elsewhere than to this tour.
func environment(settings, url string) []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "TOOLFABRIC_") && !strings.HasPrefix(kv, "GOOGLE_") && !strings.HasPrefix(kv, "GEMINI_") {
			env = append(env, kv)
		}
	}
	return append(env, "TOOLFABRIC_CONFIG="+settings, "GOOGLE_API_KEY=any", "GOOGLE_GEMINI_BASE_URL="+url)
}

// firstLine reads what a child says when it is ready.
func firstLine(ctx context.Context, r *os.File) (string, error) {
	stop := context.AfterFunc(ctx, func() { _ = r.Close() })
	defer stop()
	var line []byte
	one := make([]byte, 1)
	for {
		_, err := io.ReadFull(r, one)
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case err != nil:
			return "", err
		case one[0] == '\n':
			return string(line), nil
		}
		line = append(line, one[0])
	}
}
