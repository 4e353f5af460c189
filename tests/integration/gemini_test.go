package integration

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/model/fakellm"
	"github.com/toolfabric/toolfabric/toolkit/model/gemini"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
)

// provider is a server that plays a script over Gemini's protocol, with the adapter that asks it.
type provider struct {
	t *testing.T
	*fakellm.Server
	llm model.LLM
	log *bytes.Buffer // of the adapter; read it after the run
}

// provide starts a provider. before, when it is not nil, is called for each request before it is answered.
func provide(t *testing.T, script []byte, before func(*http.Request)) *provider {
	t.Helper()
	s, err := scripted.Parse(script)
	if err != nil {
		t.Fatal(err)
	}
	fake, err := fakellm.New(fakellm.Config{Script: s})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil {
			before(r)
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	p := &provider{t: t, Server: fake, log: &bytes.Buffer{}}
	p.llm, err = gemini.New(t.Context(), gemini.Config{
		Model: "gemini-2.5-flash", APIKey: "none", BaseURL: server.URL, HTTPClient: &http.Client{Transport: transport},
		Retry: gemini.Retry{InitialDelay: time.Millisecond}, Logger: slog.New(slog.NewTextHandler(p.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// hand reads a file of a handed case.
func hand(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "hand", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// body is the nth request, from 1, decoded into v.
func (p *provider) body(n int, v any) {
	p.t.Helper()
	all := p.Requests()
	if len(all) < n {
		p.t.Fatalf("%d requests came, want at least %d", len(all), n)
	}
	if all[n-1].Status != http.StatusOK {
		p.t.Fatalf("request %d was refused: %s", n, all[n-1].Error)
	}
	if err := json.Unmarshal(all[n-1].Body, v); err != nil {
		p.t.Fatalf("request %d: %v", n, err)
	}
}

// wantCount checks how many requests came, and that none was refused.
func (p *provider) wantCount(n int) {
	p.t.Helper()
	all := p.Requests()
	if len(all) != n {
		p.t.Errorf("%d requests came, want %d", len(all), n)
	}
	for i, r := range all {
		if r.Status != http.StatusOK {
			p.t.Errorf("request %d was refused: %s", i+1, r.Error)
		}
	}
}

// wantContents compares the contents of the nth request.
func (p *provider) wantContents(n int, want string) {
	p.t.Helper()
	var body struct{ Contents any }
	p.body(n, &body)
	var w any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		p.t.Fatal(err)
	}
	if d := cmp.Diff(w, body.Contents); d != "" {
		p.t.Errorf("contents of request %d (-want +got):\n%s", n, d)
	}
}

// response is what the nth request says about the kth call of its last content.
func (p *provider) response(n, k int) map[string]any {
	p.t.Helper()
	var body struct {
		Contents []struct {
			Role  string
			Parts []struct {
				FunctionResponse *struct{ Response any }
			}
		}
	}
	p.body(n, &body)
	last := body.Contents[len(body.Contents)-1]
	if k >= len(last.Parts) || last.Parts[k].FunctionResponse == nil {
		p.t.Fatalf("request %d has no response %d", n, k)
	}
	object, ok := last.Parts[k].FunctionResponse.Response.(map[string]any)
	if !ok {
		p.t.Fatalf("response %d of request %d is no object: %v", k, n, last.Parts[k].FunctionResponse.Response)
	}
	return object
}
