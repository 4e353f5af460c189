package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/mcptoolset"
)

// mcpTools are the tools of an MCP toolset that ends with the test.
func mcpTools(t *testing.T, cfg mcptoolset.Config) []tool.Tool {
	t.Helper()
	cfg.Logger = logger(t)
	set, err := mcptoolset.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.(io.Closer).Close() })
	tools, err := set.Tools(nil)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// The example of ADK's page on MCP tools: an agent asks a weather server in its own process.
func TestWeatherOverMCPInMemory(t *testing.T) {
	t.Parallel()
	type input struct {
		City string `json:"city" jsonschema:"city name"`
	}
	type output struct {
		WeatherSummary string `json:"weather_summary" jsonschema:"weather summary in the given city"`
	}
	here, there := mcp.NewInMemoryTransports()
	server := mcp.NewServer(&mcp.Implementation{Name: "weather_server", Version: "v1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "get_weather", Description: "returns weather in the given city"},
		func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, output, error) {
			return nil, output{WeatherSummary: fmt.Sprintf("Today in %q is sunny\n", in.City)}, nil
		})
	session, err := server.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Wait() })

	f := newFabric(t)
	f.coordinate(newAgent(t, "helper_agent", script(t, `rules:
  - user: 'weather in (?P<city>\w+)'
    calls: [{tool: get_weather, args: {city: '{{ .city }}'}}]
  - user: 'weather'
    after: [get_weather]
    text: "{{ range .results.get_weather }}{{ .value }}{{ end }}"
`), "get_weather"))
	f.work(mcpTools(t, mcptoolset.Config{Transport: here, Settings: tool.Settings{Effect: tool.Read}})...)
	out := f.ask("helper_agent", "", "what is the weather in London?")
	contains(t, "the answer", out.Text, `Today in "London" is sunny`)
}

// framed is an MCP server over HTTP that says what frames say, in order; each is used as often as it says, or for ever.
type framed struct {
	t *testing.T

	mu     sync.Mutex
	frames []*frame
	heard  []heard
}

type frame struct {
	On, SessionID, Cursor, Tool string
	HTTP, Times                 int
	Result                      json.RawMessage
	used                        int
}

// heard is a request that the server got.
type heard struct{ method, session string }

func (s *framed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Cursor, Name string }
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		s.t.Error(err)
	}
	if len(m.ID) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, heard{m.Method, r.Header.Get("Mcp-Session-Id")})
	w.Header().Set("Content-Type", "application/json")
	for _, f := range s.frames {
		if f.On != m.Method || f.Cursor != m.Params.Cursor || f.Tool != m.Params.Name || f.used > 0 && (f.used == f.Times || f.On == "initialize") {
			continue
		}
		f.used++
		result := f.Result
		switch {
		case f.HTTP != 0:
			w.WriteHeader(f.HTTP)
			return
		case f.On == "initialize":
			w.Header().Set("Mcp-Session-Id", f.SessionID)
			result = json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"framed","version":"1"}}`)
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
}

func serveFrames(t *testing.T, frames []*frame) (*framed, string) {
	t.Helper()
	s := &framed{t: t, frames: frames}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

func TestALostMCPSessionAndAFailureAreSeen(t *testing.T) { // h17
	t.Parallel()
	var script struct{ Frames []*frame }
	if err := json.Unmarshal(hand(t, "h17-mcp-session-and-pages/mcp.json"), &script); err != nil {
		t.Fatal(err)
	}
	s, url := serveFrames(t, script.Frames)
	tools := mcpTools(t, mcptoolset.Config{Endpoint: url})
	if len(tools) != 2 || tools[0].Name() != "one" || tools[1].Name() != "two" {
		t.Fatalf("%d tools are offered, want one and two", len(tools))
	}
	f := newFabric(t)
	f.coordinate()
	f.work(tools...)
	r, err := f.client.Call(t.Context(), "two", json.RawMessage(`{}`))
	if err != nil || r.Outcome != protocol.OutcomeFailed {
		t.Errorf("got %s, %v, want a failure", r.Outcome, err)
	}
	contains(t, "what the model receives", string(r.Value), "quota exceeded")
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := slices.DeleteFunc(slices.Clone(s.heard), func(h heard) bool { return h.method == "server/discover" || h.method == "tools/list" })
	if want := []heard{{"initialize", ""}, {"tools/call", "S1"}, {"initialize", ""}, {"tools/call", "S2"}}; !slices.Equal(calls, want) {
		t.Errorf("the server heard %v, want %v", calls, want)
	}
}

func TestBadMCPListsAreErrorsOfTheirOwn(t *testing.T) { // h17
	t.Parallel()
	var bad []json.RawMessage
	if err := json.Unmarshal(hand(t, "h17-mcp-session-and-pages/mcp-bad.json"), &bad); err != nil {
		t.Fatal(err)
	}
	for _, result := range bad {
		_, url := serveFrames(t, []*frame{{On: "initialize", SessionID: "S"}, {On: "tools/list", Result: result}})
		set, err := mcptoolset.New(mcptoolset.Config{Endpoint: url})
		if err != nil {
			t.Fatal(err)
		}
		tools, err := set.Tools(nil)
		if len(tools) != 0 || err == nil || !strings.Contains(err.Error(), url) {
			t.Errorf("%s: got %d tools, %v; want an error that names the server", result, len(tools), err)
		}
		set.(io.Closer).Close()
	}
}
