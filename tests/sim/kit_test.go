package sim_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/sim"
)

// plain runs a test on a plain World, in a bubble.
func plain(t *testing.T, run func(t *testing.T, k *kit)) { t.Helper(); bubble(t, sim.Config{}, run) }

// bubble runs a test on a World; with a seed it is driven.
func bubble(t *testing.T, cfg sim.Config, run func(t *testing.T, k *kit)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.Names = names(t)
		w := sim.New(cfg)
		defer w.Close()
		go w.Run(t.Context())
		run(t, &kit{T: t, Names: cfg.Names, World: w, Bus: w.Connect("a")})
	})
}

// kit is a World with one connection to it and what tests often do there.
type kit struct {
	*testing.T
	natswire.Names
	*sim.World
	*sim.Bus
}

func (k *kit) publish(m natswire.Msg) natswire.Ack {
	k.Helper()
	ack, err := k.Publish(k.T.Context(), m)
	if err != nil {
		k.Fatal(err)
	}
	return ack
}

// refused publishes what must be refused with a code.
func (k *kit) refused(code protocol.Code, m natswire.Msg) {
	k.Helper()
	if _, err := k.Publish(k.T.Context(), m); protocol.CodeOf(err) != code {
		k.Fatalf("publish on %s: %v, want code %s", m.Subject, err, code)
	}
}

func (k *kit) call(data string) natswire.Msg {
	return natswire.Msg{Subject: k.CallSubject("tool"), Data: []byte(data)}
}

// pull opens the queue of the tool for one more process and asks for want messages.
func (k *kit) pull(bus natswire.Bus, want int, change ...func(*natswire.Consumer)) (<-chan natswire.Delivery, natswire.Puller) {
	k.Helper()
	c := natswire.Consumer{Stream: k.Calls(), Durable: "tool", Filter: k.CallSubject("tool"), AckWait: 10 * time.Second, MaxDeliver: -1, MaxAckPending: -1}
	for _, f := range change {
		f(&c)
	}
	if err := bus.EnsureConsumer(k.T.Context(), c); err != nil {
		k.Fatal(err)
	}
	got := make(chan natswire.Delivery, 100)
	p, err := bus.Pull(k.T.Context(), c.Stream, c.Durable, natswire.PullEvents{Deliver: func(d natswire.Delivery) { got <- d }})
	if err != nil {
		k.Fatal(err)
	}
	p.Want(want)
	return got, p
}

func (k *kit) state() natswire.ConsumerState {
	k.Helper()
	st, err := k.ConsumerState(k.T.Context(), k.Calls(), "tool")
	if err != nil {
		k.Fatal(err)
	}
	return st
}

// next is a delivery that must come within d of virtual time, or once everybody is done with the present.
func (k *kit) next(from <-chan natswire.Delivery, d time.Duration) natswire.Delivery {
	k.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(d + time.Millisecond):
		k.Fatalf("no delivery within %s:\n%v", d, k.Trace())
		return natswire.Delivery{}
	}
}

// none waits d of virtual time, in which no delivery may come.
func (k *kit) none(from <-chan natswire.Delivery, d time.Duration) {
	k.Helper()
	select {
	case got := <-from:
		k.Fatalf("delivery of %d, attempt %d", got.Seq, got.Attempt)
	case <-time.After(d):
	}
}
