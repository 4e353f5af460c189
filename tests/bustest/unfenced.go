package bustest

import (
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// gone waits until a message of the queue was removed.
func (k *kit) gone(seq uint64) {
	k.Helper()
	k.until("the message is gone", func() bool {
		_, err := k.bus.At(k.Context(), k.n.Calls(), seq)
		return protocol.CodeOf(err) == protocol.CodeNotFound
	})
}

func staleNakStartsAnother(k *kit) {
	k.ensure("tool", func(c *natswire.Consumer) { c.AckWait = Short })
	in := k.pull(k.n.Calls(), "tool")
	in.Want(2)
	k.call("tool", "x")
	old := in.next()
	in.next()
	k.ensure("tool", nil) // from here on nothing comes again by itself
	old.Nak(0)
	in.Want(1)
	if d := in.next(); d.Attempt != 3 {
		k.Fatalf("attempt %d, want 3", d.Attempt)
	}
}

func lastNakOrphans(k *kit) {
	k.ensure("tool", func(c *natswire.Consumer) { c.MaxDeliver = 1 })
	in := k.pull(k.n.Calls(), "tool")
	in.Want(2)
	seq := k.call("tool", "x")
	d := in.next()
	d.Nak(0)
	if a := k.advisory(natswire.AdvisoryMaxDeliveries); a.Seq != seq || a.Deliveries != 1 {
		k.Fatalf("the advisory says %+v", a)
	}
	k.state(k.n.Calls(), "tool", "it is not out", func(s natswire.ConsumerState) bool { return s.AckPending == 0 })
	d.Ack() // late, and yet it removes what was given up
	k.gone(seq)
}

func overlapIsRefused(k *kit) {
	k.ensure("tool", nil)
	for _, filter := range []string{k.n.CallSubject("tool"), k.n.CallSubject("*")} {
		c := natswire.Consumer{Stream: k.n.Calls(), Durable: "second", Filter: filter, AckWait: time.Minute, MaxDeliver: -1, MaxAckPending: -1}
		k.wantCode(k.bus.EnsureConsumer(k.Context(), c), protocol.CodeInternal)
	}
}

func nakKeepsItsPlace(k *kit) {
	k.ensure("tool", func(c *natswire.Consumer) { c.MaxAckPending = 1 })
	in := k.pull(k.n.Calls(), "tool")
	in.Want(5)
	k.call("tool", "1")
	k.call("tool", "2")
	in.next().Nak(time.Second)
	d := in.next()
	if string(d.Data) != "1" || d.Attempt != 2 {
		k.Fatalf("%q came, attempt %d, while the first waits", d.Data, d.Attempt)
	}
	d.Ack()
	if d := in.next(); string(d.Data) != "2" {
		k.Fatalf("got %q", d.Data)
	}
}

func removedIsNotDelivered(k *kit) {
	k.ensure("tool", func(c *natswire.Consumer) { c.MaxAckPending = 1 })
	in := k.pull(k.n.Calls(), "tool")
	in.Want(5)
	out := k.call("tool", "out")
	waiting := k.call("tool", "waiting")
	k.call("tool", "kept")
	in.next()
	for _, seq := range []uint64{waiting, out} {
		k.check(k.bus.Remove(k.Context(), k.n.Calls(), seq))
	}
	if d := in.next(); string(d.Data) != "kept" { // its slot was freed by the removal
		k.Fatalf("got %q", d.Data)
	}
}

func settledTwice(k *kit) {
	k.ensure("tool", nil)
	in := k.pull(k.n.Calls(), "tool")
	in.Want(2)
	seq := k.call("tool", "x")
	d := in.next()
	d.Ack()
	k.gone(seq)
	d.Nak(0)
	d.InProgress()
	d.Ack()
	k.call("tool", "y")
	if d := in.next(); string(d.Data) != "y" || d.Attempt != 1 {
		k.Fatalf("got %q, attempt %d", d.Data, d.Attempt)
	}
}

func nobodyStoresIt(k *kit) {
	k.publishFails(natswire.Msg{Subject: k.n.OwnSubject("c"), Data: []byte("x")}, protocol.CodeUnreachable)
}

func badTimersAreRefused(k *kit) {
	at := k.now().Add(time.Minute)
	k.publishFails(natswire.Msg{Subject: k.n.TimerSubject("app", "s1", "t"), Target: k.n.CallSubject("tool"), At: at, Data: []byte("x")}, protocol.CodeInternal)
	k.publishFails(natswire.Msg{Subject: k.n.CallSubject("tool"), Target: k.n.CallSubject("other"), At: at, Data: []byte("x")}, protocol.CodeInternal)
	k.publishFails(natswire.Msg{Subject: k.n.ResultSubject("tool", "s1", "c1", 0), TTL: time.Minute, Data: []byte("x")}, protocol.CodeInternal)
}

func refusedIsHeard(k *kit) {
	result := k.n.ResultSubject("tool", "s1", "c1", 0)
	came := k.subscribe(result)
	k.publish(natswire.Msg{Subject: result, Data: []byte("first")})
	k.publishFails(natswire.Msg{Subject: result, Data: []byte("second")}, protocol.CodeAnswered)
	for _, want := range []string{"first", "second"} {
		if m := k.receive(came); string(m.Data) != want {
			k.Fatalf("got %q, want %q", m.Data, want)
		}
	}
}

func fencedBeforeDuplicate(k *kit) {
	log := k.n.LogSubject("app", "s1")
	event := natswire.Msg{Subject: log, Expect: seq(0), ID: "e1", Data: []byte("1")}
	first := k.publish(event)
	ack, err := k.bus.Publish(k.Context(), event)
	if protocol.CodeOf(err) != protocol.CodeFenced && (!ack.Duplicate || ack.Seq != first.Seq) { // one server, or three
		k.Fatalf("the repeat of an append got %+v, %v", ack, err)
	}
}

func dueTimersKeepTheirHeaders(k *kit) {
	in := k.dues()
	timer := k.n.TimerSubject("app", "s1", "t1")
	k.publish(natswire.Msg{Subject: timer, Target: k.n.DueSubject("app", "s1"), At: k.now(), Header: natswire.Header{"traceparent": "t"}, Data: []byte("x")})
	d := in.next()
	if d.Header.Get("traceparent") != "t" || d.Header.Get("Nats-Scheduler") != timer {
		k.Fatalf("headers of a fired timer: %v", d.Header)
	}
}
