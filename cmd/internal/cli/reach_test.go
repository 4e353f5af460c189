package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/cmd/internal/boot"
)

func TestCommandsInTextReachTheSameFabric(t *testing.T) {
	a := &app{verbs: []string{"up", "calls", "doctor", "worker", "help"}}
	const text = "start it with: toolfabric up, or toolfabric worker exec -- cat\nsee: toolfabric help; toolfabric is a name"
	if got := a.reaching(text); got != text {
		t.Errorf("without flags: %q", got)
	}
	a.where = reach{{"nats", "nats://h:1"}, {"data", "a b"}}
	const want = "start it with: toolfabric --data 'a b' up, or toolfabric --nats nats://h:1 --data 'a b' worker exec -- cat\nsee: toolfabric help; toolfabric is a name"
	if got := a.reaching(text); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for _, told := range []string{a.line("calls ls"), "toolfabric worker --nats nats://other:1 --name x", "toolfabric up --data /d"} {
		if got := a.reaching(told); got != told {
			t.Errorf("%q, which says where, becomes %q", told, got)
		}
	}
}

func TestPrintedCommandsHoldNoSecrets(t *testing.T) {
	for given, want := range map[string]string{
		"nats://h:4222":                  "nats://h:4222",
		"nats://me:pass@h:4222":          "nats://CREDENTIALS@h:4222",
		"tls://token@h,nats://a:b@c@d:1": "tls://CREDENTIALS@h,nats://CREDENTIALS@d:1",
		"me:pass@h":                      "CREDENTIALS@h",
	} {
		if got := withoutSecrets(given); got != want {
			t.Errorf("%s is shown as %s, want %s", given, got, want)
		}
	}
	_, stdout, stderr := command(t, "", "sessions", "show", "ghost", "--nats", "nats://me:hunter2@127.0.0.1:1")
	if strings.Contains(stdout+stderr, "hunter2") || !strings.Contains(stderr, "127.0.0.1:1") {
		t.Errorf("%s%s", stdout, stderr)
	}
}

func TestTheFolderOfAnUpThatWasKilledIsNamed(t *testing.T) {
	dir := t.TempDir()
	if _, err := boot.WriteEndpoint(dir, boot.Endpoint{URL: "nats://127.0.0.1:1", PID: os.Getpid()}); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := command(t, "", "tools", "--data", dir)
	if code != exitUnreachable || !strings.Contains(stderr, "the up of "+dir+" listened") || !strings.Contains(stderr, "toolfabric up --data "+dir) {
		t.Errorf("killed: exit %d, %s", code, stderr)
	}
	code, _, stderr = command(t, "", "tools", "--data", filepath.Join(dir, "none"))
	if code != exitUnreachable || !strings.Contains(stderr, "toolfabric up --data "+filepath.Join(dir, "none")) {
		t.Errorf("never started: exit %d, %s", code, stderr)
	}
}
