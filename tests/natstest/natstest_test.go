package natstest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRestartKeepsPortAndData(t *testing.T) {
	s := natstest.Start(t)
	c := s.Connect(t, "")
	before := s.URL()
	log := c.Names().LogSubject("app", "s1")
	if _, err := c.Publish(t.Context(), natswire.Msg{Subject: log, Data: []byte("kept")}); err != nil {
		t.Fatal(err)
	}
	s.Stop(t)
	s.Restart(t)
	s.Restart(t)
	if s.URL() != before {
		t.Fatalf("it moved from %s to %s", before, s.URL())
	}
	if m, err := s.Connect(t, "").Last(t.Context(), c.Names().Log(), log); err != nil || string(m.Data) != "kept" {
		t.Fatalf("got %q, %v", m.Data, err)
	}
}

func TestCutProxyLetsNobodyThrough(t *testing.T) {
	s := natstest.Start(t)
	p := natstest.StartProxy(t, s)
	p.Cut()
	if _, err := natswire.Connect(t.Context(), natswire.Config{URL: p.URL()}); protocol.CodeOf(err) != protocol.CodeUnreachable {
		t.Fatalf("got %v", err)
	}
	p.Heal()
	s.Dial(t, natswire.Config{URL: p.URL()})
}
