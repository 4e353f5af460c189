package cli

import (
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/tests/natstest"
)

func TestAnEmptyNamespaceIsNamed(t *testing.T) {
	s := natstest.Start(t)
	s.Connect(t, "")
	for _, verb := range []string{"pools", "tools"} {
		code, _, stderr := command(t, "", verb, "--namespace", "other", "--nats", s.URL())
		if code != exitUnreachable || !strings.Contains(stderr, "nothing runs in namespace other") {
			t.Errorf("%s: exit %d, stderr %q", verb, code, stderr)
		}
	}
}

func TestAWorkerHasSlots(t *testing.T) {
	for _, slots := range []string{"0", "-1"} {
		code, _, stderr := command(t, "", "worker", "exec", "--name", "a", "--description", "b", "--slots", slots, "--", "cat")
		if code != exitUsage || !strings.Contains(stderr, "--slots "+slots) {
			t.Errorf("--slots %s: exit %d, stderr %q", slots, code, stderr)
		}
	}
}

func TestSlipsAreNamed(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"sesions", "did you mean sessions?"}, {"pools shw", "did you mean show?"},
		{"call t --arsg {}", "did you mean --args?"}, {"call", "which tool?"},
	} {
		code, _, stderr := command(t, "", strings.Fields(c.args)...)
		if code != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, stderr %q", c.args, code, stderr)
		}
	}
}
