package mcptoolset_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/mcptoolset"
)

// site is an HTTP server whose handler may be another one from one request to the next.
type site struct {
	*httptest.Server
	handler atomic.Pointer[http.Handler]
	runs    atomic.Int64
}

func (s *site) become(h http.Handler) { s.handler.Store(&h) }

// newSite serves a tool "x" that counts its runs.
func newSite(t *testing.T) *site {
	s := &site{}
	s.become(s.fresh())
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*s.handler.Load()).ServeHTTP(w, r) }))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *site) server() *mcp.Server {
	server := newServer()
	raw(server, &mcp.Tool{Name: "x"}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(fmt.Sprintf("run %d", s.runs.Add(1))), nil
	})
	return server
}

// fresh is a handler that knows no session.
func (s *site) fresh() http.Handler {
	server := s.server()
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
}

// isCall reports whether a request calls a tool; the body is read to its end and put back.
func isCall(r *http.Request) bool {
	return r.Header.Get("Mcp-Method") == "tools/call" || bodyHas(r, `"tools/call"`)
}

func TestALostSessionIsOpenedAnewAndTheCallRepeatedOnce(t *testing.T) { // H48
	site := newSite(t)
	it := one(t, open(t, mcptoolset.Config{Endpoint: site.URL, Connect: 5 * time.Second}))
	want(t, run(t, it, `{}`), protocol.OutcomeCompleted, `{"output":"run 1"}`)
	site.become(site.fresh()) // restarted: it answers 404 to the session
	want(t, run(t, it, `{}`), protocol.OutcomeCompleted, `{"output":"run 2"}`)
	// A server that forgets every session at once is asked twice, not for ever.
	var calls atomic.Int64
	inner := site.fresh()
	site.become(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isCall(r) {
			calls.Add(1)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	r := run(t, it, `{}`)
	if r.Outcome != protocol.OutcomeFailed || !strings.Contains(string(r.Value), "not executed") || calls.Load() > 3 {
		t.Errorf("after %d calls: %s %s", calls.Load(), r.Outcome, r.Value)
	}
}

func TestWhatAnHTTPServerSaysInsteadOfAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		effect  tool.Effect
		outcome protocol.Outcome
		calls   int64
	}{
		"it is busy":                     {http.StatusServiceUnavailable, tool.AtMostOnce, protocol.OutcomeFailed, 1},
		"too many requests":              {http.StatusTooManyRequests, tool.AtMostOnce, protocol.OutcomeFailed, 1},
		"not allowed":                    {http.StatusForbidden, tool.AtMostOnce, protocol.OutcomeFailed, 1},
		"a gateway gave up":              {http.StatusGatewayTimeout, tool.AtMostOnce, protocol.OutcomeUnknown, 1},
		"a gateway gave up, idempotent":  {http.StatusGatewayTimeout, tool.Idempotent, protocol.OutcomeUnknown, 2},
		"the connection breaks":          {0, tool.AtMostOnce, protocol.OutcomeUnknown, 1},
		"the connection breaks, reading": {0, tool.Read, protocol.OutcomeFailed, 2},
	} {
		t.Run(name, func(t *testing.T) {
			site := newSite(t)
			it := one(t, open(t, mcptoolset.Config{Endpoint: site.URL, Settings: tool.Settings{Effect: c.effect}}))
			inner := *site.handler.Load()
			var calls atomic.Int64
			site.become(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !isCall(r) {
					inner.ServeHTTP(w, r)
					return
				}
				calls.Add(1)
				if c.status == 0 {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(c.status)
			}))
			r := run(t, it, `{}`)
			if r.Outcome != c.outcome || calls.Load() != c.calls {
				t.Errorf("got %s %s after %d calls, want %s after %d", r.Outcome, r.Value, calls.Load(), c.outcome, c.calls)
			}
			site.become(inner)
			want(t, run(t, it, `{}`), protocol.OutcomeCompleted, `{"output":"run 1"}`)
		})
	}
}

