package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/toolkit/model/fakellm"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
)

const textSchema = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`

// heldCount is wc -w that first says which worker process runs it, and then waits until the test lets it go.
const heldCount = `#!/bin/sh
echo $PPID >> "$1"
until [ -e "$2" ]; do sleep 0.05; done
exec wc -w
`

const agentFile = `name: helper
model: gemini-2.5-flash
instruction: Answer with the tools you have.
tools:
  - name: word_count
`

const countScript = `rules:
  - user: 'count (?P<what>.+)'
    calls:
      - tool: word_count
        each: {of: '{{ .what }}', split: ',\s*', as: part}
        args: {text: '{{ .part }}'}
  - user: 'count'
    after: [word_count]
    text: "{{ range .results.word_count }}{{ .args.text }}: {{ .value }} words. {{ end }}"
    chunks: 2
  - user: 'again'
    text: 'We have spoken {{ .turn }} times since.'
`

// up starts everything in one process and waits until it is up.
func (p *place) up(args ...string) *process {
	p.t.Helper()
	c := p.start(append([]string{"up", "--listen", "127.0.0.1:0"}, args...)...)
	c.says(&c.stderr, "toolfabric is up at (nats://[0-9.:]+)")
	return c
}

// serveCount starts a worker of word_count and waits until it serves.
func (p *place) serveCount(flags []string, command ...string) *process {
	p.t.Helper()
	args := append([]string{"worker", "exec", "--name", "word_count", "--description", "Counts the words of a text", "--schema", p.write("schema.json", textSchema)}, flags...)
	c := p.start(append(append(args, "--"), command...)...)
	c.says(&c.stderr, `"msg":"serving","tool":"word_count"`)
	return c
}

type pool struct{ workers, slots, pending, inFlight int }

func (p *place) pool() pool {
	c := p.run("pools", "--output", "json")
	if c.cmd.ProcessState.ExitCode() != 0 {
		return pool{}
	}
	list := decode[[]struct {
		Tool     string
		Slots    int
		Pending  int
		InFlight int `json:"in_flight"`
		Workers  []struct{ Draining bool }
	}](p.t, c.stdout.String())
	for _, one := range list {
		if one.Tool == "word_count" {
			got := pool{slots: one.Slots, pending: one.Pending, inFlight: one.InFlight}
			for _, w := range one.Workers {
				if !w.Draining {
					got.workers++
				}
			}
			return got
		}
	}
	return pool{}
}

// handler serves a script over the Gemini API.
func handler(t *testing.T, script string) http.Handler {
	t.Helper()
	s, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	h, err := fakellm.New(fakellm.Config{Script: s})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// gemini serves a script in this process and makes the place's commands use it.
func (p *place) gemini(script string) {
	p.t.Helper()
	server := httptest.NewServer(handler(p.t, script))
	p.t.Cleanup(server.Close)
	p.env = append(p.env, "GOOGLE_GEMINI_BASE_URL="+server.URL)
}

// held makes the command of a tool that waits. starts is the process ids of the workers that ran it so far.
func (p *place) held() (command []string, starts func() []int, release func()) {
	log, gate := filepath.Join(p.dir, "starts"), filepath.Join(p.dir, "gate")
	release = func() { p.write("gate", "") }
	p.t.Cleanup(release) // what a killed worker left behind ends too
	return []string{p.write("held.sh", heldCount), log, gate}, func() []int {
		text, _ := os.ReadFile(log)
		var pids []int
		for field := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				p.t.Fatal(err)
			}
			pids = append(pids, pid)
		}
		return pids
	}, release
}

func TestAToolOnTheBusInTwoMinutes(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.up()
	worker := p.serveCount(nil, "wc", "-w")
	c := p.run("call", "word_count", "--args", `{"text":"a\nb c"}`)
	if c.stdout.String() != "3\n" || c.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("exit %d, %q, %q", c.cmd.ProcessState.ExitCode(), c.stdout.String(), c.stderr.String())
	}
	for args, fault := range map[string]string{`{"text":3}`: "/text: must be string", `{}`: "/text: required"} {
		c := p.run("call", "word_count", "--args", args)
		if code := c.exit(); code != 5 || c.stdout.String() != "" || !strings.Contains(c.stderr.String(), fault) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", args, code, c.stdout.String(), c.stderr.String())
		}
	}
	if got := p.ok("tools"); !strings.Contains(got, "word_count  at_most_once  1 ") {
		t.Error(got)
	}
	await(t, "one idle worker serves it", func() bool { // it acks its call after the answer
		got := p.pool()
		return got.workers == 1 && got.slots > 0 && got.pending == 0 && got.inFlight == 0
	})
	worker.terminate()
	if code := worker.exit(); code != 0 {
		t.Errorf("the worker exits with %d", code)
	}
	if got := p.ok("tools"); !strings.Contains(got, "word_count  at_most_once  0 ") {
		t.Error(got)
	}
}

func TestPoolsShowWhatRunsAndWhatWaits(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.up()
	command, starts, release := p.held()
	p.serveCount([]string{"--slots", "1"}, command...)
	first := p.start("call", "word_count", "--args", `{"text":"a"}`)
	second := p.start("call", "word_count", "--args", `{"text":"b"}`)
	await(t, "one call runs and one waits", func() bool {
		got := p.pool()
		return len(starts()) == 1 && got.slots == 1 && got.inFlight == 1 && got.pending == 1
	})
	release()
	if first.exit() != 0 || second.exit() != 0 {
		t.Error("a call failed")
	}
}

func TestACallOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.up()
	command, starts, release := p.held()
	workers := map[int]*process{}
	for range 2 {
		w := p.serveCount([]string{"--effect", "idempotent"}, command...)
		workers[w.cmd.Process.Pid] = w
	}
	call := p.start("call", "word_count", "--args", `{"text":"a b"}`, "--output", "json")
	await(t, "a worker runs the call", func() bool { return len(starts()) == 1 })
	workers[starts()[0]].kill()
	await(t, "the other worker runs the call", func() bool { return len(starts()) == 2 })
	if pids := starts(); pids[0] == pids[1] {
		t.Errorf("both runs in process %d", pids[0])
	}
	release()
	if code := call.exit(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	got := decode[struct {
		Outcome string
		Attempt int
		Value   struct{ Result int }
	}](t, call.stdout.String())
	if got.Outcome != "completed" || got.Attempt < 2 || got.Value.Result != 2 {
		t.Errorf("%+v", got)
	}
}

func TestAnUnrepeatableCallOfADeadWorkerIsNotRunAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.up()
	command, starts, _ := p.held()
	doomed := p.serveCount([]string{"--timeout", "1s"}, command...)
	call := p.start("call", "word_count", "--args", `{"text":"a b"}`, "--output", "json")
	await(t, "the worker runs the call", func() bool { return len(starts()) == 1 })
	doomed.kill()
	p.serveCount([]string{"--timeout", "1s"}, command...)
	if code := call.exit(); code != 5 || !strings.Contains(call.stdout.String(), "outcome_unknown") {
		t.Errorf("exit %d, %s", code, call.stdout.String())
	}
	if got := starts(); len(got) != 1 {
		t.Errorf("it ran %d times", len(got))
	}
}

func TestATerminatedWorkerFinishesItsCall(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.up()
	command, starts, release := p.held()
	worker := p.serveCount(nil, command...)
	call := p.start("call", "word_count", "--args", `{"text":"a b"}`, "--output", "json")
	await(t, "the worker runs the call", func() bool { return len(starts()) == 1 })
	worker.terminate()
	await(t, "the worker takes no more calls", func() bool { return p.pool().workers == 0 })
	select {
	case <-worker.ended:
		t.Error("it ended with a call in hand")
	default:
	}
	release()
	if code := call.exit(); code != 0 || !strings.Contains(call.stdout.String(), `"attempt": 1`) {
		t.Errorf("exit %d, %s", code, call.stdout.String())
	}
	if code := worker.exit(); code != 0 {
		t.Errorf("the worker exits with %d", code)
	}
}

func TestCommandsThatCannotWorkSayWhy(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	type failing struct {
		code int
		says string
		args []string
	}
	running := map[*process]failing{} // all at once: some try for seconds
	for _, c := range []failing{
		{2, "unknown command", []string{"frobnicate"}},
		{2, "unknown flag", []string{"up", "--frobnicate"}},
		{2, "--agent", []string{"run", "hello"}},
		{2, "--config", []string{"worker"}},
		{2, "--name", []string{"worker", "exec", "--", "wc"}},
		{2, "JSON", []string{"call", "word_count", "--args", "[1]"}},
		{2, "--output", []string{"tools", "--output", "xml"}},
		{2, "nowhere.yaml", []string{"fake-llm", "--script", "nowhere.yaml"}},
		{2, "nowhere", []string{"up", "--agents", "nowhere"}},
		{4, "toolfabric up", []string{"tools", "--nats", "nats://127.0.0.1:1"}},
		{4, "127.0.0.1:1", []string{"worker", "exec", "--name", "now", "--description", "d", "--nats", "nats://127.0.0.1:1", "--", "date"}},
		{4, "127.0.0.1:1", []string{"coordinator", "--nats", "nats://127.0.0.1:1"}},
	} {
		running[p.start(c.args...)] = c
	}
	for got, c := range running {
		if code := got.exit(); code != c.code || got.stdout.String() != "" || !strings.Contains(got.stderr.String(), c.says) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", strings.Join(c.args, " "), code, got.stdout.String(), got.stderr.String())
		}
	}
}

func TestUpEndsCleanlyOnSIGTERM(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	up := p.up()
	up.terminate()
	if code := up.exit(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if c := p.run("tools"); c.exit() != 4 {
		t.Errorf("the server is still there: %s", c.stdout.String())
	}
}
