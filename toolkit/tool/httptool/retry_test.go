package httptool_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/httptool"
)

func TestWhatIsTriedAgain(t *testing.T) {
	status, after := 0, ""
	s := record(t, func(w http.ResponseWriter, _ *http.Request) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
	})
	for _, c := range []struct {
		method string
		effect tool.Effect
		status int
		after  string
		again  bool
		pause  time.Duration
	}{
		{"GET", "", 503, "7", true, 7 * time.Second},
		{"GET", "", 429, "", true, 0},
		{"GET", "", 429, "soon", true, 0},
		{"GET", "", 429, "-1", true, 0},
		{"GET", "", 429, "3600", false, 0},
		{"GET", "", 502, "", true, 0},
		{"GET", "", 504, "", true, 0},
		{"GET", "", 500, "", false, 0},
		{"GET", "", 404, "", false, 0},
		{"GET", tool.AtMostOnce, 503, "1", false, 0},
		{"PUT", "", 503, "1", true, time.Second},
		{"DELETE", "", 429, "1", true, time.Second},
		{"POST", "", 503, "1", false, 0},
		{"POST", "", 429, "1", false, 0},
		{"POST", tool.Idempotent, 503, "1", true, time.Second},
		{"PATCH", "", 503, "1", false, 0},
	} {
		status, after = c.status, c.after
		r, err := run(t, t.Context(), made(t, httptool.Config{Method: c.method, URL: s.URL, Effect: c.effect}), `{}`)
		if again := err != nil; again != c.again || tool.RetryPause(err) != c.pause {
			t.Errorf("%+v: again %v after %s", c, again, tool.RetryPause(err))
		}
		if !strings.Contains(string(r.Value), "HTTP ") {
			t.Errorf("%+v: %s", c, r.Value)
		}
	}
	status, after = 503, time.Now().Add(20*time.Second).UTC().Format(http.TimeFormat)
	_, err := run(t, t.Context(), made(t, httptool.Config{URL: s.URL}), `{}`)
	if p := tool.RetryPause(err); p <= 0 || p > 20*time.Second {
		t.Errorf("until %s: a pause of %s", after, p)
	}
}

func TestTheEffectGoesByTheMethod(t *testing.T) {
	for method, want := range map[string]tool.Effect{
		"": tool.Read, "GET": tool.Read, "HEAD": tool.Read, "OPTIONS": tool.Read, "PUT": tool.Idempotent, "DELETE": tool.Idempotent, "POST": tool.AtMostOnce, "PATCH": tool.AtMostOnce,
	} {
		if got := made(t, httptool.Config{Method: method, URL: "https://example.com/"}).(tool.Configured).Settings().Effect; got != want {
			t.Errorf("%s: %s, want %s", method, got, want)
		}
	}
	if got := made(t, httptool.Config{Method: "POST", URL: "https://example.com/search", Effect: tool.Read}).(tool.Configured).Settings().Effect; got != tool.Read {
		t.Errorf("the operator's word does not count: %s", got)
	}
}

func TestTheIdempotencyKeyIsTheCallsID(t *testing.T) {
	s := record(t, nil)
	for _, c := range []struct {
		method string
		header map[string]string
		want   string
	}{
		{"GET", nil, ""}, {"POST", nil, "c1"}, {"PUT", nil, "c1"}, {"POST", map[string]string{"idempotency-KEY": "mine"}, "mine"},
	} {
		before := len(s.got())
		value(t, httptool.Config{Method: c.method, URL: s.URL, Headers: c.header}, `{}`)
		if got := s.got()[before].header.Values("Idempotency-Key"); strings.Join(got, ",") != c.want {
			t.Errorf("%s: %v, want %q", c.method, got, c.want)
		}
	}
}

// refuses is an address at which nobody listens.
func refuses(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String() + "/x"
}

func TestAConnectionThatFailedSentNothing(t *testing.T) {
	for _, effect := range []tool.Effect{tool.Read, tool.AtMostOnce} {
		r, err := run(t, t.Context(), made(t, httptool.Config{Method: "POST", URL: refuses(t), Effect: effect}), `{}`)
		if err == nil || !strings.Contains(string(r.Value), "nothing was sent") {
			t.Errorf("%s: %s, %v", effect, r.Value, err)
		}
	}
}

// hangsUp answers the first request of each connection, and closes the connection in the middle of the second.
func hangsUp(t *testing.T) (url string, requests *atomic.Int64) {
	t.Helper()
	requests = &atomic.Int64{}
	var on atomic.Int64
	s := record(t, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		if on.Add(1) == 1 {
			_, _ = io.WriteString(w, "ok")
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			conn.Close()
		}
	})
	return s.URL, requests
}

