package gemini

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/model/fakellm"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve opens the adapter against h.
func serve(t *testing.T, h http.Handler, change ...func(*Config)) *llm {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	cfg := Config{Model: "gemini-test", APIKey: "s3cret-key", BaseURL: server.URL, HTTPClient: &http.Client{Transport: transport}, Retry: Retry{InitialDelay: time.Millisecond}}
	for _, c := range change {
		c(&cfg)
	}
	m, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m.(*llm)
}

// play opens the adapter against a server that plays the script.
func play(t *testing.T, script string, change ...func(*Config)) (*llm, *fakellm.Server) {
	t.Helper()
	s, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	fake, err := fakellm.New(fakellm.Config{Script: s})
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, fake, change...), fake
}

func caseFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "cases", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func userSays(text string) *genai.Content { return genai.NewContentFromText(text, genai.RoleUser) }

// final asks and returns the final response.
func final(t *testing.T, m model.LLM, req *model.LLMRequest, stream bool) *model.LLMResponse {
	t.Helper()
	var out *model.LLMResponse
	for r, err := range m.GenerateContent(t.Context(), req, stream) {
		if err != nil {
			t.Fatal(err)
		}
		if !r.Partial {
			out = r
		}
	}
	return out
}

// fails asks and returns the error; a final response fails the test.
func fails(t *testing.T, m model.LLM, req *model.LLMRequest, stream bool) error {
	t.Helper()
	var out error
	for r, err := range m.GenerateContent(t.Context(), req, stream) {
		if err == nil && !r.Partial {
			t.Fatalf("a final response came: %+v", r)
		}
		out = err
	}
	if out == nil {
		t.Fatal("no error came")
	}
	return out
}
