//go:build unix

package mcptoolset_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/mcptoolset"
)

// beServer is a server as a process of its own. Each run of its tool is a line of file.
func beServer(kind, file string) {
	note := func() int {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(f, os.Getpid())
		f.Close()
		b, _ := os.ReadFile(file)
		return strings.Count(string(b), "\n")
	}
	s := newServer()
	raw(s, &mcp.Tool{Name: "x"}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		runs := note()
		switch {
		case kind == "dies once" && runs == 1:
			os.Exit(3)
		case kind == "answers in too many parts":
			return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: json.RawMessage(`{"a":[` + strings.Repeat("{},", 300_000) + `{}]}`)}, nil
		case kind == "answers too much":
			return text(strings.Repeat("x", 2<<20)), nil
		}
		return text("run " + strconv.Itoa(runs)), nil
	})
	fmt.Fprintln(os.Stderr, "hello from the server")
	if kind == "talks" {
		fmt.Println("Welcome to the server! \x1b[1m")
	}
	if kind == "knows initialize only" {
		in, out := io.Pipe()
		go func() {
			for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
				if !strings.Contains(lines.Text(), `"server/discover"`) {
					fmt.Fprintln(out, lines.Text())
				}
			}
			out.Close()
		}()
		_ = s.Run(context.Background(), &mcp.IOTransport{Reader: in, Writer: os.Stdout, MaxLineLength: -1})
		return
	}
	_ = s.Run(context.Background(), &mcp.StdioTransport{MaxLineLength: -1})
}

// ran is what the processes of a server noted: one pid for each run of the tool.
type ran string

func (r ran) pids() []string {
	b, _ := os.ReadFile(string(r))
	return strings.Fields(string(b))
}

// process is a toolset of such a server.
func process(t *testing.T, kind string, cfg mcptoolset.Config) (tool.Toolset, ran) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "runs")
	cfg.Command, cfg.Env = []string{self}, []string{"MCP_TEST_SERVER=" + kind, "MCP_TEST_FILE=" + file, "GOCOVERDIR=" + t.TempDir()}
	return open(t, cfg), ran(file)
}

func TestAServerThatDiesInACall(t *testing.T) {
	for name, c := range map[string]struct {
		effect  tool.Effect
		outcome protocol.Outcome
		value   string
		runs    int
	}{
		"at most once: nobody knows": {tool.AtMostOnce, protocol.OutcomeUnknown, "", 1},
		"idempotent: once more":      {tool.Idempotent, protocol.OutcomeCompleted, `{"output":"run 2"}`, 2},
		"read: once more":            {tool.Read, protocol.OutcomeCompleted, `{"output":"run 2"}`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			set, runs := process(t, "dies once", mcptoolset.Config{Settings: tool.Settings{Effect: c.effect}})
			it := one(t, set)
			want(t, run(t, it, `{}`), c.outcome, c.value)
			if n := len(runs.pids()); n != c.runs {
				t.Errorf("it ran %d times, want %d", n, c.runs)
			}
			want(t, run(t, it, `{}`), protocol.OutcomeCompleted, fmt.Sprintf(`{"output":"run %d"}`, c.runs+1)) // it is back
		})
	}
}

// A server may answer nothing at all to what it does not know. The next time it is spoken to by an older protocol.
func TestAServerThatIsDeafToTheNewestProtocol(t *testing.T) {
	set, _ := process(t, "knows initialize only", mcptoolset.Config{Connect: time.Second})
	for tries := 1; ; tries++ { // each waits for a second
		_, err := set.Tools(nil)
		if err == nil {
			break
		}
		if tries == 20 || !strings.Contains(err.Error(), "is down") {
			t.Fatalf("list %d: %v", tries, err)
		}
	}
	want(t, run(t, one(t, set), `{}`), protocol.OutcomeCompleted, `{"output":"run 1"}`)
}

func TestAServerThatDiedBetweenCallsIsStartedAgain(t *testing.T) {
	log := &records{}
	set, runs := process(t, "plain", mcptoolset.Config{Logger: logTo(log)})
	it := one(t, set)
	want(t, run(t, it, `{}`), protocol.OutcomeCompleted, `{"output":"run 1"}`)
	pid, err := strconv.Atoi(runs.pids()[0])
	if err != nil {
		t.Fatal(err)
	}
	lost := log.heard("is lost")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-lost
	want(t, run(t, it, `{}`), protocol.OutcomeCompleted, `{"output":"run 2"}`)
	if pids := runs.pids(); len(pids) != 2 || pids[0] == pids[1] {
		t.Errorf("it ran in the processes %v", pids)
	}
}

func TestCloseEndsTheServerAndWhatItStarted(t *testing.T) {
	set, runs := process(t, "plain", mcptoolset.Config{})
	want(t, run(t, one(t, set), `{}`), protocol.OutcomeCompleted, "")
	set.(io.Closer).Close()
	pid, _ := strconv.Atoi(runs.pids()[0])
	if err := syscall.Kill(-pid, 0); err != syscall.ESRCH {
		t.Errorf("its process group is still there: %v", err)
	}
	if _, err := set.Tools(nil); err == nil {
		t.Error("a closed toolset lists its tools")
	}
}

func TestWhatAServerPrintsBesideMessagesIsLogged(t *testing.T) {
	var log records
	set, _ := process(t, "talks", mcptoolset.Config{Logger: logTo(&log)})
	want(t, run(t, one(t, set), `{}`), protocol.OutcomeCompleted, `{"output":"run 1"}`)
	set.(interface{ Close() error }).Close()
	for _, part := range []string{"hello from the server", "Welcome to the server! [1m"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log lacks %q: %s", part, log.String())
		}
	}
}

func TestAMessageOverTheLimitCostsOneCallOnly(t *testing.T) {
	for kind, says := range map[string]string{"answers too much": "over the limit", "answers in too many parts": "more than 250000 objects and lists"} {
		set, runs := process(t, kind, mcptoolset.Config{MaxResult: 1 << 20})
		it := one(t, set)
		for n := 1; n <= 2; n++ {
			r := run(t, it, `{}`)
			if r.Outcome != protocol.OutcomeFailed || !strings.Contains(string(r.Value), says) || len(runs.pids()) != n {
				t.Errorf("%s, call %d: %s %s", kind, n, r.Outcome, r.Value)
			}
		}
		if pids := runs.pids(); pids[0] != pids[1] {
			t.Errorf("%s: the session was lost", kind)
		}
	}
}

func TestACommandThatIsNotThereIsNoList(t *testing.T) {
	log := &records{}
	set := open(t, mcptoolset.Config{Command: []string{filepath.Join(t.TempDir(), "none")}, Logger: logTo(log)})
	ctx, cancel := context.WithCancel(t.Context())
	failed := log.heard("no session with the MCP server")
	go func() {
		<-failed
		cancel()
	}()
	if _, err := set.Tools(lister{ctx}); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("got %v", err)
	}
}
