package chaos

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds each wait. It is far above what anything takes, so that only what hangs fails by it.
const patience = 2 * time.Minute

// process is a running toolfabric.
type process struct {
	t              *testing.T
	args           string
	cmd            *exec.Cmd
	stdout, stderr output
	ended          chan struct{}
}

// start runs the binary with a fault armed, or none. It is killed at the end of the test.
func start(t *testing.T, dir string, env []string, fault string, args ...string) *process {
	t.Helper()
	p := &process{t: t, args: strings.Join(args, " "), cmd: exec.Command(binary, args...), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, &p.stdout, &p.stderr
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "TF_FAULT=" + fault}, env...)
	p.cmd.WaitDelay = time.Second // what a tool's process holds open is no reason to wait
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		_ = p.cmd.Wait()
		close(p.ended)
	})
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		done.Wait()
		if t.Failed() {
			t.Logf("%s, fault %q\n%s%s", p.args, fault, p.stdout.String(), p.stderr.String())
		}
	})
	return p
}

// signal sends s.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Errorf("toolfabric %s: %v", p.args, err)
	}
}

// exit waits for the end and returns the exit code; -1 is a signal.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("toolfabric %s does not end", p.args)
		return -1
	}
}

// lives reports whether it has not ended yet.
func (p *process) lives() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// says waits until stderr matches.
func (p *process) says(pattern string) {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		found, more := p.stderr.find(regexp.MustCompile(pattern))
		if found {
			return
		}
		select {
		case <-more:
		case <-p.ended:
			if found, _ := p.stderr.find(regexp.MustCompile(pattern)); !found {
				p.t.Fatalf("toolfabric %s ended without saying %q", p.args, pattern)
			}
			return
		case <-deadline:
			p.t.Fatalf("toolfabric %s does not say %q", p.args, pattern)
		}
	}
}

// hit receives the instant at which the process said that it is at a point.
func (p *process) hit(point string) <-chan time.Time {
	at, re := make(chan time.Time, 1), regexp.MustCompile("fault "+point+" hit\n")
	var done sync.WaitGroup
	done.Go(func() {
		for {
			found, more := p.stderr.find(re)
			if found {
				at <- time.Now()
				return
			}
			select {
			case <-more:
			case <-p.ended:
				if found, _ := p.stderr.find(re); found {
					at <- time.Now()
				}
				return
			}
		}
	})
	p.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		done.Wait()
	})
	return at
}

// output is what a process has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed by the next write
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
	return o.text.Write(p)
}

func (o *output) find(re *regexp.Regexp) (found bool, more <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more == nil {
		o.more = make(chan struct{})
	}
	return re.Match(o.text.Bytes()), o.more
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
