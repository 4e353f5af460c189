package embed_test

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/natswire/embed"
)

// holdDir names the directory that this test binary holds when it runs as another process.
const holdDir = "EMBED_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdDir); dir != "" {
		s, err := embed.Start(embed.Config{Dir: dir})
		if err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Stdout.WriteString("held\n")
		os.Stdin.Read(make([]byte, 1)) // until the test closes it
		s.Shutdown()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

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

func start(t *testing.T, cfg embed.Config) *embed.Server {
	t.Helper()
	s, err := embed.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

func TestDoorsAreOpenOnlyOnLoopbackOrWithUsers(t *testing.T) {
	auth := func(o *server.Options) { o.Username, o.Password = "u", "p" }
	for _, c := range []struct {
		listen string
		auth   func(*server.Options)
		want   protocol.Code
	}{
		{"127.0.0.1:0", nil, ""},
		{"localhost:-1", nil, ""},
		{"[::1]:0", nil, ""},
		{"0.0.0.0:0", nil, protocol.CodeForbidden},
		{":0", nil, protocol.CodeForbidden},
		{"[::]:0", nil, protocol.CodeForbidden},
		{"192.0.2.1:4222", nil, protocol.CodeForbidden},
		{"example.com:4222", nil, protocol.CodeForbidden},
		{"localhost", nil, protocol.CodeUsage},
		{"localhost:http", nil, protocol.CodeUsage},
		{"localhost:70000", nil, protocol.CodeUsage},
		{"127.0.0.1:0", auth, ""},
	} {
		s, err := embed.Start(embed.Config{Dir: t.TempDir(), Listen: c.listen, Auth: c.auth})
		if got := protocol.CodeOf(err); got != c.want {
			if c.listen == "[::1]:0" && got == protocol.CodeUnreachable {
				t.Log("this machine has no IPv6 loopback: not checked")
				continue
			}
			t.Errorf("%s: got %v, want code %q", c.listen, err, c.want)
		}
		if err == nil {
			if !strings.HasPrefix(s.URL(), "nats://") {
				t.Errorf("%s: the URL is %q", c.listen, s.URL())
			}
			s.Shutdown()
			s.Shutdown()
		}
	}
}

// A list of users in the server's options can be empty: that is an open door too.
func TestAuthThatSetsNobodyIsRefused(t *testing.T) {
	_, err := embed.Start(embed.Config{Dir: t.TempDir(), Listen: "0.0.0.0:0", Auth: func(*server.Options) {}})
	wantCode(t, err, protocol.CodeForbidden)
}

func TestDirectoryIsNeeded(t *testing.T) {
	_, err := embed.Start(embed.Config{})
	wantCode(t, err, protocol.CodeUsage, "directory")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = embed.Start(embed.Config{Dir: file})
	wantCode(t, err, protocol.CodeUsage, file)
}

func TestDirectoryHasOneServer(t *testing.T) {
	dir := t.TempDir()
	s := start(t, embed.Config{Dir: dir})
	_, err := embed.Start(embed.Config{Dir: dir})
	wantCode(t, err, protocol.CodeUsage, dir, "in use")
	s.Shutdown()
	start(t, embed.Config{Dir: dir}).Shutdown()

	other := exec.CommandContext(t.Context(), os.Args[0])
	other.Env = append(os.Environ(), holdDir+"="+dir)
	stdin, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 5)
	if _, err := stdout.Read(said); err != nil || string(said) != "held\n" {
		t.Fatalf("the other process said %q, %v", said, err)
	}
	_, err = embed.Start(embed.Config{Dir: dir})
	wantCode(t, err, protocol.CodeUsage, dir, "in use")
	stdin.Close()
	if err := other.Wait(); err != nil {
		t.Fatal(err)
	}
	start(t, embed.Config{Dir: dir})
}

func TestUsedPortIsSaid(t *testing.T) {
	s := start(t, embed.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	taken := strings.TrimPrefix(s.URL(), "nats://")
	_, err := embed.Start(embed.Config{Dir: t.TempDir(), Listen: taken})
	wantCode(t, err, protocol.CodeUnreachable, taken, "address already in use")
}

func TestDataSurvivesAShutdown(t *testing.T) {
	for _, always := range []bool{false, true} {
		dir := t.TempDir()
		var subject string
		for run := range 2 {
			s := start(t, embed.Config{Dir: dir, SyncAlways: always})
			c, err := natswire.Connect(t.Context(), natswire.Config{InProcess: s.InProcess()})
			if err != nil {
				t.Fatal(err)
			}
			if err := natswire.Provision(t.Context(), c, natswire.ProvisionConfig{}); err != nil {
				t.Fatal(err)
			}
			subject = c.Names().LogSubject("app", "s1")
			if run == 0 {
				if _, err := c.Publish(t.Context(), natswire.Msg{Subject: subject, Data: []byte("kept")}); err != nil {
					t.Fatal(err)
				}
			} else if m, err := c.Last(t.Context(), c.Names().Log(), subject); err != nil || string(m.Data) != "kept" {
				t.Fatalf("got %q, %v", m.Data, err)
			}
			c.Close()
			s.Shutdown()
		}
	}
}

func TestWarningsGoToTheLog(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	s := start(t, embed.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", Log: log, Auth: func(o *server.Options) { o.Username, o.Password = "u", "p" }})
	_, err := natswire.Connect(t.Context(), natswire.Config{URL: s.URL()})
	wantCode(t, err, protocol.CodeAuth)
	s.Shutdown() // nobody writes any more
	if !strings.Contains(text.String(), "component=nats-server") || !strings.Contains(text.String(), "authentication error") {
		t.Fatalf("the log is %q", text.String())
	}
}
