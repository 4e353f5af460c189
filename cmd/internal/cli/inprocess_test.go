package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

func TestWrongCredentialsExitWith3(t *testing.T) {
	s := natstest.Start(t, natstest.Auth(func(o *server.Options) { o.Username, o.Password = "boss", "secret" }))
	code, stdout, stderr := command(t, "", "tools", "--nats", s.URL())
	if code != exitAuth || stdout != "" || !strings.Contains(stderr, "--creds") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	signedIn := strings.Replace(s.URL(), "nats://", "nats://boss:secret@", 1)
	code, stdout, stderr = command(t, "", "doctor", "--nats", signedIn)
	if code != exitOK || strings.Contains(stdout+stderr, "secret") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// waits is a stderr that tells when a text was written to it.
type waits struct {
	mu   sync.Mutex
	text string
	said chan struct{}
	buf  bytes.Buffer
}

func (w *waits) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := strings.Contains(w.buf.String(), w.text)
	w.buf.Write(p)
	if !before && strings.Contains(w.buf.String(), w.text) {
		close(w.said)
	}
	return len(p), nil
}

func TestServingEndsWhenTheCredentialsAreRevoked(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		up   string
	}{
		"coordinator": {[]string{"coordinator"}, "coordinator is up"},
		"worker":      {[]string{"worker", "exec", "--name", "now", "--description", "Tells the time", "--", "date"}, "waiting for a coordinator"},
	} {
		t.Run(name, func(t *testing.T) {
			var password atomic.Value
			password.Store("secret")
			s := natstest.Start(t, natstest.Auth(func(o *server.Options) { o.Username, o.Password = "boss", password.Load().(string) }))
			signedIn := strings.Replace(s.URL(), "nats://", "nats://boss:secret@", 1)
			provisioned(t, s, signedIn)
			stderr := &waits{text: c.up, said: make(chan struct{})}
			code := make(chan int, 1)
			go func() {
				code <- Main(t.Context(), append([]string{"--nats", signedIn}, c.args...), strings.NewReader(""), io.Discard, stderr)
			}()
			select {
			case <-stderr.said:
			case got := <-code:
				t.Fatalf("exit %d: %s", got, stderr.buf.String())
			}
			password.Store("changed")
			s.Restart(t)
			if got := <-code; got != exitAuth {
				t.Errorf("exit %d: %s", got, stderr.buf.String())
			}
		})
	}
}

func provisioned(t *testing.T, s *natstest.Server, url string) {
	t.Helper()
	if err := natswire.Provision(t.Context(), s.Dial(t, natswire.Config{URL: url}), natswire.ProvisionConfig{}); err != nil {
		t.Fatal(err)
	}
}

func TestFakeLLMServesUntilItIsInterrupted(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(script, []byte("rules:\n  - user: '.*'\n    text: 'Hello.'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	stdout, out := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- Main(ctx, []string{"fake-llm", "--script", script}, strings.NewReader(""), out, io.Discard)
		out.Close()
	}()
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	body := `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSpace(url)+"/v1beta/models/m:generateContent", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-goog-api-key", "any")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Contains(answer, []byte("Hello.")) {
		t.Errorf("%s, %v", answer, err)
	}
	interrupt()
	if got := <-code; got != exitOK {
		t.Errorf("exit %d", got)
	}
}
