package natstest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

// through connects to a namespace by way of a proxy.
func through(t *testing.T) (*natstest.Proxy, *natswire.Conn) {
	t.Helper()
	s := natstest.Start(t)
	s.Connect(t, "")
	p := natstest.StartProxy(t, s)
	return p, s.Dial(t, natswire.Config{URL: p.URL()})
}

func TestDroppedAckIsOneOfManyAndWasStored(t *testing.T) {
	p, c := through(t)
	log := func(session string) natswire.Msg {
		return natswire.Msg{Subject: c.Names().LogSubject("app", session), Data: []byte(session)}
	}
	lost := p.Drop(natstest.Acks, c.Names().LogSubject("app", "s2"))
	if _, err := c.Publish(t.Context(), log("s1")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.Publish(ctx, log("s2")); protocol.CodeOf(err) == "" {
		t.Error("the ack came")
	}
	<-lost.Caught()
	if m, err := c.Last(t.Context(), c.Names().Log(), log("s2").Subject); err != nil || string(m.Data) != "s2" {
		t.Errorf("got %q, %v", m.Data, err)
	}
	if _, err := c.Publish(t.Context(), log("s2")); err != nil {
		t.Errorf("the next ack: %v", err)
	}
}

// deliveries pulls what is in INPUT.
func deliveries(t *testing.T, c *natswire.Conn) <-chan natswire.Delivery {
	t.Helper()
	n := c.Names()
	if err := c.EnsureConsumer(t.Context(), natswire.Consumer{Stream: n.Input(), Durable: "app", Filter: n.InputFilter("app"), AckWait: time.Minute, MaxDeliver: -1, MaxAckPending: -1}); err != nil {
		t.Fatal(err)
	}
	got := make(chan natswire.Delivery, 10)
	pull, err := c.Pull(t.Context(), n.Input(), "app", natswire.PullEvents{Deliver: func(d natswire.Delivery) { got <- d }, Lost: func(error) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pull.Close)
	pull.Want(5)
	return got
}

func next(t *testing.T, got <-chan natswire.Delivery) string {
	t.Helper()
	select {
	case d := <-got:
		return string(d.Data)
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing is delivered")
		return ""
	}
}

func TestDeliveriesAreHeldAndDoubled(t *testing.T) {
	p, c := through(t)
	n := c.Names()
	held := p.Hold(natstest.Deliveries, n.InputSubject("app", "*", "s1"))
	twice := p.Duplicate(natstest.Deliveries, n.InputSubject("app", "*", "s2"))
	lost := p.Drop(natstest.Deliveries, n.InputSubject("app", "*", "s3"))
	held.Release() // too early
	got := deliveries(t, c)
	for _, session := range []string{"s1", "s2", "s3", "s4"} {
		if _, err := c.Publish(t.Context(), natswire.Msg{Subject: n.InputSubject("app", "me", session), Data: []byte(session)}); err != nil {
			t.Fatal(err)
		}
	}
	var order []string
	for range 3 {
		order = append(order, next(t, got))
	}
	for _, c := range []*natstest.Catch{held, twice, lost} {
		<-c.Caught()
	}
	held.Release()
	held.Release()
	order = append(order, next(t, got))
	if want := []string{"s2", "s2", "s4", "s1"}; !slices.Equal(order, want) || len(got) != 0 {
		t.Errorf("got %v, want %v", order, want)
	}
}
