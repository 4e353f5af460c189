package agent

import (
	"slices"
	"strings"
	"testing"
)

func TestLoaderFindsAgentsByName(t *testing.T) {
	root, other := newNode(t, "root"), newNode(t, "other")
	l, err := NewMultiLoader(root, other)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Agent{"": root, "root": root, "other": other} {
		if got, err := l.LoadAgent(name); err != nil || got != want {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
	if _, err := l.LoadAgent("nobody"); err == nil || !strings.Contains(err.Error(), "root, other") {
		t.Errorf("nobody: %v", err)
	}
	if l.RootAgent() != root || !slices.Equal(l.ListAgents(), []string{"root", "other"}) {
		t.Errorf("root %v of %v", l.RootAgent(), l.ListAgents())
	}
	if single := NewSingleLoader(other); single.RootAgent() != other || len(single.ListAgents()) != 1 {
		t.Errorf("a single one: %v", single.ListAgents())
	}
}

func TestLoaderRefusesWhatHasNoName(t *testing.T) {
	a := newNode(t, "a")
	if _, err := NewMultiLoader(a, newNode(t, "a")); err == nil {
		t.Error("two agents of one name are taken")
	}
	if _, err := NewMultiLoader(a, nil); err == nil {
		t.Error("nil is taken")
	}
	defer func() {
		if recover() == nil {
			t.Error("a nil agent is taken")
		}
	}()
	NewSingleLoader(nil)
}
