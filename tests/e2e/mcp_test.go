package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// mcpServer is the program of one of the servers that make mcp-servers installs. Without them the test is left out, unless
// TOOLFABRIC_MCP_SERVERS is "required".
func mcpServer(t *testing.T, name string) []string {
	t.Helper()
	root, err := filepath.Abs("../../.tools/mcp")
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(filepath.Join(root, "installed"))
	if err == nil {
		_, err = exec.LookPath("node")
	}
	if err != nil {
		say := t.Skipf
		if os.Getenv("TOOLFABRIC_MCP_SERVERS") == "required" {
			say = t.Fatalf
		}
		say("REAL MCP SERVERS ARE NOT TESTED: %v; install them with: make mcp-servers", err)
	}
	return []string{"node", filepath.Join(root, "node_modules/@modelcontextprotocol/server-"+name+"/dist/index.js")}
}

// serveMCP starts a worker of a server's tools and waits until it serves the last of them.
func (p *place) serveMCP(prefix, last string, flags, server []string) *process {
	p.t.Helper()
	args := append([]string{"worker", "mcp", "--prefix", prefix}, flags...)
	c := p.start(append(append(args, "--"), server...)...)
	c.says(&c.stderr, `"msg":"serving","tool":"`+prefix+`_`+last+`"`)
	return c
}

// tools is the names of all tools that are there now.
func (p *place) tools() []string {
	p.t.Helper()
	var names []string
	for _, one := range decode[[]struct{ Name string }](p.t, p.ok("tools", "--output", "json")) {
		names = append(names, one.Name)
	}
	return names
}

// everything is what each tool of server-everything is called with, and what it answers.
var everything = []struct{ tool, args, want string }{
	{"echo", `{"message":"hi"}`, `^\{"output":"Echo: hi"\}\n$`},
	{"get-annotated-message", `{"messageType":"error","includeImage":true}`, `"type":"image","mime_type":"image/png","size":\d+,.*"ref":\{"name":"sha256-.*"text":"Error: Operation failed"`},
	{"get-env", `{}`, `PATH`},
	{"get-resource-links", `{"count":2}`, `"type":"link","uri":"demo://.*"type":"link","uri":"demo://`},
	{"get-resource-reference", `{"resourceType":"Text","resourceId":1}`, `"type":"resource","uri":"demo://.*"text":"Resource 1`},
	{"get-structured-content", `{"location":"New York"}`, `^\{"output":\{"temperature":33,"conditions":"Cloudy","humidity":82\}\}\n$`},
	{"get-sum", `{"a":2,"b":3}`, `The sum of 2 and 3 is 5`},
	{"get-tiny-image", `{}`, `"type":"image","mime_type":"image/png","size":4033`},
	{"gzip-file-as-resource", `{"name":"x.gz","data":"data:text/plain,hello"}`, `"type":"link","uri":"demo://.*x\.gz`},
	{"toggle-simulated-logging", `{}`, `Started`},
	{"toggle-subscriber-updates", `{}`, `Started`},
	{"trigger-long-running-operation", `{"duration":1,"steps":2}`, `Long running operation completed`},
}

