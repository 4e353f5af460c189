package fakellm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func server(t *testing.T, script string, change ...func(*Config)) *Server {
	t.Helper()
	s, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Script: s}
	for _, c := range change {
		c(&cfg)
	}
	out, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// post asks once, in memory.
func post(s *Server, method, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/v1beta/models/m:"+method, strings.NewReader(body))
	r.Header.Set("x-goog-api-key", "k")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

const (
	hello = `{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}`
	plain = "generateContent"
	sse   = "streamGenerateContent?alt=sse"
)

func TestRequestsThatGeminiRefusesAreRefused(t *testing.T) {
	contents := func(s string) string { return `{"contents":[` + s + `]}` }
	declare := func(s string) string {
		return `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"tools":[{"functionDeclarations":[` + s + `]}]}`
	}
	const (
		u     = `{"role":"user","parts":[{"text":"x"}]}`
		calls = u + `,{"role":"model","parts":[{"functionCall":{"name":"a","id":"1"}},{"functionCall":{"name":"b"}}]}`
		ra    = `{"functionResponse":{"name":"a","id":"1","response":{"x":1}}}`
		rb    = `{"functionResponse":{"name":"b","response":{"x":1}}}`
	)
	for _, c := range []struct{ name, body, says string }{
		{"empty body", "", "body is empty"},
		{"no JSON", "{", "Invalid JSON"},
		{"wrong type", `{"contents":7}`, "Invalid JSON"},
		{"unknown field", `{"contents":[],"content":[]}`, `Unknown name "content"`},
		{"no contents", `{}`, "contents is not specified"},
		{"empty content", contents(`{"role":"user","parts":[]}`), "parts must not be empty"},
		{"empty part", contents(`{"role":"user","parts":[{}]}`), "required oneof field"},
		{"unknown role", contents(`{"role":"tool","parts":[{"text":"x"}]}`), "valid role"},
		{"model has the last word", contents(u + `,{"role":"model","parts":[{"text":"x"}]}`), "last content"},
		{"calls of the user", contents(`{"role":"user","parts":[{"functionCall":{"name":"a"}}]}`), "come from the model"},
		{"too few answers", contents(calls + `,{"role":"user","parts":[` + ra + `]}`), "number of function response parts (1) is equal to the number of function call parts of the function call turn (2)"},
		{"too many answers", contents(calls + `,{"role":"user","parts":[` + ra + `,` + rb + `,` + rb + `]}`), "number of function response parts"},
		{"answers to nothing", contents(u + `,{"role":"user","parts":[` + rb + `]}`), "number of function response parts"},
		{"no answers", contents(calls + `,` + u), "number of function response parts"},
		{"answers in another order", contents(calls + `,{"role":"user","parts":[` + rb + `,` + ra + `]}`), "function response 0 is for"},
		{"answer without response", contents(u + `,{"role":"model","parts":[{"functionCall":{"name":"b"}}]},{"role":"user","parts":[{"functionResponse":{"name":"b"}}]}`), "has no response"},
		{"illegal name", declare(`{"name":"a b"}`), "Invalid function name"},
		{"long name", declare(`{"name":"` + strings.Repeat("a", 129) + `"}`), "Invalid function name"},
		{"name twice", declare(`{"name":"a"},{"name":"a"}`), "Duplicate function declaration"},
		{"both schemas", declare(`{"name":"a","parameters":{"type":"OBJECT"},"parametersJsonSchema":{"type":"object"}}`), "only one of parameters"},
		{"typed: unknown keyword", declare(`{"name":"a","parameters":{"type":"OBJECT","additionalProperties":false}}`), `Unknown name "additionalProperties"`},
		{"typed: type list", declare(`{"name":"a","parameters":{"type":"OBJECT","properties":{"x":{"type":["STRING"]}}}}`), "cannot start list"},
		{"typed: enum of integers", declare(`{"name":"a","parameters":{"type":"OBJECT","properties":{"x":{"type":"INTEGER","enum":["1"]}}}}`), "only allowed for STRING"},
		{"typed: bare array", declare(`{"name":"a","parameters":{"type":"OBJECT","properties":{"x":{"type":"ARRAY"}}}}`), "missing field"},
		{"JSON: no object", declare(`{"name":"a","parametersJsonSchema":{"type":"string"}}`), "must describe an object"},
		{"JSON: $schema", declare(`{"name":"a","parametersJsonSchema":{"type":"object","$schema":"x"}}`), "$schema is not supported"},
		{"JSON: $ref", declare(`{"name":"a","parametersJsonSchema":{"type":"object","properties":{"x":{"anyOf":[{"$ref":"#"}]}}}}`), "$ref is not supported"},
		{"JSON: enum of integers", declare(`{"name":"a","parametersJsonSchema":{"type":"object","properties":{"x":{"enum":[1]}}}}`), "only allowed for STRING"},
		{"JSON: required of nothing", declare(`{"name":"a","parametersJsonSchema":{"type":"object","required":["x"]}}`), "property is not defined"},
		{"JSON: bare array", declare(`{"name":"a","parametersJsonSchema":{"type":"object","properties":{"x":{"type":"array"}}}}`), "missing field"},
		{"no rule", hello[:len(hello)-6] + `o"}]}]}`, "no rule of the script"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := server(t, `rules: [{user: ^x, text: y}]`)
			for _, method := range []string{plain, sse} {
				w := post(s, method, c.body)
				var e struct {
					Error struct {
						Code            int
						Message, Status string
					}
				}
				if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
					t.Fatalf("%v in %s", err, w.Body)
				}
				if w.Code != 400 || e.Error.Code != 400 || e.Error.Status != "INVALID_ARGUMENT" || !strings.Contains(e.Error.Message, c.says) {
					t.Errorf("got %d %s, want 400 saying %q", w.Code, w.Body, c.says)
				}
			}
			if got := s.Requests(); len(got) != 2 || got[1].Status != 400 || !strings.Contains(got[1].Error, c.says) {
				t.Errorf("recorded %+v", got)
			}
		})
	}
}

