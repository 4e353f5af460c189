package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

// badFiles are what command lines of the table name.
var badFiles = map[string]string{
	"syntax.yaml":   "tools:\n  - name: a\n   description: b\n",
	"twice.yaml":    "slots: 1\nslots: 2\ntools: [{name: a, description: b, command: [c]}]\n",
	"types.yaml":    "slots: many\ngrace: soon\ntools: [{name: 1, description: [b], command: c, attempts: 1.5}]\n",
	"alias.yaml":    "tools:\n  - &a {name: a, description: b, command: [c]}\n  - *a\n",
	"two.yaml":      "tools: [{name: a, description: b, command: [c]}]\n---\ntools: []\n",
	"unset.yaml":    "tools:\n  - name: a\n    description: b\n    command: [c]\n    env: {KEY: \"${env:NOT_SET_ANYWHERE}\"}\n",
	"schema.yaml":   "tools:\n  - {name: a, description: b, command: [c], schema: bad.json}\n",
	"hidden.yaml":   "tools:\n  - {name: a, description: \"b \\u202e c\", command: [cat]}\n",
	"bad.json":      `{"type":"object","type":"array"}`,
	"agent.yaml":    "name: a b\nmodel: gemini-9\ninstruction: x\ncolour: red\nname: b\n",
	"transfer.yaml": "agent_class: CustomAgent\nname: a\n",
	"cut.yaml":      "name: a\nmodel: [",
	"script.yaml":   "name: a\nmodel: scripted:missing.yaml\ninstruction: x\n",
	"broken.creds":  "no credentials\n",
	"doc.yaml":      "openapi: 3.0.0\npaths: {/pets: {get: {operationId: listPets}}}\n",
	"endpoints.yaml": "tools:\n  - {name: a, description: d, http: {url: 'http://10.0.0.1/', method: GET}}\n" +
		"  - {name: b, description: d, http: {url: 'https://e.test/{x}', headers: {X: '${env:TF_TEST_NOT_SET}'}}}\n",
}

func TestBadCommandLinesAndFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range badFiles {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open := natstest.Start(t)
	open.Connect(t, "")
	locked := natstest.Start(t, natstest.Auth(func(o *server.Options) {
		plain := server.NewAccount("PLAIN")
		o.Accounts = []*server.Account{plain}
		o.Users = []*server.User{
			{Username: "plain", Password: "pw", Account: plain},
		}
	}))
	ruled := natstest.Start(t, natstest.Auth(func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "boss", Password: "pw"},
			{Username: "guest", Password: "pw", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{Allow: []string{"$JS.API.INFO"}}, Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX_guest.>"}}}},
		}
	}))
	ruled.Dial(t, natswire.Config{URL: as(ruled, "boss")})
	at := func(name string) string { return filepath.Join(dir, name) }
	var b strings.Builder
	for _, row := range []struct {
		stdin string
		args  []string
	}{
		{args: []string{"--nope"}},
		{args: []string{"call", "t", "--args"}},
		{args: []string{"call", "t", "--args", "not json"}},
		{args: []string{"call", "t", "--args", `{"a":1}{}`}},
		{args: []string{"call", "t", "--args", "null"}},
		{args: []string{"call", "t", "--args", "{\"a\":\"\xff\"}"}},
		{args: []string{"call", "t", "--args", `{"a":1e999}`}},
		{args: []string{"call", "t", "--args", `{"\udc00":1}`}},
		{args: []string{"call", "t", "--args", strings.Repeat("[", 100)}},
		{args: []string{"call", "t", "--args", `{"a":"` + strings.Repeat("x", 300<<10) + `"}`}},
		{args: []string{"call", "t", "--args", "-"}, stdin: `{"a":`},
		{args: []string{"call", "a.b"}},
		{args: []string{"call", "t", "u"}},
		{args: []string{"run", "--agent", "a b", "hi", "--nats", open.URL()}},
		{args: []string{"run", "--agent", "ghost", "hi", "--nats", open.URL()}},
		{args: []string{"call", "ghost", "--nats", open.URL()}},
		{args: []string{"tools", "show", "ghost", "--nats", open.URL()}},
		{args: []string{"sessions", "show", "ghost", "--nats", open.URL()}},
		{args: []string{"sessions", "show", "a.b", "--nats", open.URL()}},
		{args: []string{"trace", "ghost", "--nats", open.URL()}},
		{args: []string{"tools", "--nats", "nats://127.0.0.1:1"}},
		{args: []string{"tools", "--nats", "not a url"}},
		{args: []string{"tools", "--nats", locked.URL()}},
		{args: []string{"tools", "--nats", as(locked, "plain")}},
		{args: []string{"tools", "--nats", as(ruled, "guest")}},
		{args: []string{"tools", "--nats", tooOld(t)}},
		{args: []string{"tools", "--nats", open.URL(), "--creds", at("broken.creds")}},
		{args: []string{"tools", "--nats", open.URL(), "--creds", at("missing.creds")}},
		{args: []string{"tools", "--context", "missing"}},
		{args: []string{"tools", "--namespace", "Bad.Name", "--nats", open.URL()}},
		{args: []string{"worker", "mcp"}},
		{args: []string{"worker", "mcp", "--url", "http://127.0.0.1/", "--", "server"}},
		{args: []string{"worker", "mcp", "--header", "A: b", "--", "server"}},
		{args: []string{"worker", "mcp", "--url", "ftp://127.0.0.1/", "--nats", open.URL()}},
		{args: []string{"worker", "mcp", "--url", "http://127.0.0.1/", "--transport", "quic"}},
		{args: []string{"worker", "mcp", "--url", "http://127.0.0.1/", "--bearer-env", "NOT_SET_ANYWHERE"}},
		{args: []string{"worker", "mcp", "--prefix", "a.b", "--nats", open.URL(), "--", "server"}},
		{args: []string{"worker", "mcp", "--effect", "read=often", "--", "server"}},
		{args: []string{"worker", "mcp", "--slots", "0", "--", "server"}},
		{args: []string{"worker", "--config", at("syntax.yaml")}},
		{args: []string{"worker", "--config", at("twice.yaml")}},
		{args: []string{"worker", "--config", at("types.yaml")}},
		{args: []string{"worker", "--config", at("alias.yaml")}},
		{args: []string{"worker", "--config", at("two.yaml")}},
		{args: []string{"worker", "--config", at("unset.yaml")}},
		{args: []string{"worker", "--config", at("schema.yaml")}},
		{args: []string{"worker", "--config", at("hidden.yaml"), "--nats", open.URL()}},
		{args: []string{"worker", "--config", at("endpoints.yaml")}},
		{args: []string{"worker", "http"}},
		{args: []string{"worker", "http", "--name", "a"}},
		{args: []string{"worker", "http", "--name", "a", "--description", "d"}},
		{args: []string{"worker", "http", "--name", "a", "--description", "d", "--url", "http://169.254.169.254/"}},
		{args: []string{"worker", "http", "--name", "a", "--description", "d", "--url", "https://{host}/"}},
		{args: []string{"worker", "http", "--name", "a", "--description", "d", "--url", "https://e.test/", "--header", "no colon"}},
		{args: []string{"worker", "http", "--name", "a", "--description", "d", "--url", "https://e.test/", "--header", "X: ${env:TF_TEST_NOT_SET}"}},
		{args: []string{"worker", "http", "--name", "a", "--description", "d", "--url", "https://e.test/", "--effect", "maybe"}},
		{args: []string{"worker", "openapi"}},
		{args: []string{"worker", "openapi", "--document", at("missing.yaml")}},
		{args: []string{"worker", "openapi", "--document", "missing.yaml", "--base-url", "https://e.test"}},
		{args: []string{"worker", "openapi", "--document", at("syntax.yaml"), "--base-url", "https://e.test"}},
		{args: []string{"worker", "openapi", "--document", at("doc.yaml"), "--base-url", "https://e.test", "--only", "listPet"}},
		{args: []string{"worker", "openapi", "--document", at("doc.yaml"), "--base-url", "https://e.test", "--effect", "listPets"}},
		{args: []string{"worker", "openapi", "--document", at("doc.yaml"), "--base-url", "https://e.test", "--credential", "key=secret-key"}},
		{args: []string{"agents", "validate", at("agent.yaml")}},
		{args: []string{"agents", "validate", at("transfer.yaml")}},
		{args: []string{"agents", "validate", at("cut.yaml")}},
		{args: []string{"agents", "validate", at("script.yaml")}},
		{args: []string{"agents", "validate", at("missing.yaml")}},
		{args: []string{"coordinator", "--agents", at("agent.yaml"), "--nats", open.URL()}},
	} {
		code, stdout, stderr := command(t, row.stdin, row.args...)
		typed := strings.Split(strings.ReplaceAll(strings.Join(row.args, "\x00"), dir+string(filepath.Separator), ""), "\x00")
		fmt.Fprintf(&b, "$ toolfabric %s\nexit %d\n%s\n", strings.Join(clipped(typed), " "), code, strings.TrimRight(stderr, "\n"))
		if stdout != "" {
			fmt.Fprintf(&b, "and on stdout:\n%s", stdout)
		}
		if strings.Contains(stdout+stderr, "pw@") {
			t.Errorf("%q tells a password", row.args)
		}
	}
	text := strings.ReplaceAll(b.String(), dir+string(filepath.Separator), "")
	text = regexp.MustCompile(`127\.0\.0\.1:\d{3,}`).ReplaceAllString(text, "HOST:PORT")
	text = regexp.MustCompile(`\S*/nats/context/`).ReplaceAllString(text, "CONFIG/nats/context/")
	golden(t, "badinput.txt", strings.ReplaceAll(text, ":pw@", "@"))
}

