package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
	"github.com/toolfabric/toolfabric/tests/sim"
	"github.com/toolfabric/toolfabric/toolkit/model/fakellm"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
)

const agentFile = `name: helper
model: gemini-2.5-flash
instruction: Answer with the tools you have.
tools:
  - name: note
  - name: pay
  - name: bulk
  - name: wire
  - name: report
`

// script has one turn of two calls, one of a tool that may be repeated and one of a tool that may not, and an answer in
// two pieces; turns that wait for a person's word, and for a result from outside.
const script = `rules:
  - user: '^read (?P<what>.+)'
    calls: [{tool: bulk, args: {text: '{{ .what }}'}}]
  - user: '^read'
    after: [bulk]
    text: 'read it'
    chunks: 2
  - user: '^ask (?P<what>.+)'
    calls: [{tool: wire, args: {text: '{{ .what }}'}}]
  - user: '^ask (?P<what>.+)'
    after: [wire]
    text: 'asked {{ .what }}'
  - user: '^order (?P<what>.+)'
    calls: [{tool: report, args: {text: '{{ .what }}'}}]
  - user: '^order (?P<what>.+)'
    after: [report]
    text: 'ordered {{ .what }}'
  - user: '^do (?P<what>.+)'
    calls:
      - {tool: note, args: {text: '{{ .what }}'}}
      - {tool: pay, args: {text: '{{ .what }}'}}
  - user: '^do (?P<what>.+)'
    after: [note, pay]
    text: 'did {{ .what }}'
    chunks: 2
`

const workerFile = `tools:
  - {name: note, description: Takes a note, command: ["{{self}}", note], env: {CHAOS_LEDGER: "{{ledger}}"}, schema: {{schema}}, stdin: json, effect: idempotent}
  - {name: pay, description: Pays, command: ["{{self}}", pay], env: {CHAOS_LEDGER: "{{ledger}}"}, schema: {{schema}}, stdin: json, effect: at_most_once, queue_timeout: {{queue}}, timeout: {{timeout}}}
  - {name: bulk, description: Reads a lot, command: ["{{self}}", bulk], env: {CHAOS_LEDGER: "{{ledger}}"}, schema: {{schema}}, stdin: json, effect: read}
  - {name: wire, description: Pays when a person agrees, command: ["{{self}}", wire], env: {CHAOS_LEDGER: "{{ledger}}"}, schema: {{schema}}, stdin: json, confirm: true}
  - {name: report, description: Orders a report, command: ["{{self}}", report], env: {CHAOS_LEDGER: "{{ledger}}"}, schema: {{schema}}, stdin: json, effect: idempotent, long_running: true}
`

// longTimes are those of a tool that outlives what is done to the broker and to others.
const longTimes = time.Minute

const textSchema = `{type: object, properties: {text: {type: string}}, required: [text]}`

// place is a namespace with processes of its own and a ledger.
type place struct {
	t      *testing.T
	dir    string
	env    []string
	url    string // where its processes connect
	conn   *natswire.Conn
	client *client.Client
	sent   []sent

	residue bool // the broker may hold what was acked

	spoken map[string]bool // questions and handles that voices have answered
	mu     sync.Mutex
	told   []sim.Receipted
}

// sent is an accepted input.
type sent struct {
	client.Receipt
	text string
}

// serveModel runs the model of all cases.
func serveModel(t *testing.T) (url string) {
	t.Helper()
	s, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	h, err := fakellm.New(fakellm.Config{Script: s})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func newPlace(t *testing.T, s *natstest.Server, model, namespace string, timeout time.Duration) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir(), url: s.URL(), spoken: map[string]bool{}}
	p.speakThrough(s.Connect(t, namespace))
	p.env = []string{"GOOGLE_GEMINI_BASE_URL=" + model, "GOOGLE_API_KEY=any", "TOOLFABRIC_NAMESPACE=" + namespace}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.write("agents/helper.yaml", agentFile)
	p.write("worker.yaml", strings.NewReplacer("{{self}}", self, "{{ledger}}", p.ledger(), "{{schema}}", textSchema, "{{queue}}", longTimes.String(), "{{timeout}}", timeout.String()).Replace(workerFile))
	return p
}

