package agent

import (
	"errors"
	"iter"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

func newNode(t *testing.T, name string, subs ...Agent) Agent {
	t.Helper()
	a, err := New(Config{Name: name, SubAgents: subs})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestFreeRunIsRefusedWithTheAlternative(t *testing.T) {
	_, err := New(Config{Name: "free", Run: func(InvocationContext) iter.Seq2[*session.Event, error] { return nil }})
	if !errors.Is(err, ErrFreeRun) {
		t.Fatalf("got %v, want ErrFreeRun", err)
	}
}

func TestFindLooksThroughTheWholeTree(t *testing.T) {
	leaf := newNode(t, "leaf")
	root := newNode(t, "root", newNode(t, "left"), newNode(t, "right", leaf))
	if got := root.FindAgent("leaf"); got != leaf {
		t.Errorf("leaf: %v", got)
	}
	if got := root.FindAgent("root"); got != root {
		t.Errorf("root: %v", got)
	}
	if got := root.FindSubAgent("root"); got != nil {
		t.Errorf("root among its sub-agents: %v", got)
	}
	if got := root.FindAgent("nobody"); got != nil {
		t.Errorf("nobody: %v", got)
	}
	root.SubAgents()[0] = leaf
	if got := root.SubAgents()[0].Name(); got != "left" {
		t.Errorf("a caller changed the tree: %s", got)
	}
}

func TestNamesAreUniqueInATree(t *testing.T) {
	shared := newNode(t, "shared")
	for _, cfg := range []Config{
		{Name: "root", SubAgents: []Agent{shared, shared}},
		{Name: "root", SubAgents: []Agent{shared, newNode(t, "other", newNode(t, "shared"))}},
		{Name: "shared", SubAgents: []Agent{shared}},
		{Name: "root", SubAgents: []Agent{nil}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("accepted %+v", cfg)
		}
	}
	if _, err := New(Config{Name: "has space"}); protocol.CodeOf(err) != protocol.CodeBadName {
		t.Errorf("got %v, want bad_name", err)
	}
}