func TestCredentialsGoWithEachRequestAndNowhereElse(t *testing.T) {
	for _, sse := range []bool{false, true} {
		var stolen atomic.Value
		thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen.Store(r.Header.Clone()) }))
		defer thief.Close()
		site := newSite(t)
		inner := *site.handler.Load()
		if sse {
			server := site.server()
			inner = mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil)
		}
		var bare, requests atomic.Int64
		var elsewhere atomic.Bool
		site.become(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			if r.Header.Get("Authorization") != "Bearer token" || r.Header.Get("X-Tenant") != "acme" {
				bare.Add(1)
			}
			if elsewhere.Load() && r.Method == http.MethodPost {
				http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
				return
			}
			inner.ServeHTTP(w, r)
		}))
		var asked atomic.Int64
		it := one(t, open(t, mcptoolset.Config{
			Endpoint: site.URL, SSE: sse, Header: http.Header{"x-tenant": {"acme"}},
			Token: func(context.Context) (string, error) { asked.Add(1); return "token", nil },
		}))
		want(t, run(t, it, `{}`), protocol.OutcomeCompleted, `{"output":"run 1"}`)
		if bare.Load() != 0 || asked.Load() != requests.Load() {
			t.Errorf("SSE %v: %d of %d requests came without credentials; the token was asked for %d times", sse, bare.Load(), requests.Load(), asked.Load())
		}
		elsewhere.Store(true)
		if r := run(t, it, `{}`); r.Outcome == protocol.OutcomeCompleted {
			t.Errorf("SSE %v: a redirect elsewhere was followed: %s", sse, r.Value)
		}
		if h := stolen.Load(); h != nil {
			t.Errorf("SSE %v: another server was told %v", sse, h)
		}
	}
}

func TestAnAnswerOverTheLimitOverHTTPFails(t *testing.T) {
	site := newSite(t)
	big := newServer()
	raw(big, &mcp.Tool{Name: "x"}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(strings.Repeat("x", 2<<20)), nil
	})
	for _, plain := range []bool{true, false} {
		site.become(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return big }, &mcp.StreamableHTTPOptions{JSONResponse: plain}))
		r := run(t, one(t, open(t, mcptoolset.Config{Endpoint: site.URL, MaxResult: 1 << 20})), `{}`)
		if r.Outcome != protocol.OutcomeFailed || !strings.Contains(string(r.Value), "over the limit") {
			t.Errorf("JSON %v: got %s %s", plain, r.Outcome, r.Value)
		}
	}
}

func TestAnAnswerOfTooManyPartsOverHTTPFails(t *testing.T) {
	site := newSite(t)
	big := newServer()
	raw(big, &mcp.Tool{Name: "x"}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: json.RawMessage(`{"a":[` + strings.Repeat("{},", 300_000) + `{}]}`)}, nil
	})
	for _, plain := range []bool{true, false} {
		site.become(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return big }, &mcp.StreamableHTTPOptions{JSONResponse: plain}))
		r := run(t, one(t, open(t, mcptoolset.Config{Endpoint: site.URL})), `{}`)
		if r.Outcome != protocol.OutcomeFailed || !strings.Contains(string(r.Value), "objects and lists") {
			t.Errorf("JSON %v: got %s %s", plain, r.Outcome, r.Value)
		}
	}
}

func TestDigitsSurviveHTTP(t *testing.T) {
	for _, opts := range []*mcp.StreamableHTTPOptions{nil, {JSONResponse: true}, {Stateless: true}} {
		s := newServer()
		raw(s, &mcp.Tool{Name: "x"}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: map[string]int64{"n": 9007199254740993}}, nil
		})
		site := newSite(t)
		site.become(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, opts))
		want(t, run(t, one(t, open(t, mcptoolset.Config{Endpoint: site.URL})), `{}`), protocol.OutcomeCompleted, `{"output":{"n":9007199254740993}}`)
	}
}

func TestAServerThatIsNotThereIsSaidToBeDown(t *testing.T) {
	site := newSite(t)
	set := open(t, mcptoolset.Config{Transport: &mcp.StreamableClientTransport{Endpoint: site.URL}, Connect: 2 * time.Second})
	it := one(t, set)
	site.CloseClientConnections()
	site.Close()
	r := run(t, it, `{}`)
	if r.Outcome != protocol.OutcomeFailed || !strings.Contains(string(r.Value), "not executed") || site.runs.Load() != 0 {
		t.Errorf("got %s %s", r.Outcome, r.Value)
	}
}
