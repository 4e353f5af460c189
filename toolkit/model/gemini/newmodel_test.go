package gemini

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

func TestNewModelTakesTheSettingsOfADK(t *testing.T) {
	requests := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- r
		_, _ = w.Write([]byte(`{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}]}`))
	}))
	defer server.Close()
	m, err := NewModel(t.Context(), "gemini-x", &genai.ClientConfig{APIKey: "k", HTTPOptions: genai.HTTPOptions{
		BaseURL: server.URL, Headers: http.Header{"X-Team": {"tools"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range m.GenerateContent(t.Context(), &model.LLMRequest{Contents: []*genai.Content{genai.NewContentFromText("hello", genai.RoleUser)}}, false) {
		if err != nil {
			t.Fatal(err)
		}
	}
	asked := <-requests
	if m.Name() != "gemini-x" || asked.Header.Get("X-Team") != "tools" || asked.Header.Get("X-Goog-Api-Key") != "k" {
		t.Errorf("%s asked with %v", m.Name(), asked.Header)
	}
}

func TestNewModelRefusesVertex(t *testing.T) {
	for name, cfg := range map[string]*genai.ClientConfig{
		"backend": {Backend: genai.BackendVertexAI}, "project": {Project: "p"},
	} {
		if _, err := NewModel(t.Context(), "gemini-x", cfg); protocol.CodeOf(err) != protocol.CodeUnsupported {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
	if _, err := NewModel(t.Context(), "gemini-x", nil); protocol.CodeOf(err) != protocol.CodeUnsupported {
		t.Errorf("environment: %v", err)
	}
	if _, err := NewModel(t.Context(), "gemini-x", &genai.ClientConfig{Backend: genai.BackendGeminiAPI, APIKey: "k"}); err != nil {
		t.Errorf("a backend that is named counts: %v", err)
	}
}
