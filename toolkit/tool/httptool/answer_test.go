package httptool_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/httptool"
)

func TestWhatIsAnswered(t *testing.T) {
	big := strings.Repeat("é", 600)
	for _, c := range []struct {
		what, kind, body string
		status           int
		want             string
	}{
		{"JSON", "application/json; charset=utf-8", ` {"n":9007199254740993,"t":"<é>"} `, 200, `{"n":9007199254740993,"t":"\u003cé\u003e"}`},
		{"a list", "application/json", `[1,2]`, 200, `{"result":[1,2]}`},
		{"JSON of a kind", "application/problem+json", `{"a":1}`, 200, `{"a":1}`},
		{"what is no JSON", "application/json", `{"a":1,}`, 200, `{"result":"{\"a\":1,}"}`},
		{"a key twice", "application/json", `{"a":1,"a":2}`, 200, `{"result":"{\"a\":1,\"a\":2}"}`},
		{"text", "text/plain", `{"a":1}`, 200, `{"result":"{\"a\":1}"}`},
		{"another charset", "text/plain; charset=iso-8859-1", "S\xe3o", 200, `{"result":"São"}`},
		{"an unknown charset", "text/plain; charset=klingon", "S\xe3o", 200, `{"result":"S` + "\uFFFD" + `o"}`},
		{"XML", "application/atom+xml", "<a/>", 200, `{"result":"\u003ca/\u003e"}`},
		{"no type, JSON", "", `{"a":1}`, 200, `{"a":1}`},
		{"no type, text", "", `hello`, 200, `{"result":"hello"}`},
		{"no type, bytes", "", "\xff\xfe\x00", 200, `{"error":"HTTP 200, and the response is bytes of no declared type, which this tool does not answer: it answers JSON and text"}`},
		{"an image", "image/png", "\x89PNG", 200, `{"error":"HTTP 200, and the response is image/png, which this tool does not answer: it answers JSON and text"}`},
		{"an image that is wanted", "image/gif", "GIF8", 200, `{"result":"data:image/gif;base64,R0lGOA=="}`},
		{"audio of a wanted family", "audio/ogg", "OggS", 200, `{"result":"data:audio/ogg;base64,T2dnUw=="}`},
		{"too much of it", "image/gif", strings.Repeat("G", 2000), 200, `{"error":"HTTP 200, and the response is image/gif of more than 1000 bytes"}`},
		{"long text", "text/plain", big, 200, `{"result":"` + strings.Repeat("é", 500) + `\n[cut after 1000 bytes; the response goes on]"}`},
		{"long text of no type", "", big, 200, `{"result":"` + strings.Repeat("é", 500) + `\n[cut after 1000 bytes; the response goes on]"}`},
		{"nothing", "", "", 204, `{"status":204}`},
		{"an error", "application/json", `{"reason":"no such city"}`, 404, `{"error":"HTTP 404 Not Found: {\"reason\":\"no such city\"}"}`},
		{"an error in bytes", "image/png", "\x89PNG", 500, `{"error":"HTTP 500 Internal Server Error"}`},
		{"a long error", "text/plain", strings.Repeat("x", 5000), 422, `{"error":"HTTP 422 Unprocessable Entity: ` + strings.Repeat("x", 2048) + ` ..."}`},
		{"an unknown status", "text/plain", "odd", 799, `{"error":"HTTP 799: odd"}`},
	} {
		s := record(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			if c.kind != "" {
				w.Header().Set("Content-Type", c.kind)
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		if got := value(t, httptool.Config{URL: s.URL, MaxResponse: 1000, Binary: []string{"image/gif", "audio/*"}}, `{}`); got != c.want {
			t.Errorf("%s: got %s, want %s", c.what, got, c.want)
		}
	}
}

func TestHeadAnswersWhatItLearns(t *testing.T) {
	s := record(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		w.Header().Set("Content-Length", "12345")
		w.Header().Set("ETag", `"v1"`)
	})
	if got := value(t, httptool.Config{Method: "HEAD", URL: s.URL}, `{}`); got != `{"content_length":"12345","content_type":"image/png","etag":"\"v1\"","status":200}` {
		t.Error(got)
	}
}

// A small body that decompresses to a large one costs what the limit allows.
func TestBombsEndAtTheLimit(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	zeros := bytes.Repeat([]byte("0"), 1<<20)
	for range 8 {
		_, _ = z.Write(zeros)
	}
	z.Close()
	for _, c := range []struct{ kind, coding, want string }{
		{"application/json", "gzip", "is JSON of more than 262144 bytes"},
		{"text/plain", "gzip", "cut after 262144 bytes"},
		{"text/plain", "br", "coded as"},
		{"text/plain", "gzip, gzip", "coded as"},
	} {
		s := record(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			w.Header().Set("Content-Encoding", c.coding)
			_, _ = w.Write(bomb.Bytes())
		})
		if got := value(t, httptool.Config{URL: s.URL}, `{}`); !strings.Contains(got, c.want) || len(got) > 300<<10 {
			t.Errorf("%s in %s: %d bytes: %.200s", c.kind, c.coding, len(got), got)
		}
	}
	endless := record(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for {
			if _, err := w.Write(zeros); err != nil {
				return
			}
		}
	})
	if got := value(t, httptool.Config{URL: endless.URL}, `{}`); !strings.Contains(got, "cut after 262144 bytes") {
		t.Errorf("%.200s", got)
	}
	headers := record(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 200<<10))
		_, _ = io.WriteString(w, "ok")
	})
	if got := value(t, httptool.Config{URL: headers.URL}, `{}`); !strings.Contains(got, `{"error":`) {
		t.Errorf("%.200s", got)
	}
}

