package natswire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

func names(t testing.TB, namespace string) natswire.Names {
	t.Helper()
	n, err := natswire.NewNames(namespace)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Subjects and streams are the wire: a change here parts old builds from new ones.
func TestSubjectsAreFrozen(t *testing.T) {
	var b strings.Builder
	for _, namespace := range []string{"tf", "dev"} {
		n := names(t, namespace)
		for _, l := range [][2]string{
			{"Streams", strings.Join(n.Streams(), " ")},
			{"Tools", n.Tools()},
			{"Objects", n.Objects()},
			{"Skills", n.Skills()},
			{"InputSubject", n.InputSubject("app", "client", "session")},
			{"InputFilter", n.InputFilter("app")},
			{"LogSubject", n.LogSubject("app", "session")},
			{"LogFilter", n.LogFilter("app")},
			{"LiveSubject", n.LiveSubject("app", "session")},
			{"CallSubject", n.CallSubject("tool")},
			{"ResultSubject", n.ResultSubject("tool", "session", "call", 2)},
			{"DoneSubject", n.DoneSubject("session")},
			{"ClaimSubject", n.ClaimSubject("tool", "call", 2)},
			{"TimerSubject", n.TimerSubject("app", "session", "id")},
			{"DueSubject", n.DueSubject("app", "session")},
			{"DueFilter", n.DueFilter("app")},
			{"RegistrationSubject", n.RegistrationSubject("tool", "worker")},
			{"DeadLetterSubject", n.DeadLetterSubject("kind", "id")},
			{"AdvisorySubject", n.AdvisorySubject(natswire.AdvisoryMaxDeliveries, "tool")},
			{"ToolSubject", n.ToolSubject("tool", "digest")},
			{"OwnSubject", n.OwnSubject("coordinator")},
			{"CancelSubject", n.CancelSubject("tool", "call")},
			{"ProgressSubject", n.ProgressSubject("tool", "session", "call")},
			{"TokenSubject", n.TokenSubject("session", "epoch")},
		} {
			fmt.Fprintf(&b, "%-20s %s\n", l[0], l[1])
		}
		b.WriteByte('\n')
	}
	golden(t, "subjects.golden", b.String())
}

func TestNamespaceIsOneShortToken(t *testing.T) {
	for _, bad := range []string{"a.b", "A", "a-b", "*", ">", "seventeenletters7", " "} {
		if _, err := natswire.NewNames(bad); protocol.CodeOf(err) != protocol.CodeUsage {
			t.Errorf("namespace %q: got %v, want code usage", bad, err)
		}
	}
}

func TestParsersRefuseOtherSubjects(t *testing.T) {
	n := names(t, "")
	for _, subject := range []string{
		"", "tf", "tf.result", "tf.result.tool.s.c", "tf.result.tool.s.c.0.x", "dev.result.tool.s.c.0", "tf.result.tool.s.c.x",
		"tf.result.tool.s.c.-1", "tf.result.tool.s.c.+1", "tf.result.tool.s.c.01", "tf.result..s.c.0", "tf.done.s",
	} {
		if tool, session, call, round, ok := n.ParseResult(subject); ok {
			t.Errorf("ParseResult(%q) = %q %q %q %d", subject, tool, session, call, round)
		}
	}
}

// What a parser accepts it can write again, letter by letter.
func FuzzSubjectParsers(f *testing.F) {
	n := names(f, "")
	for _, s := range []string{
		n.InputSubject("a", "c", "s"), n.LogSubject("a", "s"), n.DueSubject("a", "s"), n.ResultSubject("t", "s", "c", 7),
		"tf.done.s", n.ProgressSubject("t", "s", "c"), n.RegistrationSubject("t", "w"), "tf.done....", "tf.result.a.b.c.+1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		same := func(got string) {
			if got != s {
				t.Fatalf("%q was read as %q", s, got)
			}
		}
		if app, client, session, ok := n.ParseInput(s); ok {
			same(n.InputSubject(app, client, session))
		}
		if app, session, ok := n.ParseLog(s); ok {
			same(n.LogSubject(app, session))
		}
		if app, session, ok := n.ParseDue(s); ok {
			same(n.DueSubject(app, session))
		}
		if tool, session, call, round, ok := n.ParseResult(s); ok {
			same(n.ResultSubject(tool, session, call, round))
		}
		if tool, session, call, ok := n.ParseProgress(s); ok {
			same(n.ProgressSubject(tool, session, call))
		}
		if tool, worker, ok := n.ParseRegistration(s); ok {
			same(n.RegistrationSubject(tool, worker))
		}
	})
}
