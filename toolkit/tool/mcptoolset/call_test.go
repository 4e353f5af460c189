package mcptoolset_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/mcptoolset"
)

// serveIn is serve inside a bubble, where everything ends before the bubble does.
func serveIn(t *testing.T, s *mcp.Server, cfg mcptoolset.Config, do func(tool.Toolset)) {
	t.Helper()
	there, here := mcp.NewInMemoryTransports()
	session, err := s.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Transport = here
	set, err := mcptoolset.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	do(set)
	set.(interface{ Close() error }).Close()
	_ = session.Wait()
}

func TestProgressExtendsACallAndIsToldToWatchers(t *testing.T) { // H53
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		raw(s, &mcp.Tool{Name: "slow"}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for n := range 4 {
				<-time.After(50 * time.Second)
				_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(n + 1), Total: 4, Message: "step"})
			}
			return text("done"), nil
		})
		serveIn(t, s, mcptoolset.Config{Idle: time.Minute}, func(set tool.Toolset) {
			it := one(t, set)
			c := call(`{}`)
			var told []float64
			c.Progress = func(p protocol.Progress) { told = append(told, p.Percent) }
			r, _ := it.Run(t.Context(), c)
			want(t, r, protocol.OutcomeCompleted, `{"output":"done"}`)
			if len(told) < 3 || told[0] != 25 || told[2] != 75 { // the last word may come after the answer
				t.Errorf("watchers were told %v", told)
			}
		})
	})
}

func TestACallWithoutAWordEnds(t *testing.T) {
	for effect, outcome := range map[tool.Effect]protocol.Outcome{tool.AtMostOnce: protocol.OutcomeUnknown, tool.Read: protocol.OutcomeFailed} {
		synctest.Test(t, func(t *testing.T) {
			told := make(chan struct{}, 8)
			s := newServer()
			raw(s, &mcp.Tool{Name: "mute"}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				<-ctx.Done() // half open: there, but without a word
				told <- struct{}{}
				return nil, ctx.Err()
			})
			serveIn(t, s, mcptoolset.Config{Idle: time.Minute, Settings: tool.Settings{Effect: effect}}, func(set tool.Toolset) {
				from := time.Now()
				r := run(t, one(t, set), `{}`)
				if r.Outcome != outcome || !strings.Contains(string(r.Value), "said nothing") || time.Since(from) > 3*time.Minute {
					t.Errorf("got %s %s after %s", r.Outcome, r.Value, time.Since(from))
				}
				<-told
			})
		})
	}
}

func TestACancelledCallIsCancelledAtTheServer(t *testing.T) {
	began, told := make(chan struct{}), make(chan struct{})
	s := newServer()
	raw(s, &mcp.Tool{Name: "x"}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		close(began)
		<-ctx.Done()
		close(told)
		return nil, ctx.Err()
	})
	it := one(t, serve(t, s, mcptoolset.Config{}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	r, _ := it.Run(ctx, call(`{}`))
	want(t, r, protocol.OutcomeCancelled, "")
	<-told
}

func TestTheServerLearnsCallAndTrace(t *testing.T) {
	var meta mcp.Meta
	s := newServer()
	raw(s, &mcp.Tool{Name: "x"}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		meta = req.Params.Meta
		return text(string(req.Params.Arguments)), nil
	})
	it := one(t, serve(t, s, mcptoolset.Config{}))
	sc := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	c := call(`{"n":9007199254740993}`)
	r, _ := it.Run(trace.ContextWithSpanContext(t.Context(), sc), c)
	var answer struct{ Output string }
	if err := json.Unmarshal(r.Value, &answer); err != nil || answer.Output != `{"n":9007199254740993}` {
		t.Errorf("the arguments came as %s", r.Value)
	}
	if meta["toolfabric/call"] != c.Envelope.Call || meta["traceparent"] != "00-01000000000000000000000000000000-0200000000000000-01" {
		t.Errorf("_meta is %v", meta)
	}
}

func TestASessionOutlivesWhatOpenedIt(t *testing.T) { // H54
	s := newServer()
	raw(s, &mcp.Tool{Name: "x"}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text("ok"), nil })
	set := serve(t, s, mcptoolset.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := set.Tools(lister{ctx}); err != nil {
		t.Fatal(err)
	}
	cancel()
	want(t, run(t, one(t, set), `{}`), protocol.OutcomeCompleted, `{"output":"ok"}`)
}

func TestAnErrorOfTheServerIsAFailure(t *testing.T) { // H50
	for name, c := range map[string]struct{ said, want string }{
		"isError":      {`{"isError":true,"content":[{"type":"text","text":"no "},{"type":"text","text":"disk"}]}`, `{"error":"Tool execution failed. Details: no disk"}`},
		"without text": {`{"isError":true,"content":[]}`, `{"error":"Tool execution failed."}`},
		"structured":   {`{"isError":true,"content":[],"structuredContent":{"code":7}}`, `{"error":"Tool execution failed. Details: {\"code\":7}"}`},
		"protocol":     {`!{"code":-32602,"message":"no such tool"}`, `{"error":"the MCP server answers: no such tool"}`},
	} {
		t.Run(name, func(t *testing.T) {
			set := serveRaw(t, mcptoolset.Config{}, func(method string, _ json.RawMessage) string {
				if method == "tools/list" {
					return `{"tools":[{"name":"x","description":"x"}]}`
				}
				return c.said
			})
			want(t, run(t, one(t, set), `{}`), protocol.OutcomeFailed, c.want)
		})
	}
}

func TestUnknownBlocksAreNamed(t *testing.T) {
	set := serveRaw(t, mcptoolset.Config{}, func(method string, _ json.RawMessage) string {
		if method == "tools/list" {
			return `{"tools":[{"name":"x","description":"x"}]}`
		}
		return `{"content":[null,{"type":"text","text":"ok"},{"type":"hologram","data":"AAAA"}]}`
	})
	r := run(t, one(t, set), `{}`)
	want(t, r, protocol.OutcomeCompleted, "")
	if !strings.Contains(string(r.Value), "hologram") || !strings.Contains(string(r.Value), "ok") {
		t.Errorf("got %s", r.Value)
	}
}

func TestConfigurationsThatCannotWorkAreRefused(t *testing.T) {
	for name, cfg := range map[string]mcptoolset.Config{
		"nothing":          {},
		"two servers":      {Command: []string{"x"}, Endpoint: "http://127.0.0.1/"},
		"no URL":           {Endpoint: "127.0.0.1"},
		"a file":           {Endpoint: "file:///etc/passwd"},
		"a password":       {Endpoint: "http://a:b@127.0.0.1/"},
		"a bad prefix":     {Command: []string{"x"}, Prefix: "a.b"},
		"headers, no URL":  {Command: []string{"x"}, Header: map[string][]string{"A": {"b"}}},
		"an unknown class": {Command: []string{"x"}, Effects: map[string]tool.Effect{"x": "often"}},
	} {
		if _, err := mcptoolset.New(cfg); protocol.CodeOf(err) != protocol.CodeUsage || strings.Contains(err.Error(), "a:b") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