// A server that sends a byte now and then holds a call no longer than its timeout.
func TestASlowServerEndsWithTheTimeout(t *testing.T) {
	drip := func(where string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			if where == "body" {
				w.WriteHeader(http.StatusOK)
			}
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-r.Context().Done():
					return
				case <-tick.C:
					if where == "body" {
						_, _ = io.WriteString(w, "x")
						_ = http.NewResponseController(w).Flush()
					}
				}
			}
		}
	}
	for _, where := range []string{"header", "body"} {
		s := record(t, drip(where))
		r, err := run(t, t.Context(), made(t, httptool.Config{URL: s.URL, Timeout: 200 * time.Millisecond}), `{}`)
		if err != nil || r.Code != protocol.CodeExpired {
			t.Errorf("%s: %s %s, %v", where, r.Code, r.Value, err)
		}
	}
}

func TestACancelledCallEndsItsRequest(t *testing.T) {
	ended, began := make(chan struct{}), make(chan struct{})
	s := record(t, func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(ended)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	r, err := run(t, ctx, made(t, httptool.Config{URL: s.URL}), `{}`)
	if err != nil || r.Outcome != protocol.OutcomeCancelled {
		t.Errorf("%s %s, %v", r.Outcome, r.Value, err)
	}
	<-ended
}

func TestCredentialsStayWhereTheyBelong(t *testing.T) {
	t.Setenv("HTTPTOOL_TEST_KEY", `s3cr3t/k"y+1`)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("f1rst-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := record(t, func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		if r.URL.Path == "/refused" {
			status = http.StatusForbidden
		}
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(status)
		user, password, _ := r.BasicAuth()
		fmt.Fprintf(w, "%s %s %s %s %s %q", r.RequestURI, r.URL.Query().Get("key"), r.Header.Get("X-Token"), r.Header.Get("Authorization"), user, password)
	})
	cfg := httptool.Config{
		Name: "x", Description: "d", URL: s.URL + "/{page}?key=${env:HTTPTOOL_TEST_KEY}", Headers: map[string]string{"X-Token": "Token ${file:token}"},
		Basic: "shop:${env:HTTPTOOL_TEST_KEY}", Dir: filepath.Dir(file),
	}
	ht := made(t, cfg)
	leaks := func(where, text string) {
		t.Helper()
		for _, s := range []string{"s3cr3t", "f1rst", "s3c0nd", "c2hvcDpzM2Ny", "czNjcjN0"} {
			if strings.Contains(text, s) {
				t.Errorf("%s shows %s: %s", where, s, text)
			}
		}
	}
	for i, token := range []string{"f1rst-token", "s3c0nd-token"} {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, page := range []string{"echo", "refused", ".."} {
			r, err := run(t, t.Context(), ht, `{"page":"`+page+`"}`)
			if err != nil {
				t.Fatal(err)
			}
			leaks(page, string(r.Value))
			if page != ".." && !strings.Contains(string(r.Value), "[secret]") {
				t.Errorf("%s: %s", page, r.Value)
			}
		}
		if got := s.got()[2*i]; got.header.Get("X-Token") != "Token "+token || !strings.Contains(got.line, "key=s3cr3t%2Fk%22y%2B1") {
			t.Errorf("the server got %+v", got)
		}
	}
	d := ht.(tool.Runnable).Declaration()
	leaks("the declaration", fmt.Sprintf("%s %s %s", d.Name, d.Description, d.ParametersJsonSchema))
	s.Close()
	r, err := run(t, t.Context(), ht, `{"page":"echo"}`)
	leaks("a connection error", fmt.Sprint(string(r.Value), err))
	for ref, want := range map[string]string{
		"${env:HTTPTOOL_TEST_NOPE}": "HTTPTOOL_TEST_NOPE, which a credential is taken from, is not set", "${file:nope}": "the file nope cannot be read", "${env:HTTPTOOL_TEST_SHORT}": "has 2 bytes",
		"${env:HTTPTOOL_TEST_LINES}": "line end", "${vault:x}": "is no credential",
	} {
		t.Setenv("HTTPTOOL_TEST_SHORT", "ab")
		t.Setenv("HTTPTOOL_TEST_LINES", "abc\ndef")
		_, err := httptool.New(httptool.Config{Name: "x", URL: "https://example.com/", Headers: map[string]string{"Authorization": ref}, Dir: filepath.Dir(file)})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "abc") {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

// A credential that a cut goes through, or that is written with escapes, is taken out as well.
func TestHalfACredentialIsNotAnswered(t *testing.T) {
	const key = "s3cr3t-key-of-some-length"
	for name, c := range map[string]struct {
		kind, body string
		status     int
	}{
		"cut text":       {"text/plain", strings.Repeat("x", 90) + key + strings.Repeat("y", 100), 200},
		"a cut refusal":  {"text/plain", strings.Repeat("x", 2040) + key + strings.Repeat("y", 100), 403},
		"cut JSON":       {"application/json", `"` + strings.Repeat("x", 90) + key + strings.Repeat("y", 100) + `"`, 200},
		"escaped":        {"application/json", `{"a":["s3cr3t\u002dkey-of-some-length"],"s3cr3t-key\u002dof-some-length":1}`, 200},
		"escaped slowly": {"application/json", `["\u0073\u0033cr3t-key-of-some-length"]`, 200},
	} {
		s := record(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		got := value(t, httptool.Config{
			URL: s.URL, MaxResponse: 100, Headers: map[string]string{"X-Key": "${env:KEY}"}, LookupEnv: func(string) (string, bool) { return key, true },
		}, `{}`)
		for _, part := range []string{"s3cr", "3cr3t", `\u0073`, `\u002d`} {
			if strings.Contains(got, part) {
				t.Errorf("%s: %s shows in %s", name, part, got)
			}
		}
		if !strings.Contains(got, "[secret]") && name != "cut JSON" && name != "cut text" && name != "a cut refusal" {
			t.Errorf("%s: %s", name, got)
		}
	}
}