func TestKeyAndPathAreChecked(t *testing.T) {
	s := server(t, `rules: [{text: y}]`)
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"POST", "/v1beta/models/m:generateContent", 403},
		{"POST", "/v1beta/models/m:generateContent?key=k", 200},
		{"POST", "/v1beta/models/m:streamGenerateContent?key=k", 400},
		{"GET", "/v1beta/models/m:generateContent?key=k", 404},
		{"POST", "/v1beta/models/m:countTokens?key=k", 404},
		{"POST", "/v1/chat/completions", 404},
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(hello)))
		if w.Code != c.status {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, w.Code, c.status)
		}
	}
}

func TestSignatureMustComeBack(t *testing.T) {
	const signed = `turns: [{parts: [{functionCall: {name: a, args: {n: 1}}, thoughtSignature: AP8Q+/8=}, {functionCall: {name: b}}], finishReason: STOP}, {parts: [{text: ok}], finishReason: STOP}]`
	back := func(a, b string) string {
		return `{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"a","args":{"n":1}}` + a + `},{"functionCall":{"name":"b"}` + b + `}]},
			{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"x":1}}},{"functionResponse":{"name":"b","response":{"x":1}}}]}]}`
	}
	for _, c := range []struct {
		name, body, says string
	}{
		{"as given", back(`,"thoughtSignature":"AP8Q+/8="`, ``), ""},
		{"dropped", back(``, ``), "missing a thought_signature"},
		{"changed", back(`,"thoughtSignature":"AP8Q+/4="`, ``), "not valid"},
		{"invented", back(`,"thoughtSignature":"AP8Q+/8="`, `,"thoughtSignature":"AP8Q+/8="`), "not valid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := server(t, signed)
			if w := post(s, plain, hello); w.Code != 200 {
				t.Fatal(w.Body)
			}
			w := post(s, plain, c.body)
			if (w.Code == 200) != (c.says == "") || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
}

func TestStreamIsServerSentEvents(t *testing.T) {
	s := server(t, `rules: [{text: one two, chunks: 2}]`)
	w := post(s, sse, hello)
	var texts []string
	lines := bufio.NewScanner(w.Body)
	var usage bool
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Candidates []struct {
				Content      struct{ Parts []struct{ Text string } }
				FinishReason string
			}
			UsageMetadata *struct{ TotalTokenCount int }
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		text := e.Candidates[0].FinishReason
		for _, p := range e.Candidates[0].Content.Parts {
			text += p.Text
		}
		texts, usage = append(texts, text), e.UsageMetadata != nil
	}
	if got := fmt.Sprint(texts); got != "[one  two STOP]" || !usage {
		t.Errorf("events %q, usage in the last: %v", texts, usage)
	}
	if got := w.Header().Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %q", got)
	}
}

