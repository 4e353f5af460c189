package bustest

import (
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// now is the broker's time.
func (k *kit) now() time.Time {
	k.Helper()
	ack := k.publish(natswire.Msg{Subject: k.n.DeadLetterSubject("clock", "now"), Data: []byte("tick")})
	m, err := k.bus.At(k.Context(), k.n.DeadLetters(), ack.Seq)
	k.check(err)
	return m.Time
}

func (k *kit) dues() *inbox {
	k.Helper()
	k.check(k.bus.EnsureConsumer(k.Context(), natswire.Consumer{
		Stream: k.n.Timers(), Durable: "app", Filter: k.n.DueFilter("app"), AckWait: time.Minute, MaxDeliver: -1, MaxAckPending: -1,
	}))
	in := k.pull(k.n.Timers(), "app")
	in.Want(10)
	return in
}

func (k *kit) arm(id, data string, at time.Time) {
	k.Helper()
	k.publish(natswire.Msg{
		Subject: k.n.TimerSubject("app", "s1", id), Target: k.n.DueSubject("app", "s1"), At: at, Data: []byte(data),
	})
}

func timerFires(k *kit) {
	in := k.dues()
	at := k.now().Add(1300 * time.Millisecond) // no whole second: cutting it off would be early
	k.arm("t1", "later", at)
	k.arm("t2", "past", at.Add(-time.Hour))
	d := in.next()
	if string(d.Data) != "past" || d.Subject != k.n.DueSubject("app", "s1") {
		k.Fatalf("%q fired first on %s", d.Data, d.Subject)
	}
	d.Ack()
	d = in.next()
	if string(d.Data) != "later" {
		k.Fatalf("%q fired", d.Data)
	}
	if d.Time.Before(at) {
		k.Fatalf("it fired %v early", at.Sub(d.Time))
	}
	d.Ack()
	_, err := k.bus.Last(k.Context(), k.n.Timers(), k.n.TimerSubject("app", "s1", "t1"))
	k.wantCode(err, protocol.CodeNotFound)
}

func timerIsReplaced(k *kit) {
	in := k.dues()
	start := k.now()
	k.arm("t1", "first", start.Add(time.Second))
	k.arm("t1", "second", start.Add(2*time.Second))
	d := in.next()
	if string(d.Data) != "second" || d.Time.Before(start.Add(2*time.Second)) {
		k.Fatalf("%q fired %v after the start", d.Data, d.Time.Sub(start))
	}
}

func purgeDisarms(k *kit) {
	in := k.dues()
	start := k.now()
	k.arm("t1", "disarmed", start.Add(time.Second))
	k.arm("t2", "armed", start.Add(2*time.Second))
	for range 2 {
		k.check(k.bus.Purge(k.Context(), k.n.Timers(), k.n.TimerSubject("app", "s1", "t1"), 0))
	}
	if d := in.next(); string(d.Data) != "armed" {
		k.Fatalf("%q fired", d.Data)
	}
}

func ttlEnds(k *kit) {
	short, long := k.n.RegistrationSubject("tool", "w1"), k.n.RegistrationSubject("tool", "w2")
	k.publish(natswire.Msg{Subject: short, TTL: time.Second, Data: []byte("beat")})
	k.publish(natswire.Msg{Subject: long, TTL: time.Hour, Data: []byte("beat")})
	k.until("the beat is forgotten", func() bool {
		_, err := k.bus.Last(k.Context(), k.n.Registry(), short)
		return protocol.CodeOf(err) == protocol.CodeNotFound
	})
	_, err := k.bus.Last(k.Context(), k.n.Registry(), long)
	k.check(err)
}