func TestEveryToolOfServerEverything(t *testing.T) {
	t.Parallel()
	server := mcpServer(t, "everything")
	p := newPlace(t, "SECRET_OF_THE_WORKER=1")
	up := p.up()
	url := up.says(&up.stderr, "toolfabric is up at (nats://[0-9.:]+)")[1]
	p.serveMCP("ev", "trigger-url-elicitation", nil, server)
	more := []string{"simulate-research-query", "trigger-elicitation-request", "trigger-url-elicitation"} // looked at below and in the next test
	await(t, "all tools are listed", func() bool { return len(p.tools()) == len(everything)+len(more)+1 })
	listed := " " + strings.Join(p.tools(), " ") + " "
	for _, name := range more {
		if !strings.Contains(listed, " ev_"+name+" ") {
			t.Errorf("%s is not listed: %s", name, listed)
		}
	}
	w := p.watch(url)
	var progress atomic.Int64
	stop, err := w.conn.Subscribe(w.conn.Names().ProgressSubject("ev_trigger-long-running-operation", "*", "*"), func(m natswire.Msg) {
		var word protocol.Progress
		if json.Unmarshal(m.Data, &word) == nil && word.Percent > 0 {
			progress.Add(1)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := w.conn.Durables(t.Context(), w.conn.Names().Input()); err != nil { // the server has read the subscription then
		t.Fatal(err)
	}
	for _, c := range everything {
		out := p.ok("call", "ev_"+c.tool, "--args", c.args)
		if !regexp.MustCompile(c.want).MatchString(out) {
			t.Errorf("%s %s: got %s, want %s", c.tool, c.args, out, c.want)
		}
		if strings.Contains(out, "SECRET_OF_THE_WORKER") {
			t.Errorf("%s: the server sees the worker's environment", c.tool)
		}
	}
	await(t, "progress is seen", func() bool { return progress.Load() > 0 })
	c := p.run("call", "ev_simulate-research-query", "--args", `{"topic":"tools"}`)
	if c.exit() != 5 || !strings.Contains(c.stderr.String(), "requires task augmentation") {
		t.Errorf("a tool that demands tasks: exit %d, %s", c.exit(), c.stderr.String())
	}
}

func TestAnMCPServersQuestionIsAnsweredByAnApproval(t *testing.T) {
	t.Parallel()
	server := mcpServer(t, "everything")
	p := newPlace(t)
	p.up()
	p.serveMCP("ev", "trigger-elicitation-request", nil, server)
	question := func() string {
		var call string
		await(t, "a person is asked", func() bool {
			list := decode[struct{ Parked []struct{ Call, Tool string } }](t, p.ok("approvals", "ls", "--output", "json"))
			if len(list.Parked) == 1 && list.Parked[0].Tool == "ev_elicit" {
				call = list.Parked[0].Call
			}
			return call != ""
		})
		return call
	}
	c := p.start("call", "ev_trigger-elicitation-request")
	call := question()
	c.says(&c.stderr, `toolfabric approvals show `+call)
	p.ok("approvals", "approve", call, "--as", "ann", "--payload", `{"name":"Ann","check":true,"integer":7}`)
	if c.exit() != 0 || !strings.Contains(c.stdout.String(), "Name: Ann") || !strings.Contains(c.stdout.String(), "Favorite Integer: 7") {
		t.Errorf("exit %d, %s", c.exit(), c.stdout.String())
	}
	c = p.start("call", "ev_trigger-elicitation-request")
	p.ok("approvals", "deny", question(), "--as", "ann")
	if c.exit() != 0 || !strings.Contains(c.stdout.String(), "declined") {
		t.Errorf("exit %d, %s", c.exit(), c.stdout.String())
	}
}

func TestAQuestionThatNobodyAnswersIsTakenBack(t *testing.T) {
	t.Parallel()
	server := mcpServer(t, "everything")
	p := newPlace(t)
	p.up()
	p.serveMCP("ev", "trigger-elicitation-request", []string{"--elicit-limit", "2s"}, server)
	c := p.run("call", "ev_trigger-elicitation-request")
	if c.exit() != 0 || !strings.Contains(c.stdout.String(), "cancelled") {
		t.Errorf("exit %d, %s", c.exit(), c.stdout.String())
	}
	await(t, "nothing waits any more", func() bool {
		return len(decode[struct{ Parked []struct{ Call string } }](t, p.ok("approvals", "ls", "--output", "json")).Parked) == 0
	})
}

func TestAnMCPServerKilledInACallComesBack(t *testing.T) {
	t.Parallel()
	server := mcpServer(t, "everything")
	p := newPlace(t)
	p.up()
	w := p.serveMCP("ev", "trigger-long-running-operation", nil, []string{"sh", "-c", "echo pid $$ >&2; exec " + strings.Join(server, " ")})
	pid := w.says(&w.stderr, `pid (\d+)`)[1]
	c := p.start("call", "ev_trigger-long-running-operation", "--args", `{"duration":600,"steps":1200}`)
	w.says(&w.stderr, `"msg":"serving","tool":"ev_echo"`)
	await(t, "the call runs", func() bool {
		return strings.Contains(p.ok("pools", "--output", "json"), `"active": 1`)
	})
	kill(t, pid)
	if c.exit() != 5 || !strings.Contains(c.stderr.String(), "outcome_unknown") {
		t.Errorf("the call that ran: exit %d, %s", c.exit(), c.stderr.String())
	}
	if out := p.ok("call", "ev_echo", "--args", `{"message":"back"}`); out != "{\"output\":\"Echo: back\"}\n" {
		t.Errorf("after it: %q", out)
	}
	pids := regexp.MustCompile(`pid (\d+)`).FindAllStringSubmatch(w.stderr.String(), -1)
	if len(pids) != 2 {
		t.Fatalf("the server was started %d times, want twice", len(pids))
	}
	w.terminate()
	if w.exit() != 0 {
		t.Errorf("the worker exits with %d", w.exit())
	}
	await(t, "the server has ended with its worker", func() bool { return !alive(t, pids[1][1]) })
}

const filesAgent = `name: clerk
model: gemini-2.5-flash
instruction: Answer from the files.
tools:
  - name: fs_list_directory
  - name: fs_read_text_file
  - name: fs_write_file
`

func TestAnAgentUsesAFilesystemServer(t *testing.T) {
	t.Parallel()
	server := mcpServer(t, "filesystem")
	p := newPlace(t)
	note := p.write("files/note.txt", "The safe is behind the picture.")
	dir := filepath.Dir(note)
	p.gemini(`rules:
  - user: 'list'
    calls: [{tool: fs_list_directory, args: {path: ` + dir + `}}]
  - user: 'list'
    after: [fs_list_directory]
    text: "{{ range .results.fs_list_directory }}{{ .value }}{{ end }}"
  - user: 'read'
    calls: [{tool: fs_read_text_file, args: {path: ` + note + `}}]
  - user: 'read'
    after: [fs_read_text_file]
    text: "{{ range .results.fs_read_text_file }}{{ .value }}{{ end }}"
  - user: 'write'
    calls: [{tool: fs_write_file, args: {path: ` + dir + `/new.txt, content: "x"}}]
  - user: 'write'
    after: [fs_write_file]
    text: "written"
`)
	p.write("agents/clerk.yaml", filesAgent)
	p.up("--agents", "agents")
	w := p.serveMCP("fs", "write_file", []string{"--trust-hints"}, append(server, dir))
	for _, name := range []string{"read_text_file", "list_directory"} {
		w.says(&w.stderr, `"msg":"serving","tool":"fs_`+name+`"`)
	}
	if got := p.ok("run", "--agent", "clerk", "list"); !strings.Contains(got, "[FILE] note.txt") {
		t.Errorf("list: %q", got)
	}
	if got := p.ok("run", "--agent", "clerk", "read"); !strings.Contains(got, "The safe is behind the picture.") {
		t.Errorf("read: %q", got)
	}
	// The server calls writing destructive: a person is asked before it happens.
	p.run("run", "--agent", "clerk", "write")
	if _, err := os.Stat(filepath.Join(dir, "new.txt")); err == nil {
		t.Error("the file was written before anybody agreed")
	}
	list := decode[struct{ Parked []struct{ Call, Tool string } }](t, p.ok("approvals", "ls", "--output", "json"))
	if len(list.Parked) != 1 || list.Parked[0].Tool != "fs_write_file" {
		t.Fatalf("%+v waits", list.Parked)
	}
	p.ok("approvals", "approve", list.Parked[0].Call, "--as", "ann")
	await(t, "the file is written", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "new.txt"))
		return err == nil && string(text) == "x"
	})
	if got := p.ok("tools", "--output", "json"); !strings.Contains(got, `"read"`) {
		t.Errorf("no tool only reads: %s", got)
	}
	// The server's own refusal is a failure.
	if c := p.run("call", "fs_read_text_file", "--args", `{"path":"/etc/passwd"}`); c.exit() != 5 || !strings.Contains(c.stderr.String(), "Access denied") {
		t.Errorf("outside its folder: exit %d, %s", c.exit(), c.stderr.String())
	}
}