func TestFaultNamesItsDelay(t *testing.T) {
	s := server(t, `rules: [{text: y, error: {status: 429, message: slow down, retry_after: 1500ms, times: 1}}]`)
	w := post(s, plain, hello)
	if w.Code != 429 || w.Header().Get("Retry-After") != "2" {
		t.Errorf("got %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	if b := w.Body.String(); !strings.Contains(b, `"retryDelay":"1.5s"`) || !strings.Contains(b, "RESOURCE_EXHAUSTED") || !strings.Contains(b, "slow down") {
		t.Errorf("got %s", b)
	}
	if w := post(s, plain, hello); w.Code != 200 {
		t.Errorf("the second time: %d", w.Code)
	}
}

func TestCutAnswerBreaksTheConnection(t *testing.T) {
	s := server(t, `rules: [{text: one two, chunks: 2, cut: true}]`)
	web := httptest.NewServer(s)
	defer web.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for _, method := range []string{sse, plain + "?x=1"} {
		resp, err := (&http.Client{Transport: transport}).Post(web.URL+"/v1beta/models/m:"+method+"&key=k", "application/json", strings.NewReader(hello))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !errors.Is(err, io.ErrUnexpectedEOF) || bytes.Contains(b, []byte("STOP\"}]")) {
			t.Errorf("%s: got %v after %q", method, err, b)
		}
		if method == sse && !bytes.Contains(b, []byte(" two")) {
			t.Errorf("what came before the cut is not there: %q", b)
		}
	}
}

func TestRequestsAreCountedAndBounded(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger")
	s := server(t, `rules: [{name: greet, user: hello, text: y}]`, func(c *Config) { c.Keep, c.Ledger = 2, ledger })
	post(s, plain, hello)
	post(s, sse, hello)
	post(s, plain, "")
	got := s.Requests()
	if s.Count() != 3 || len(got) != 2 || got[0].N != 2 || !got[0].Stream || string(got[0].Body) != hello || got[1].Body != nil {
		t.Errorf("counted %d, kept %+v", s.Count(), got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"n":1,"model":"m","stream":false,"status":200,"rule":"greet"}
{"n":2,"model":"m","stream":true,"status":200,"rule":"greet"}
{"n":3,"model":"m","stream":false,"status":400,"error":"the request body is empty: contents is required"}
`
	if string(b) != want {
		t.Errorf("the ledger is\n%s", b)
	}
	post(s, plain, hello)
	if s.Count() != 4 {
		t.Error("a closed ledger stopped the counting")
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	s, err := scripted.Parse([]byte(`rules: [{text: y}]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []Config{{}, {Script: s, Ledger: t.TempDir()}} {
		if _, err := New(cfg); protocol.CodeOf(err) != protocol.CodeUsage {
			t.Errorf("%+v: got %v", cfg, err)
		}
	}
}

// FuzzRequest checks that no request breaks the server.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(hello))
	f.Add([]byte(`{"contents":[{"parts":[null]}],"tools":[{"functionDeclarations":[{"name":"a","parametersJsonSchema":{"type":"object","required":[1]}}]}]}`))
	s, err := scripted.Parse([]byte(`rules: [{text: y}]`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		server, err := New(Config{Script: s})
		if err != nil {
			t.Fatal(err)
		}
		if w := post(server, plain, string(body)); w.Code != 200 && w.Code != 400 {
			t.Errorf("status %d", w.Code)
		}
	})
}
