package protocol_test

import (
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
)

func TestForeignNamesComeBackFromTheirTokens(t *testing.T) {
	for _, name := range []string{
		"alice", "user_1", "alice@example.com", "Zoë", "a b", "../../x", "*", "a.b", "-", "x-", "x-41", "x-alice-40example", "x--",
		"f47ac10b-58cc-4372-a567-0e02b2c3d479",
	} {
		token, err := protocol.ClientID(name)
		if err != nil || protocol.CheckID(token) != nil {
			t.Errorf("%q: token %q, %v", name, token, err)
		}
		if got := protocol.UserName(token); got != name {
			t.Errorf("%q came back as %q by %q", name, got, token)
		}
		id, err := protocol.SessionID("bob@example.com", name)
		if err != nil || protocol.CheckID(id) != nil {
			t.Errorf("session %q: id %q, %v", name, id, err)
		}
		if got := protocol.SessionName("bob@example.com", id); got != name {
			t.Errorf("session %q came back as %q by %q", name, got, id)
		}
	}
}

func TestTokensThatNobodySpelledAreTheirOwnNames(t *testing.T) {
	for _, token := range []string{"local", "x-zz-", "x-a-4", "x-a-ZZ", "x-alice", "x-a-41", "x-a-00", "x-a-ff", "x-a-0a"} {
		if got := protocol.UserName(token); got != token {
			t.Errorf("%q is read as %q", token, got)
		}
	}
}

func TestEachUserHasSessionsOfTheirOwn(t *testing.T) {
	a, err := protocol.SessionID("alice", "default")
	if err != nil {
		t.Fatal(err)
	}
	b, err := protocol.SessionID("bob", "default")
	if err != nil || a == b {
		t.Errorf("alice and bob share %s, %v", a, err)
	}
	if got := protocol.SessionName("bob", a); got != a {
		t.Errorf("alice's session is bob's %q", got)
	}
	made := protocol.NewID()
	if id, err := protocol.SessionID("alice", made); err != nil || id != made {
		t.Errorf("an id of ours became %q, %v", id, err)
	}
}

func TestForeignNamesHaveTheirLimits(t *testing.T) {
	for _, name := range []string{"", strings.Repeat("a", 65), strings.Repeat("@", 21), "a\x00", "a\nb", "\xff"} {
		if token, err := protocol.ClientID(name); protocol.CodeOf(err) != protocol.CodeBadID {
			t.Errorf("user %q became %q, %v", name, token, err)
		}
	}
	for _, name := range []string{"", strings.Repeat("a", 54), "a\x00"} {
		if id, err := protocol.SessionID("u", name); protocol.CodeOf(err) != protocol.CodeBadID {
			t.Errorf("session %q became %q, %v", name, id, err)
		}
	}
}

func FuzzForeignNames(f *testing.F) {
	for _, name := range []string{"alice", "x-a-40", "a@b", "x--", "-"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if token, err := protocol.ClientID(name); err == nil && (protocol.CheckID(token) != nil || protocol.UserName(token) != name) {
			t.Errorf("%q came back as %q by %q", name, protocol.UserName(token), token)
		}
		if id, err := protocol.SessionID(name, name); err == nil && (protocol.CheckID(id) != nil || protocol.SessionName(name, id) != name) {
			t.Errorf("session %q came back as %q by %q", name, protocol.SessionName(name, id), id)
		}
	})
}
