package httptool_test

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/httptool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
	"github.com/toolfabric/toolfabric/toolkit/tooltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loopback allows what the servers of these tests need.
var loopback = httptool.Network{Allow: []string{"127.0.0.1"}}

// seen is one request as its server got it.
type seen struct {
	line   string // method and request URI
	header http.Header
	body   string
}

// recorder is a server that keeps what it gets.
type recorder struct {
	*httptest.Server
	mu   sync.Mutex
	reqs []seen
}

// record starts a server that answers by answer, or with {"ok":true} when that is nil.
func record(t testing.TB, answer http.HandlerFunc) *recorder {
	t.Helper()
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.reqs = append(r.reqs, seen{req.Method + " " + req.RequestURI, req.Header.Clone(), string(body)})
		r.mu.Unlock()
		if answer == nil {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"ok":true}`)
			return
		}
		answer(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

// newTLS starts a server whose certificate nobody trusts but its own client.
func newTLS(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(answer)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// got is what the server got so far.
func (r *recorder) got() []seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]seen(nil), r.reqs...)
}

// made is the tool of a configuration, whose connections are closed when the test ends.
func made(t testing.TB, cfg httptool.Config) tool.Tool {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name, cfg.Description = "x", "An endpoint."
	}
	if cfg.Network.Allow == nil {
		cfg.Network = loopback
	}
	ht, err := httptool.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ht.(io.Closer).Close() })
	return ht
}

// run makes one call.
func run(t testing.TB, ctx context.Context, ht tool.Tool, args string) (protocol.Result, error) {
	t.Helper()
	it, err := invoke.New(ht)
	if err != nil {
		t.Fatal(err)
	}
	return it.Run(ctx, invoke.Call{Envelope: protocol.Envelope{Call: "c1", Session: "s1", Args: json.RawMessage(args)}, Attempt: 1})
}

// value makes one call and returns what the model reads.
func value(t testing.TB, cfg httptool.Config, args string) string {
	t.Helper()
	r, _ := run(t, t.Context(), made(t, cfg), args)
	return string(r.Value)
}

func object(properties, required string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`)
}

