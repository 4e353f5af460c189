package e2e

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// tour is what demo --output json promises.
type tour struct {
	OK       bool
	Answer   string
	Parallel struct{ Calls, Workers int }
	Killed   struct {
		Name  string
		PID   int
		Calls []string
	}
	Calls []struct {
		ID, Tool, Outcome, Worker string
		Turn, Attempt             int
	}
	Effects []struct{ Key, Worker string }
	Waited  struct {
		Call, Subject, Approver, Published, Print, Second, Printed string
		Sheets                                                     int
	}
	Processes []struct {
		Name string
		PID  int
	}
	Checks []struct {
		Claim string
		OK    bool
	}
	MS int64
}

func TestDemoAnswersRightThoughAWorkerDies(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for name, text := range map[string]string{
		`-odd, "name" {path}.txt`: "one two three\n", "b.txt": "four", "c.md": "# five\n\nsix seven", "binary": "\x00\xff", ".hidden": "secret", "z.txt": "not asked",
	} {
		p.write(name, text)
	}
	got := decode[tour](t, p.ok("demo", "--output", "json"))
	for _, line := range []string{
		`-odd, "name" {path}.txt: 3 words, 14 bytes, SHA-256 `,
		"b.txt: 1 words, 4 bytes, SHA-256 ",
		"Together: 8 words,",
	} {
		if line = strings.SplitN(line, "SHA-256 ", 2)[0]; !strings.Contains(got.Answer, line) {
			t.Errorf("%q is not in the answer\n%s", line, got.Answer)
		}
	}
	if !got.OK || got.Parallel.Calls != 3 || got.Parallel.Workers != 2 || len(got.Killed.Calls) == 0 || len(got.Effects) != 5 || len(got.Calls) != 11 || len(got.Processes) != 5 {
		t.Errorf("%+v", got)
	}
	for _, c := range got.Calls {
		lost := false
		for _, id := range got.Killed.Calls {
			lost = lost || id == c.ID
		}
		if c.Outcome != "completed" || c.Worker == got.Killed.Name || lost && c.Attempt < 2 {
			t.Errorf("killed %+v, call %+v", got.Killed, c)
		}
	}
	w := got.Waited
	if !strings.HasPrefix(w.Subject, "tf.approval.archivist.") || w.Approver != "you" || w.Second != "already_answered" ||
		!strings.HasPrefix(w.Published, "It is published under ") || !strings.Contains(w.Printed, "ready on") {
		t.Errorf("%+v", w)
	}
	for _, child := range got.Processes {
		if err := syscall.Kill(child.PID, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s is still there: %v", child.Name, err)
		}
	}
	if left, err := os.ReadDir(p.dir); err != nil || len(left) != 6 {
		t.Errorf("the tour left something behind: %v, %v", left, err)
	}
}

func TestDemoReadsAsAStoryInAnEmptyFolder(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c := p.run("demo", "--keep")
	if code := c.exit(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	for _, want := range []string{
		`(?m)^you:$`, `(?m)^archivist:$`, `> measure \{"path":"haiku.txt"\}`, `(?m)✗ worker-\d \(pid \d+\) is killed with SIGKILL`,
		`< measure .* worker-\d, attempt 2`, `< word_count "13 haiku.txt" worker-\d`, `(?m)\? publish waits for a person's word`, `(?m)✗ coordinator \(pid \d+\) is killed with SIGKILL while the session waits`,
		`nats pub tf\.approval\.archivist\.\w+\.\w+\.you '\{"confirmed":true\}'`, `(?m)toolfabric calls complete \w+ --result '\{"sheets":\d+\}'`,
		`(?m)^The print is ready on \d+ sheets\.$`, `(?m)^├─ execute_tool measure \(dispatch\)`, `(?m)^│  └─ execute_tool measure  .* worker-\d `,
	} {
		c.says(&c.stdout, want)
	}
	data := c.says(&c.stderr, `toolfabric up --data (\S+)`)[1]
	session := c.says(&c.stderr, `sessions show (\S+)`)[1]
	up := p.start("up", "--data", data, "--listen", "127.0.0.1:0")
	up.says(&up.stderr, "toolfabric is up")
	if show := p.ok("--data", data, "sessions", "show", session); !strings.Contains(show, "archivist: a note.md: 8 words, 42 bytes") {
		t.Error(show)
	}
}

func TestAnInterruptedDemoLeavesNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c := p.start("demo")
	pid := c.says(&c.stderr, `started worker-2\s+pid (\d+)`)[1]
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := c.exit(); code != 130 {
		t.Errorf("exit %d", code)
	}
	if _, err := os.Stat("/proc/self"); err == nil {
		if _, err := os.Stat("/proc/" + pid); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("worker-2 is still there: %v", err)
		}
	}
	if left, err := os.ReadDir(p.dir); err != nil || len(left) != 0 {
		t.Errorf("the tour left something behind: %v, %v", left, err)
	}
}
