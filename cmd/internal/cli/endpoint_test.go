package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

// served runs a command beside the test until it says text, and ends it with the test.
func served(t *testing.T, text string, args ...string) {
	t.Helper()
	stderr := &waits{text: text, said: make(chan struct{})}
	code := make(chan int, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() { code <- Main(ctx, args, strings.NewReader(""), io.Discard, stderr) }()
	t.Cleanup(func() {
		stop()
		<-code
	})
	select {
	case <-stderr.said:
	case got := <-code:
		code <- got
		t.Fatalf("%v: exit %d: %s", args, got, stderr.buf.String())
	}
}

func TestEndpointsAreServedAndCalled(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"asked":"`+r.Method+" "+r.RequestURI+`","key":"`+r.Header.Get("X-Key")+`"}`)
	}))
	t.Cleanup(api.Close)
	document := filepath.Join(t.TempDir(), "pets.yaml")
	if err := os.WriteFile(document, []byte(`openapi: 3.0.0
security: [{key: []}]
paths:
  /pets/{id}: {delete: {operationId: removePet, parameters: [{name: id, in: path, required: true, schema: {type: integer}}]}}
  /photos: {put: {operationId: setPhoto, requestBody: {required: true, content: {image/png: {}}}}}
components: {securitySchemes: {key: {type: apiKey, in: header, name: X-Key}}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TF_TEST_KEY", "k3y-of-pets")
	nats := natstest.Start(t).URL()
	served(t, "coordinator is up", "--nats", nats, "coordinator")
	served(t, `"serving","tool":"weather"`, "--nats", nats, "worker", "http", "--name", "weather", "--description", "Tells the weather", "--url", api.URL+"/{city}?u={units}", "--allow", "127.0.0.1")
	served(t, `"serving","tool":"pets_removePet"`, "--nats", nats, "worker", "openapi", "--document", document, "--base-url", api.URL+"/v1", "--prefix", "pets",
		"--credential", "key=${env:TF_TEST_KEY}", "--allow", "127.0.0.1", "--effect", "removePet=at_most_once")
	for args, want := range map[string]string{
		`weather {"city":"São Paulo","units":"C&F"}`: `"asked":"GET /S%C3%A3o%20Paulo?u=C%26F"`,
		`pets_removePet {"id":7}`:                    `"asked":"DELETE /v1/pets/7"`,
	} {
		name, in, _ := strings.Cut(args, " ")
		code, stdout, stderr := command(t, "", "--nats", nats, "call", name, "--args", in, "--output", "json")
		for strings.Contains(stderr, "unknown_tool") { // it is served before everybody knows of it
			if err := natswire.Sleep(t.Context(), natswire.SystemClock{}, 20*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr = command(t, "", "--nats", nats, "call", name, "--args", in, "--output", "json")
		}
		if plain := strings.NewReplacer(" ", "", "\n", "", `\u0026`, "&").Replace(stdout); code != exitOK || !strings.Contains(plain, strings.ReplaceAll(want, " ", "")) || strings.Contains(stdout+stderr, "k3y") {
			t.Errorf("%s: exit %d, %s, %s", args, code, stdout, stderr)
		}
	}
}