func TestTheSuite(t *testing.T) {
	hang := make(chan struct{})
	s := record(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			select {
			case <-r.Context().Done():
			case <-hang:
			}
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"n":9007199254740993}`)
		}
	})
	defer close(hang)
	mk := func(url string, schema json.RawMessage) func() tool.Tool {
		return func() tool.Tool {
			return made(t, httptool.Config{Name: "x", Description: "An endpoint.", URL: s.URL + url, Schema: schema})
		}
	}
	t.Run("arguments", func(t *testing.T) {
		tooltest.Run(t, func() tool.Tool { return closing(t, mk("/{page}", nil)()) },
			tooltest.Case{Name: "found", Args: `{"page":"a"}`, Want: `{"n":9007199254740993}`},
			tooltest.Case{Name: "not found", Args: `{"page":"missing"}`, Outcome: protocol.OutcomeFailed, Want: `{"error":"HTTP 404 Not Found"}`},
			tooltest.Case{Name: "another path", Args: `{"page":".."}`, Outcome: protocol.OutcomeFailed, Want: `{"error":"/page: \"..\" leads to another path"}`},
			tooltest.Case{Name: "left out", Args: `{}`, Refused: true},
			tooltest.Case{Name: "no text", Args: `{"page":1}`, Refused: true},
			tooltest.Case{Name: "unknown", Args: `{"page":"a","host":"b"}`, Refused: true},
		)
	})
	t.Run("without arguments", func(t *testing.T) {
		tooltest.Run(t, func() tool.Tool { return closing(t, mk("/slow", nil)()) }, tooltest.Case{Name: "slow", Args: `{}`, Blocks: true})
	})
}

// closing closes a tool's connections before the suite of t looks for what is left.
func closing(t *testing.T, ht tool.Tool) tool.Tool {
	t.Cleanup(func() { ht.(io.Closer).Close() })
	return ht
}

func TestArgumentsReachTheirPlaces(t *testing.T) {
	s := record(t, nil)
	for _, c := range []struct {
		what string
		cfg  httptool.Config
		args string
		line string
		body string
	}{
		{"path and query", httptool.Config{URL: "/v1/{city}/days?units={units}&v=2"}, `{"city":"São Paulo","units":"a&b=c#d"}`, "GET /v1/S%C3%A3o%20Paulo/days?units=a%26b%3Dc%23d&v=2", ""},
		{"left out", httptool.Config{URL: "/x?units={units}&v=2"}, `{}`, "GET /x?v=2", ""},
		{"null", httptool.Config{URL: "/x?units={units}", Schema: object(`"units":{"type":["string","null"]}`, ``)}, `{"units":null}`, "GET /x", ""},
		{"part of a segment", httptool.Config{URL: "/v{version}/{file}.json", Schema: object(`"version":{"type":"integer"},"file":{"type":"string"}`, `"version","file"`)}, `{"version":3,"file":"a.b"}`, "GET /v3/a.b.json", ""},
		{"a list", httptool.Config{URL: "/x?tag={tags}", Schema: object(`"tags":{"type":"array"}`, ``)}, `{"tags":["a","b c",3,true]}`, "GET /x?tag=a&tag=b%20c&tag=3&tag=true", ""},
		{"every digit", httptool.Config{URL: "/x?n={n}", Schema: object(`"n":{"type":"integer"}`, ``)}, `{"n":9007199254740993}`, "GET /x?n=9007199254740993", ""},
		{"text around", httptool.Config{URL: "/x?q=lang:{lang}"}, `{"lang":"go"}`, "GET /x?q=lang%3Ago", ""},
		{"JSON", httptool.Config{Method: "POST", URL: "/x", Schema: object(`"a":{"type":"integer"},"b":{"type":"string"}`, ``)}, `{"b": "é<","a":9007199254740993}`, "POST /x", `{"b": "é<","a":9007199254740993}`},
		{"JSON of the rest", httptool.Config{Method: "PUT", URL: "/x/{id}", Schema: object(`"id":{"type":"string"},"a":{},"b":{}`, `"id"`)}, `{"b":[1],"id":"7","a":null}`, "PUT /x/7", `{"b":[1],"a":null}`},
		{"one argument", httptool.Config{Method: "PATCH", URL: "/x/{id}", Body: "{ops}", Schema: object(`"id":{"type":"string"},"ops":{"type":"array"}`, `"id","ops"`)}, `{"id":"7","ops":[{"op":"add"}]}`, "PATCH /x/7", `[{"op":"add"}]`},
		{"a form", httptool.Config{Method: "POST", URL: "/x", Body: "form", Schema: object(`"a":{},"b":{}`, ``)}, `{"a":"1&2","b":["x","y z"]}`, "POST /x", "a=1%262&b=x&b=y%20z"},
		{"no body", httptool.Config{Method: "DELETE", URL: "/x/{id}"}, `{"id":"7"}`, "DELETE /x/7", ""},
		{"no path", httptool.Config{URL: "?a={a}"}, `{"a":"b"}`, "GET /?a=b", ""},
	} {
		c.cfg.URL = s.URL + c.cfg.URL
		before := len(s.got())
		if got := value(t, c.cfg, c.args); got != `{"ok":true}` {
			t.Errorf("%s: %s", c.what, got)
			continue
		}
		got := s.got()[before:]
		if len(got) != 1 || got[0].line != c.line || got[0].body != c.body {
			t.Errorf("%s: got %+v, want %s %s", c.what, got, c.line, c.body)
		}
	}
}

func TestHeadersAreSentAsDeclared(t *testing.T) {
	s := record(t, nil)
	cfg := httptool.Config{
		Method: "POST", URL: s.URL + "/x", Headers: map[string]string{"x-tenant": "t-{tenant}", "X-Fixed": "a", "Content-Type": "application/merge-patch+json"},
		Schema: object(`"tenant":{"type":"string"},"a":{}`, ``),
	}
	for _, args := range []string{`{"tenant":"7","a":1}`, `{"a":1}`} {
		if got := value(t, cfg, args); got != `{"ok":true}` {
			t.Fatal(got)
		}
	}
	got := s.got()
	h := got[0].header
	if h.Get("X-Tenant") != "t-7" || h.Get("X-Fixed") != "a" || h.Get("Content-Type") != "application/merge-patch+json" || h.Get("User-Agent") != "toolfabric" || h.Get("Idempotency-Key") != "c1" {
		t.Errorf("%v", h)
	}
	if got[1].header.Values("X-Tenant") != nil {
		t.Errorf("a header whose argument is left out is sent: %v", got[1].header)
	}
	for _, bad := range []string{"a\r\nX-Admin: 1", "a\nb", "a\x00b", "é", "a\u007fb"} {
		args, _ := json.Marshal(map[string]string{"tenant": bad})
		if got := value(t, cfg, string(args)); !strings.Contains(got, "/tenant: holds") {
			t.Errorf("%q: %s", bad, got)
		}
	}
	if n := len(s.got()); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

// traced is ctx inside a span.
func traced(ctx context.Context) context.Context {
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, SpanID: trace.SpanID{1, 2, 3, 4, 5, 6, 7, 8}, TraceFlags: trace.FlagsSampled,
	}))
}
