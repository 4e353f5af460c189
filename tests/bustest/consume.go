package bustest

import (
	"context"
	"fmt"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// Short is an AckWait after which the cases let a delivery come again.
const Short = 500 * time.Millisecond

func (k *kit) call(tool, data string) uint64 {
	k.Helper()
	return k.publish(natswire.Msg{Subject: k.n.CallSubject(tool), Data: []byte(data)}).Seq
}

func nothingUnwanted(k *kit) {
	k.ensure("tool", nil)
	in := k.pull(k.n.Calls(), "tool")
	var seqs []uint64
	for i := range 5 {
		seqs = append(seqs, k.call("tool", fmt.Sprint(i)))
	}
	k.state(k.n.Calls(), "tool", "nothing delivered", func(s natswire.ConsumerState) bool { return s.Delivered < seqs[0] && s.Pending == 5 })
	before := k.now()
	in.Want(2)
	for i := range 2 {
		d := in.next()
		if string(d.Data) != fmt.Sprint(i) || d.Attempt != 1 || d.Subject != k.n.CallSubject("tool") || d.Seq == 0 || d.Time.Unix() <= 0 {
			k.Fatalf("delivery %d is %+v", i, d)
		}
	}
	s := k.state(k.n.Calls(), "tool", "2 delivered, 3 waiting", func(s natswire.ConsumerState) bool {
		return s.AckPending == 2 && s.Pending == 3 && s.Waiting == 0 && s.Delivered == seqs[1]
	})
	if after := k.now(); s.Time.Before(before) || s.Time.After(after) {
		k.Fatalf("the broker's time was %s, after %s and before %s", s.Time, before, after)
	}
	in.empty()
	in.Want(1)
	if d := in.next(); string(d.Data) != "2" {
		k.Fatalf("got %q", d.Data)
	}
}

func wantIsKept(k *kit) {
	k.ensure("tool", nil)
	in := k.pull(k.n.Calls(), "tool")
	for range 10 {
		in.Want(1)
	}
	for i := range 10 {
		k.call("tool", fmt.Sprint(i))
	}
	for i := range 10 {
		d := in.next()
		if string(d.Data) != fmt.Sprint(i) {
			k.Fatalf("got %q, want %d", d.Data, i)
		}
		d.Ack()
	}
	// A slot that frees itself is asked for again, one by one.
	for i := range 20 {
		in.Want(1)
		k.call("tool", fmt.Sprint(i))
		in.next().Ack()
	}
	k.state(k.n.Calls(), "tool", "all acked", func(s natswire.ConsumerState) bool { return s.AckPending == 0 && s.Pending == 0 })
}

func closeGivesBack(k *kit) {
	k.ensure("tool", nil)
	gone := k.pull(k.n.Calls(), "tool")
	gone.Want(5)
	first := k.call("tool", "0")
	kept := gone.next()
	gone.Close()
	gone.Close()
	k.call("tool", "1")
	in := k.pull(k.n.Calls(), "tool")
	in.Want(5)
	if d := in.next(); string(d.Data) != "1" {
		k.Fatalf("got %q", d.Data)
	}
	in.empty()
	gone.empty()
	// What was delivered before is still its owner's.
	kept.Ack()
	k.until("the ack of the closed subscription counted", func() bool {
		_, err := k.bus.At(k.Context(), k.n.Calls(), first)
		return protocol.CodeOf(err) == protocol.CodeNotFound
	})
}

func unackedComesAgain(k *kit) {
	k.ensure("tool", func(c *natswire.Consumer) { c.AckWait = Short })
	in := k.pull(k.n.Calls(), "tool")
	in.Want(3)
	seq := k.call("tool", "x")
	for attempt := 1; attempt <= 3; attempt++ {
		d := in.next()
		if d.Attempt != attempt || d.Seq != seq {
			k.Fatalf("attempt %d of sequence %d, want %d of %d", d.Attempt, d.Seq, attempt, seq)
		}
	}
}

func nakComesAgain(k *kit) {
	k.ensure("tool", nil)
	in := k.pull(k.n.Calls(), "tool")
	in.Want(2)
	k.call("tool", "x")
	in.next().Nak(0)
	if d := in.next(); d.Attempt != 2 {
		k.Fatalf("attempt %d, want 2", d.Attempt)
	}
}

func nakDelays(k *kit) {
	k.ensure("tool", nil)
	in := k.pull(k.n.Calls(), "tool")
	in.Want(3)
	k.call("tool", "delayed")
	in.next().Nak(2 * time.Second)
	k.call("tool", "meanwhile")
	if d := in.next(); string(d.Data) != "meanwhile" {
		k.Fatalf("got %q first, attempt %d", d.Data, d.Attempt)
	}
	if d := in.next(); string(d.Data) != "delayed" || d.Attempt != 2 {
		k.Fatalf("got %q, attempt %d", d.Data, d.Attempt)
	}
}

func inProgressKeeps(k *kit) {
	const ackWait = 2 * time.Second
	k.ensure("tool", func(c *natswire.Consumer) { c.AckWait = ackWait })
	in := k.pull(k.n.Calls(), "tool")
	in.Want(2)
	k.call("tool", "x")
	d := in.next()
	beat := time.NewTicker(ackWait / 8)
	defer beat.Stop()
	for range 14 { // nearly two AckWaits
		<-beat.C
		d.InProgress()
	}
	in.empty()
	if d := in.next(); d.Attempt != 2 {
		k.Fatalf("attempt %d after the beats ended, want 2", d.Attempt)
	}
}

func acksAreNotFenced(k *kit) {
	k.ensure("tool", func(c *natswire.Consumer) { c.AckWait = Short })
	in := k.pull(k.n.Calls(), "tool")
	in.Want(2)
	seq := k.call("tool", "x")
	old := in.next()
	current := in.next()
	if current.Attempt != 2 {
		k.Fatalf("attempt %d, want 2", current.Attempt)
	}
	old.Ack()
	k.until("the old delivery's ack removed the message", func() bool {
		_, err := k.bus.At(k.Context(), k.n.Calls(), seq)
		return protocol.CodeOf(err) == protocol.CodeNotFound
	})
}

func maxAckPendingLimits(k *kit) {
	k.ensure("tool", func(c *natswire.Consumer) { c.MaxAckPending = 2 })
	in := k.pull(k.n.Calls(), "tool")
	in.Want(5)
	for i := range 5 {
		k.call("tool", fmt.Sprint(i))
	}
	first := in.next()
	in.next()
	k.state(k.n.Calls(), "tool", "two are out", func(s natswire.ConsumerState) bool { return s.AckPending == 2 && s.Pending == 3 })
	in.empty()
	first.Ack()
	if d := in.next(); string(d.Data) != "2" {
		k.Fatalf("got %q", d.Data)
	}
}

func maxDeliverLeaves(k *kit) {
	k.ensure("tool", func(c *natswire.Consumer) { c.AckWait, c.MaxDeliver = Short, 2 })
	in := k.pull(k.n.Calls(), "tool")
	in.Want(5)
	seq := k.call("tool", "poison")
	in.next()
	in.next()
	a := k.advisory(natswire.AdvisoryMaxDeliveries)
	if a.Consumer != "tool" || a.Seq != seq || a.Deliveries != 2 {
		k.Fatalf("the advisory says %+v", a)
	}
	m, err := k.bus.At(k.Context(), k.n.Calls(), seq)
	k.check(err)
	if string(m.Data) != "poison" {
		k.Fatalf("the queue holds %q", m.Data)
	}
	k.state(k.n.Calls(), "tool", "it is neither pending nor out", func(s natswire.ConsumerState) bool {
		return s.Pending == 0 && s.AckPending == 0
	})
	in.empty()
	k.call("tool", "next")
	if d := in.next(); string(d.Data) != "next" {
		k.Fatalf("got %q", d.Data)
	}
}

func termRemoves(k *kit) {
	k.ensure("tool", nil)
	in := k.pull(k.n.Calls(), "tool")
	in.Want(1)
	seq := k.call("tool", "x")
	in.next().Term("bad arguments")
	a := k.advisory(natswire.AdvisoryTerminated)
	if a.Seq != seq || a.Reason != "bad arguments" || a.Deliveries != 1 {
		k.Fatalf("the advisory says %+v", a)
	}
	_, err := k.bus.At(k.Context(), k.n.Calls(), seq)
	k.wantCode(err, protocol.CodeNotFound)
}

func (k *kit) advisory(kind string) natswire.Advisory {
	k.Helper()
	var got []natswire.Stored
	k.until("an advisory "+kind, func() bool {
		var err error
		got, err = k.bus.Read(k.Context(), k.n.DeadLetters(), k.n.AdvisorySubject(kind, "*"), 0, 10)
		k.check(err)
		return len(got) == 1
	})
	a, err := k.n.ParseAdvisory(got[0].Subject, got[0].Data)
	k.check(err)
	return a
}

func ackRemoves(k *kit) {
	k.ensure("tool", nil)
	in := k.pull(k.n.Calls(), "tool")
	in.Want(1)
	seq := k.call("tool", "x")
	in.next().Ack()
	k.until("the acked message is gone", func() bool {
		_, err := k.bus.At(k.Context(), k.n.Calls(), seq)
		return protocol.CodeOf(err) == protocol.CodeNotFound
	})
}

func pausedHoldsBack(k *kit) {
	k.ensure("tool", func(c *natswire.Consumer) { c.Paused = true })
	in := k.pull(k.n.Calls(), "tool")
	in.Want(1)
	k.call("tool", "x")
	k.state(k.n.Calls(), "tool", "paused, one waiting", func(s natswire.ConsumerState) bool { return s.Config.Paused && s.Pending == 1 })
	in.empty()
	k.ensure("tool", nil)
	in.next().Ack()
	k.state(k.n.Calls(), "tool", "not paused", func(s natswire.ConsumerState) bool { return !s.Config.Paused })
}

func consumerIsEnsuredTwice(k *kit) {
	k.ensure("tool", nil)
	want := k.ensure("tool", nil)
	s, err := k.bus.ConsumerState(k.Context(), k.n.Calls(), "tool")
	k.check(err)
	if s.Config != want {
		k.Fatalf("the consumer is %+v, want %+v", s.Config, want)
	}
	want = k.ensure("tool", func(c *natswire.Consumer) { c.AckWait, c.MaxDeliver, c.MaxAckPending = 7*time.Second, 3, 8 })
	s, err = k.bus.ConsumerState(k.Context(), k.n.Calls(), "tool")
	k.check(err)
	if s.Config != want {
		k.Fatalf("the consumer is %+v after its update, want %+v", s.Config, want)
	}
}

func consumerStateOfNone(k *kit) {
	_, err := k.bus.ConsumerState(k.Context(), k.n.Calls(), "none")
	k.wantCode(err, protocol.CodeNotFound)
}

func pullFromNone(k *kit) {
	_, err := k.bus.Pull(k.Context(), k.n.Calls(), "none", natswire.PullEvents{Deliver: func(natswire.Delivery) {}})
	k.wantCode(err, protocol.CodeNotFound)
}

// Deleter is a Bus whose consumers can be deleted; the case is skipped on one that is none.
type Deleter interface {
	DeleteConsumer(ctx context.Context, stream, durable string) error
}

func deletedConsumerIsGone(k *kit) {
	bus, ok := k.bus.(Deleter)
	if !ok {
		k.Skip("this bus cannot delete consumers")
	}
	k.ensure("tool", nil)
	idle, asking := k.pull(k.n.Calls(), "tool"), k.pull(k.n.Calls(), "tool")
	asking.Want(2)
	seq := k.call("tool", "x")
	d := asking.next()
	k.check(bus.DeleteConsumer(k.Context(), k.n.Calls(), "tool"))
	asking.gone()
	idle.Want(1) // it learns when it asks
	idle.gone()
	d.Ack() // of no consequence, and no failure
	k.ensure("tool", nil)
	again := k.pull(k.n.Calls(), "tool")
	again.Want(1)
	if d := again.next(); d.Seq != seq {
		k.Fatalf("got sequence %d, want %d", d.Seq, seq)
	}
}

func (in *inbox) gone() {
	in.k.Helper()
	select {
	case err := <-in.lost:
		in.k.wantCode(err, protocol.CodeConsumerGone)
	case <-time.After(Patience):
		in.k.Fatal("nobody told that the consumer is gone")
	}
}