func as(s *natstest.Server, user string) string {
	return strings.Replace(s.URL(), "://", "://"+user+":pw@", 1)
}

func clipped(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = fmt.Sprintf("%.60s", strings.ToValidUTF8(a, "?"))
	}
	return out
}

// tooOld speaks just enough of the protocol to be connected to.
func tooOld(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				fmt.Fprint(c, "INFO {\"server_id\":\"OLD\",\"version\":\"2.10.22\",\"headers\":true,\"max_payload\":1048576}\r\n")
				for in := bufio.NewScanner(c); in.Scan(); {
					if in.Text() == "PING" {
						fmt.Fprint(c, "PONG\r\n")
					}
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return "nats://" + l.Addr().String()
}

// brokenPipe is a reader that went away.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestBrokenPipeEndsQuietly(t *testing.T) {
	s := natstest.Start(t)
	s.Connect(t, "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, args := range [][]string{{"tools"}, {"sessions"}, {"doctor"}, {"tools", "--output", "json"}} {
		var stderr bytes.Buffer
		code := Main(t.Context(), append(args, "--nats", s.URL()), strings.NewReader(""), brokenPipe{}, &stderr)
		if stderr.Len() > 0 && args[0] == "tools" && len(args) > 1 || code != exitOK {
			t.Errorf("%v: exit %d, stderr %q", args, code, stderr.String())
		}
	}
}

const evil = "\x1b]52;c;QUFB\x07\x1b[2J\u202egpj.exe\u200b\ufeff\u0085\r\u2066"

// Everything that others wrote into a session reaches a terminal as text.
func TestNothingOfASessionActsOnATerminal(t *testing.T) {
	s := natstest.Start(t)
	conn := s.Connect(t, "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	n := conn.Names()
	value, _ := json.Marshal(map[string]string{evil: evil})
	content, _ := json.Marshal(client.Text(evil))
	input := protocol.FoldedInput{ID: evil, Kind: protocol.InputMessage, Client: evil, Seq: 1, Sent: 1, Content: content,
		StateDelta: map[string]json.RawMessage{evil: value}}
	call := protocol.Call{ID: "c" + evil, Tool: evil, Args: value, Verdict: protocol.VerdictRun, Span: evil}
	gone := protocol.Call{ID: "d", Tool: evil, Args: value, Verdict: protocol.VerdictRefuse, Refusal: &protocol.Result{Outcome: protocol.OutcomeFailed, Code: protocol.Code(evil), Value: value}}
	answer := protocol.Answer{Call: call.ID, Result: protocol.Result{V: 1, Outcome: protocol.Outcome(evil), Code: protocol.Code(evil), Value: value, Worker: evil, Attempt: 1, Started: 1, Ended: 2, Span: evil}}
	for i, ev := range []protocol.Event{
		{Adopt: &protocol.Adopt{Coordinator: evil, Adoption: "a", Trace: evil}, Inputs: []protocol.FoldedInput{input}},
		{Turn: &protocol.Turn{Agent: evil, Model: evil, Content: content, Finish: evil, Calls: []protocol.Call{call, gone}}},
		{Answers: []protocol.Answer{answer}, Turn: &protocol.Turn{Agent: evil, Model: evil, Content: content}, Stop: &protocol.Stop{Kind: protocol.StopDone, Problem: &protocol.Problem{Code: protocol.Code(evil), Message: evil}}},
	} {
		ev.V, ev.ID, ev.Epoch, ev.At = 1, fmt.Sprint(i), 1, int64(i)
		data, err := protocol.Encode(ev)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Publish(t.Context(), natswire.Msg{Subject: n.LogSubject("house", "s1"), Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"sessions", "ls"}, {"sessions", "show", "s1"}, {"sessions", "log", "s1"}, {"trace", "s1"},
		{"sessions", "show", "s1", "--output", "json"}, {"sessions", "log", "s1", "--output", "json"}, {"trace", "s1", "--output", "json"},
		{"tools", "show", evil}, {"run", "--agent", evil, evil}, {"call", evil, "--args", evil}, {"sessions", "show", evil},
	} {
		var screen bytes.Buffer
		shown := term.Screen{Writer: &screen, TTY: true}
		a := &app{in: strings.NewReader(""), out: shown, err: shown}
		root := a.root()
		root.SetArgs(append(args, "--nats", s.URL()))
		root.SetOut(&screen)
		root.SetErr(&screen)
		if err := root.ExecuteContext(t.Context()); err != nil {
			a.report(a.root(), err)
		}
		plain := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(screen.String(), "") // our own colours
		if r, found := protocol.HiddenRune(plain); found || strings.ContainsRune(plain, '\r') {
			t.Errorf("%q shows %U in %q", args, r, plain)
		}
		if plain == "" {
			t.Errorf("%q shows nothing", args)
		}
	}
}
