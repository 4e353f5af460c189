package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/toolfabric/toolfabric/cmd/internal/boot"
	"github.com/toolfabric/toolfabric/tests/natstest"
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
	_, stdout, stderr := command(t, "", "sessions", "show", "ghost", "--nats", "nats://me:hunter2@127.0.0.1:1")
	if strings.Contains(stdout+stderr, "hunter2") || !strings.Contains(stderr, "127.0.0.1:1") {
		t.Errorf("%s%s", stdout, stderr)
	}
}

func TestCommandsAreWholeInErrorsThatComeBeforeAnyVerb(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"call", "--data", "a b"}, "toolfabric --data '" + dir + "/a b' tools lists them"},
		{[]string{"call", "x", "y", "--namespace", "n"}, "\n  see: toolfabric call --help\n"},
		{[]string{"agents", "ls", "--agnts", "x"}, "did you mean --agents? (usage)\n  see: toolfabric agents ls --help\n"},
		{[]string{"tools", "--data", "a b"}, "nobody serves a b; start it with: toolfabric up --data '" + dir + "/a b',"},
	} {
		if _, _, stderr := command(t, "", c.args...); !strings.Contains(stderr, c.want) {
			t.Errorf("%q: %s", c.args, stderr)
		}
	}
}

func TestDoctorShowsNoToken(t *testing.T) {
	s := natstest.Start(t, natstest.Auth(func(o *server.Options) { o.Authorization = "hunter2" }))
	code, stdout, stderr := command(t, "", "doctor", "--nats", strings.Replace(s.URL(), "://", "://hunter2@", 1))
	if code != exitOK && code != exitRefused || strings.Contains(stdout+stderr, "hunter2") || !strings.Contains(stdout, "nats://CREDENTIALS@127.0.0.1:") {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
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
