package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds each wait. It is far above what anything takes, so that only what hangs fails by it.
const patience = 2 * time.Minute

// place is a machine of its own for one test: home, data and working folder.
type place struct {
	t   *testing.T
	dir string
	env []string
}

func newPlace(t *testing.T, env ...string) *place {
	t.Helper()
	dir := t.TempDir()
	return &place{t: t, dir: dir, env: append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir,
		"XDG_DATA_HOME=" + filepath.Join(dir, "data"), "XDG_CONFIG_HOME=" + filepath.Join(dir, "config"), "GOOGLE_API_KEY=any",
	}, env...)}
}

// write makes a file and returns its path.
func (p *place) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// process is a running command.
type process struct {
	t              *testing.T
	args           []string
	cmd            *exec.Cmd
	stdout, stderr output
	ended          chan struct{}
}

// start runs the binary. It is killed at the end of the test.
func (p *place) start(args ...string) *process {
	p.t.Helper()
	return p.startProgram(binary, args...)
}

func (p *place) startProgram(program string, args ...string) *process {
	p.t.Helper()
	c := &process{t: p.t, args: args, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	c.cmd.Dir, c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = p.dir, p.env, &c.stdout, &c.stderr
	c.cmd.WaitDelay = time.Second // what a tool's process holds open is no reason to wait
	if err := c.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.ended)
	}()
	p.t.Cleanup(func() {
		c.kill()
		if p.t.Failed() {
			p.t.Logf("%s %s\n%s%s", filepath.Base(program), strings.Join(args, " "), c.stdout.String(), c.stderr.String())
		}
	})
	return c
}

// run runs a command to its end.
func (p *place) run(args ...string) *process {
	p.t.Helper()
	c := p.start(args...)
	c.exit()
	return c
}

// ok runs a command that must succeed and returns its stdout.
func (p *place) ok(args ...string) string {
	p.t.Helper()
	c := p.run(args...)
	if code := c.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Fatalf("toolfabric %s: exit %d\n%s%s", strings.Join(args, " "), code, c.stdout.String(), c.stderr.String())
	}
	return c.stdout.String()
}

// exit waits for the end and returns the exit code.
func (c *process) exit() int {
	c.t.Helper()
	select {
	case <-c.ended:
		return c.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		c.t.Fatalf("toolfabric %s does not end\n%s%s", strings.Join(c.args, " "), c.stdout.String(), c.stderr.String())
		return -1
	}
}

// kill is kill -9.
func (c *process) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
}

// terminate is kill.
func (c *process) terminate() {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
}

// says waits until a stream of the process matches and returns the match with its groups.
func (c *process) says(o *output, pattern string) []string {
	c.t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(patience)
	for {
		text, more := o.look()
		if m := re.FindStringSubmatch(text); m != nil {
			return m
		}
		select {
		case <-more:
		case <-c.ended:
			if m := re.FindStringSubmatch(o.String()); m != nil {
				return m
			}
			c.t.Fatalf("toolfabric %s ended without saying %q:\n%s%s", strings.Join(c.args, " "), pattern, c.stdout.String(), c.stderr.String())
		case <-deadline:
			c.t.Fatalf("toolfabric %s does not say %q:\n%s%s", strings.Join(c.args, " "), pattern, c.stdout.String(), c.stderr.String())
		}
	}
}

// output is what a process has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed by the next write
}

var _ io.Writer = (*output)(nil)

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
	return o.text.Write(p)
}

func (o *output) look() (text string, more <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more == nil {
		o.more = make(chan struct{})
	}
	return o.text.String(), o.more
}

func (o *output) String() string {
	text, _ := o.look()
	return text
}

// await looks again and again until it is so: for what is in files and on the bus, which tell nobody.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("it does not happen that %s", what)
		}
	}
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}