func TestAServersMemoryIsOneForAllCalls(t *testing.T) {
	t.Parallel()
	server := mcpServer(t, "memory")
	p := newPlace(t)
	p.up()
	p.serveMCP("mem", "open_nodes", []string{"--env", "MEMORY_FILE_PATH=" + filepath.Join(p.dir, "memory.jsonl")}, server)
	await(t, "all tools are listed", func() bool { return len(p.tools()) == 9+1 })
	p.ok("call", "mem_create_entities", "--args", `{"entities":[{"name":"Ann","entityType":"person","observations":["likes NATS"]}]}`)
	if got := p.ok("call", "mem_read_graph"); !strings.Contains(got, `"likes NATS"`) || !strings.Contains(got, `"entities":[`) {
		t.Errorf("got %s", got)
	}
	c := p.run("call", "mem_delete_entities", "--args", `{"entityNames":["Ann"]}`)
	if c.exit() != 0 || c.stdout.String() != "" || !strings.Contains(p.ok("call", "mem_read_graph"), "Ann") {
		t.Errorf("what the server calls destructive ran unasked: exit %d, %s", c.exit(), c.stdout.String())
	}
}

func kill(t *testing.T, pid string) {
	t.Helper()
	if out, err := exec.Command("kill", "-9", pid).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func alive(t *testing.T, pid string) bool {
	t.Helper()
	var n int
	if err := json.Unmarshal([]byte(pid), &n); err != nil {
		t.Fatal(err)
	}
	return syscall.Kill(n, 0) == nil
}