// speakThrough makes conn the connection of the place's client.
func (p *place) speakThrough(conn *natswire.Conn) {
	p.t.Helper()
	c, err := client.New(client.Config{Bus: conn, Names: conn.Names(), Client: "tester"})
	if err != nil {
		p.t.Fatal(err)
	}
	p.conn, p.client = conn, c
	p.listen()
}

func (p *place) ledger() string { return filepath.Join(p.dir, "ledger") }

func (p *place) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// coordinate starts a coordinator. What it reads of the registry before it says that it is up, it knows.
func (p *place) coordinate(fault string) *process {
	p.t.Helper()
	return start(p.t, p.dir, p.env, fault, "coordinator", "--agents", "agents", "--nats", p.url)
}

const up = "coordinator is up"

// work starts a worker.
func (p *place) work(fault string) *process {
	p.t.Helper()
	return start(p.t, p.dir, p.env, fault, "worker", "--config", "worker.yaml", "--nats", p.url)
}

var toolNames = []string{"note", "pay", "bulk", "wire", "report"}

// serving waits until workers serve all tools.
func serving(workers ...*process) {
	for _, w := range workers {
		for _, tool := range toolNames {
			w.says(`"msg":"serving","tool":"` + tool + `"`)
		}
	}
}

// send says something in a session of its own.
func (p *place) send(text string) {
	p.t.Helper()
	r, err := p.client.Send(p.t.Context(), "helper", "", client.Text(text))
	if err != nil {
		p.t.Fatalf("send: %v", err)
	}
	p.sent = append(p.sent, sent{r, text})
}

// answered waits for the end of a run.
func (p *place) answered(s sent) client.Outcome {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	out, err := p.client.WaitEnd(ctx, s.App, s.Session, s.InputID)
	if err != nil {
		p.t.Fatalf("%q in session %s is not answered: %v", s.text, s.Session, err)
	}
	return out
}

// effects reads the ledger.
func (p *place) effects() []effect {
	p.t.Helper()
	text, err := os.ReadFile(p.ledger())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.t.Fatal(err)
	}
	var all []effect
	for line := range bytes.Lines(text) {
		var e effect
		if err := json.Unmarshal(line, &e); err != nil {
			p.t.Fatalf("the ledger has %q: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

// drain has processes end well.
func drain(processes ...*process) {
	for _, c := range processes {
		c.signal(syscall.SIGTERM)
	}
	for _, c := range processes {
		if code := c.exit(); code != 0 {
			c.t.Errorf("toolfabric %s exits with %d", c.args, code)
		}
	}
}

// want is the answer to what was said.
func want(text string) string {
	switch verb, what, _ := strings.Cut(text, " "); verb {
	case "do":
		return "did " + what
	case "ask":
		return "asked " + what
	case "order":
		return "ordered " + what
	}
	return "read it"
}

// value is how a tool's answer begins.
func value(tool, text string) string { return fmt.Sprintf(`{"result":"%s %s`, tool, text) }

// answers is how the calls of a log ended, by call id.
func answers(log []client.Entry) (calls map[string]protocol.Call, ended map[string]protocol.Answer) {
	calls, ended = map[string]protocol.Call{}, map[string]protocol.Answer{}
	for _, e := range log {
		if e.Event.Turn != nil {
			for _, c := range e.Event.Turn.Calls {
				calls[c.ID] = c
			}
		}
		for _, a := range e.Event.Answers {
			ended[a.Call] = a
		}
	}
	return calls, ended
}

// pause lets a part of the case take its time, as a machine that stands still does.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	if err := natswire.Sleep(t.Context(), natswire.SystemClock{}, d); err != nil {
		t.Fatal(err)
	}
}
