package mcptoolset_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/session"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
	"github.com/toolfabric/toolfabric/toolkit/tool/mcptoolset"
)

func TestMain(m *testing.M) {
	if kind := os.Getenv("MCP_TEST_SERVER"); kind != "" {
		beServer(kind, os.Getenv("MCP_TEST_FILE"))
		return
	}
	code := m.Run()
	for _, s := range servers.all {
		for session := range s.Sessions() { // those that a client thought lost
			session.Close()
		}
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// servers are those of all tests: sessions end with the last of them.
var servers struct {
	sync.Mutex
	all []*mcp.Server
}

// serve connects a server to a toolset in memory, as ADK's examples do.
func serve(t *testing.T, s *mcp.Server, cfg mcptoolset.Config) tool.Toolset {
	t.Helper()
	there, here := mcp.NewInMemoryTransports()
	session, err := s.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Wait() })
	cfg.Transport = here
	return open(t, cfg)
}

// open makes a toolset that is closed when the test ends.
func open(t *testing.T, cfg mcptoolset.Config) tool.Toolset {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	set, err := mcptoolset.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.(interface{ Close() error }).Close() })
	return set
}

func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1"}, nil)
	servers.Lock()
	defer servers.Unlock()
	servers.all = append(servers.all, s)
	return s
}

// raw adds a tool that takes anything.
func raw(s *mcp.Server, tl *mcp.Tool, run func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
	if tl.InputSchema == nil {
		tl.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	if tl.Description == "" {
		tl.Description = "A tool."
	}
	s.AddTool(tl, run)
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func list(t *testing.T, set tool.Toolset) map[string]*invoke.Tool {
	t.Helper()
	tools, err := set.Tools(nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*invoke.Tool{}
	for _, one := range tools {
		it, err := invoke.New(one)
		if err != nil {
			t.Fatal(err)
		}
		all[one.Name()] = it
	}
	return all
}

// one is the set's only tool.
func one(t *testing.T, set tool.Toolset) *invoke.Tool {
	t.Helper()
	all := list(t, set)
	if len(all) != 1 {
		t.Fatalf("there are %d tools, want 1", len(all))
	}
	for _, it := range all {
		return it
	}
	return nil
}

// store keeps what tools keep.
type store struct {
	mu   sync.Mutex
	kept map[string]string // media type by content
}

func (s *store) keep(_ context.Context, data []byte, mediaType string) (protocol.Ref, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]string{}
	}
	s.kept[string(data)] = mediaType
	return protocol.Ref{Name: "n", SHA256: "s", Size: int64(len(data)), Type: mediaType}, nil
}

func call(args string) invoke.Call {
	return invoke.Call{Envelope: protocol.Envelope{V: protocol.Version, App: "a", User: "u", Session: "s1", Call: protocol.NewID(), Args: json.RawMessage(args)}, Attempt: 1, Worker: "w"}
}

func run(t *testing.T, it *invoke.Tool, args string) protocol.Result {
	t.Helper()
	r, _ := it.Run(t.Context(), call(args))
	return r
}

func want(t *testing.T, r protocol.Result, outcome protocol.Outcome, value string) {
	t.Helper()
	if r.Outcome != outcome || value != "" && string(r.Value) != value {
		t.Errorf("got %s %s, want %s %s", r.Outcome, r.Value, outcome, value)
	}
}

// lister lists under a context.
type lister struct{ context.Context }

func (lister) UserContent() *genai.Content          { return nil }
func (lister) InvocationID() string                 { return "" }
func (lister) AgentName() string                    { return "" }
func (lister) UserID() string                       { return "" }
func (lister) AppName() string                      { return "" }
func (lister) SessionID() string                    { return "" }
func (lister) Branch() string                       { return "" }
func (lister) ReadonlyState() session.ReadonlyState { return nil }

// records collects log records.
type records struct {
	mu    sync.Mutex
	text  strings.Builder
	waits map[string]chan struct{}
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for text, heard := range r.waits {
		if strings.Contains(string(p), text) {
			close(heard)
			delete(r.waits, text)
		}
	}
	return r.text.Write(p)
}

// heard is closed by the next record that holds text.
func (r *records) heard(text string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waits == nil {
		r.waits = map[string]chan struct{}{}
	}
	r.waits[text] = make(chan struct{})
	return r.waits[text]
}

func (r *records) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func logTo(r *records) *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

// bodyHas looks into a request's body, and puts it back.
func bodyHas(r *http.Request, text string) bool {
	b, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(b))
	return err == nil && bytes.Contains(b, []byte(text))
}
