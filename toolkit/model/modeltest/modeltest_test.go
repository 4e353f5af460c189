package modeltest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/model/fakellm"
	"github.com/toolfabric/toolfabric/toolkit/model/gemini"
	"github.com/toolfabric/toolfabric/toolkit/model/modeltest"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestScripted(t *testing.T) {
	modeltest.Run(t, func(_ *testing.T, s *scripted.Script) model.LLM { return scripted.New("scripted", s) })
}

func TestGeminiAgainstFake(t *testing.T) {
	modeltest.Run(t, func(t *testing.T, s *scripted.Script) model.LLM {
		fake, err := fakellm.New(fakellm.Config{Script: s})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(fake)
		t.Cleanup(server.Close)
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		m, err := gemini.New(t.Context(), gemini.Config{
			Model: "gemini-test", APIKey: "a-key", BaseURL: server.URL, HTTPClient: &http.Client{Transport: transport},
			Retry: gemini.Retry{InitialDelay: time.Millisecond},
		})
		if err != nil {
			t.Fatal(err)
		}
		return m
	})
}
