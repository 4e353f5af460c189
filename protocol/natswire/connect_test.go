package natswire_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/natswire/embed"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

func wantCode(t *testing.T, err error, want protocol.Code, words ...string) {
	t.Helper()
	if got := protocol.CodeOf(err); got != want {
		t.Fatalf("got code %q (%v), want %q", got, err, want)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

// oldServer speaks just enough of the protocol to be connected to.
func oldServer(t *testing.T, version string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				fmt.Fprintf(c, "INFO {\"server_id\":\"OLD\",\"version\":%q,\"headers\":true,\"max_payload\":1048576}\r\n", version)
				for in := bufio.NewScanner(c); in.Scan(); {
					if in.Text() == "PING" {
						fmt.Fprint(c, "PONG\r\n")
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
	return "nats://" + l.Addr().String()
}

func TestOldServerIsRefused(t *testing.T) {
	_, err := natswire.Connect(t.Context(), natswire.Config{URL: oldServer(t, "2.10.22")})
	wantCode(t, err, protocol.CodeServerTooOld, "2.10.22", natswire.MinServerVersion)
}

func TestNobodyThereIsUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err = natswire.Connect(t.Context(), natswire.Config{URL: "nats://user:secret@" + l.Addr().String()})
	wantCode(t, err, protocol.CodeUnreachable, l.Addr().String(), "5 tries")
	if strings.Contains(err.Error(), "secret") {
		t.Fatalf("%q tells the password", err)
	}
}

func TestConnectStopsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = natswire.Connect(ctx, natswire.Config{URL: l.Addr().String()})
	wantCode(t, err, protocol.CodeCancelled)
}

func TestNoJetStreamIsNamed(t *testing.T) {
	s := natstest.Start(t, natstest.Auth(func(o *server.Options) {
		plain := server.NewAccount("PLAIN")
		o.Accounts = []*server.Account{plain}
		o.Users = []*server.User{{Username: "plain", Password: "pw", Account: plain}}
	}))
	_, err := natswire.Connect(t.Context(), natswire.Config{URL: withUser(s, "plain", "pw")})
	wantCode(t, err, protocol.CodeUnsupported, "JetStream")
}

func withUser(s *natstest.Server, user, password string) string {
	return strings.Replace(s.URL(), "://", "://"+user+":"+password+"@", 1)
}

func TestWrongPasswordIsAuthFailed(t *testing.T) {
	s := natstest.Start(t, natstest.Auth(func(o *server.Options) { o.Username, o.Password = "u", "right" }))
	_, err := natswire.Connect(t.Context(), natswire.Config{URL: withUser(s, "u", "wrong")})
	wantCode(t, err, protocol.CodeAuth)
	if strings.Contains(err.Error(), "wrong") {
		t.Fatalf("%q tells the password", err)
	}
}

func TestContextSaysWhereAndWho(t *testing.T) {
	s := natstest.Start(t, natstest.Auth(func(o *server.Options) { o.Username, o.Password = "u", "right" }))
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	path := filepath.Join(dir, "nats", "context", "dev.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"description":"x","url":%q,"user":"u","password":"right"}`, s.URL())
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dev", path} {
		c, err := natswire.Connect(t.Context(), natswire.Config{Context: name})
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	_, err := natswire.Connect(t.Context(), natswire.Config{Context: "none"})
	wantCode(t, err, protocol.CodeUsage, "none.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = natswire.Connect(t.Context(), natswire.Config{Context: "dev"})
	wantCode(t, err, protocol.CodeUsage, "not JSON")
}

func TestMissingCredentialsFileIsUsage(t *testing.T) {
	_, err := natswire.Connect(t.Context(), natswire.Config{Creds: filepath.Join(t.TempDir(), "none.creds")})
	wantCode(t, err, protocol.CodeUsage, "none.creds")
}

func TestInProcessNeedsNoPort(t *testing.T) {
	s, err := embed.Start(embed.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	if s.URL() != "" {
		t.Fatalf("it listens on %s", s.URL())
	}
	c, err := natswire.Connect(t.Context(), natswire.Config{InProcess: s.InProcess()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := natswire.Provision(t.Context(), c, natswire.ProvisionConfig{}); err != nil {
		t.Fatal(err)
	}
	d, err := c.Durability(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.ServerVersion != s.Version() || d.Replicas != 1 || d.Memory {
		t.Fatalf("durability is %+v", d)
	}
}