// net/http sends some requests a second time by itself when a kept connection breaks. A request that may have an effect is
// sent once, and the model is told that it may have been done.
func TestABrokenConnectionRepeatsNoEffect(t *testing.T) {
	for _, c := range []struct {
		method string
		effect tool.Effect
		args   string
		schema []byte
	}{
		{"POST", "", `{}`, nil}, {"POST", "own key", `{}`, nil}, {"POST", "", `{"a":1}`, object(`"a":{}`, ``)}, {"PATCH", "", `{}`, nil}, {"GET", tool.AtMostOnce, `{}`, nil}, {"DELETE", tool.AtMostOnce, `{}`, nil},
	} {
		url, requests := hangsUp(t)
		cfg := httptool.Config{Method: c.method, URL: url, Effect: c.effect, Schema: c.schema}
		if c.effect == "own key" {
			cfg.Effect, cfg.Headers = "", map[string]string{"Idempotency-Key": "mine", "X-Idempotency-Key": "mine"}
		}
		ht := made(t, cfg)
		if r, err := run(t, t.Context(), ht, c.args); err != nil || !strings.Contains(string(r.Value), "ok") {
			t.Fatalf("%s: %s, %v", c.method, r.Value, err)
		}
		r, err := run(t, t.Context(), ht, c.args)
		if err != nil || !strings.Contains(string(r.Value), "may have been done") || requests.Load() != 2 {
			t.Errorf("%s: %d requests, %s, %v", c.method, requests.Load(), r.Value, err)
		}
	}
	url, _ := hangsUp(t)
	ht := made(t, httptool.Config{URL: url, Effect: tool.Read})
	_, _ = run(t, t.Context(), ht, `{}`)
	if r, err := run(t, t.Context(), ht, `{}`); err == nil {
		t.Errorf("a read is not tried again: %s", r.Value)
	}
}

func TestConfigurationsThatCannotServeAreRefused(t *testing.T) {
	text := object(`"a":{"type":"string"},"b":{"type":"string"}`, `"a"`)
	for _, c := range []struct {
		cfg  httptool.Config
		want string
	}{
		{httptool.Config{Name: "a.b", URL: "https://e.test/"}, "a.b"},
		{httptool.Config{Method: "TRACE"}, `"TRACE" is none of GET`},
		{httptool.Config{Method: "get"}, `"get" is none of GET`},
		{httptool.Config{MaxResponse: -1}, "between 0 and"},
		{httptool.Config{MaxResponse: 1 << 30}, "between 0 and"},
		{httptool.Config{URL: "https://e.test/{c}", Schema: text}, "{c} names no property"},
		{httptool.Config{URL: "https://e.test/{b}?a={a}", Schema: text}, "among those that are required"},
		{httptool.Config{URL: "https://e.test/{a}", Schema: text}, "b of the schema goes nowhere: a GET has no body"},
		{httptool.Config{Method: "POST", URL: "https://e.test/{a}", Schema: text, Body: "none"}, "b of the schema goes nowhere"},
		{httptool.Config{Method: "POST", URL: "https://e.test/", Schema: text, Body: "{a}"}, "b of the schema goes nowhere"},
		{httptool.Config{Method: "POST", URL: "https://e.test/{a}", Schema: text, Body: "{a}"}, "stands in the URL"},
		{httptool.Config{Method: "POST", URL: "https://e.test/{a}", Schema: text, Body: "xml"}, `"xml" is none of json`},
		{httptool.Config{URL: "https://e.test/", Body: "json"}, "a GET has no body"},
		{httptool.Config{URL: "https://e.test/?o={o}", Schema: object(`"o":{"type":"object"}`, ``)}, "type object"},
		{httptool.Config{URL: "https://e.test/{o}", Schema: object(`"o":{"type":"array"}`, `"o"`)}, "type array"},
		{httptool.Config{URL: "https://e.test/?o={o}", Schema: []byte(`{"type":"array"}`)}, "names no property"},
		{httptool.Config{URL: "https://e.test/", Schema: []byte(`{"type":"object","properties":{"a":{"$ref":"http://x"}}}`), Method: "POST"}, "$ref"},
		{httptool.Config{Headers: map[string]string{"A b": "x"}}, "no name of a header"},
		{httptool.Config{Headers: map[string]string{"X": "a\r\nb"}}, "line end"},
		{httptool.Config{Headers: map[string]string{"host": "evil.test"}}, "Host: it is set by the request"},
		{httptool.Config{Headers: map[string]string{"content-length": "1"}}, "set by the request"},
		{httptool.Config{Headers: map[string]string{"transfer-encoding": "chunked"}}, "set by the request"},
		{httptool.Config{Headers: map[string]string{"x-a": "1", "X-A": "2"}}, "there twice"},
		{httptool.Config{Headers: map[string]string{"Authorization": "x"}, Basic: "a:b"}, "leave one out"},
		{httptool.Config{Basic: "${env:PATH}"}, "user:password"},
	} {
		if c.cfg.Name == "" {
			c.cfg.Name = "x"
		}
		if c.cfg.URL == "" {
			c.cfg.URL = "https://e.test/"
		}
		if _, err := httptool.New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.cfg, err, c.want)
		}
	}
}

func TestTheTraceGoesOn(t *testing.T) {
	s := record(t, nil)
	ctx := traced(t.Context())
	if r, err := run(t, ctx, made(t, httptool.Config{URL: s.URL}), `{}`); err != nil {
		t.Fatal(r, err)
	}
	if got := s.got()[0].header.Get("Traceparent"); got != "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01" {
		t.Errorf("traceparent %q", got)
	}
}
