package sim_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/sim"
)

func TestStaleAckRemovesWhatAnotherWorksOn(t *testing.T) { // N1
	plain(t, func(t *testing.T, k *kit) {
		got, _ := k.pull(k.Bus, 2)
		k.publish(k.call("x"))
		first := k.next(got, 0)
		second := k.next(got, 11*time.Second)
		if second.Attempt != 2 {
			t.Fatalf("attempt %d", second.Attempt)
		}
		first.Ack()
		k.none(got, time.Hour)
		if left := k.Messages(k.Calls()); len(left) != 0 {
			t.Fatalf("left: %v", left)
		}
	})
}

func TestStaleInProgressKeepsAnothersLease(t *testing.T) { // N2
	plain(t, func(t *testing.T, k *kit) {
		got, _ := k.pull(k.Bus, 3)
		k.publish(k.call("x"))
		first := k.next(got, 0)
		k.next(got, 11*time.Second)
		for range 10 {
			k.none(got, 9*time.Second)
			first.InProgress()
		}
		if third := k.next(got, 10*time.Second); third.Attempt != 3 {
			t.Fatalf("attempt %d", third.Attempt)
		}
	})
}

func TestStaleNakStartsAnotherAttempt(t *testing.T) { // N3
	plain(t, func(t *testing.T, k *kit) {
		got, _ := k.pull(k.Bus, 3)
		k.publish(k.call("x"))
		first := k.next(got, 0)
		k.next(got, 11*time.Second)
		first.Nak(0)
		if third := k.next(got, 0); third.Attempt != 3 {
			t.Fatalf("attempt %d", third.Attempt)
		}
	})
}

func TestMessagePastMaxDeliverStaysInSilence(t *testing.T) { // N4
	plain(t, func(t *testing.T, k *kit) {
		got, _ := k.pull(k.Bus, 9, func(c *natswire.Consumer) { c.MaxDeliver = 2 })
		seq := k.publish(k.call("x")).Seq
		k.next(got, 0)
		k.next(got, 10*time.Second)
		k.none(got, time.Hour)
		if st := k.state(); st.Pending != 0 || st.AckPending != 0 || len(k.Messages(k.Calls())) != 1 {
			t.Fatalf("%+v", st)
		}
		letters := k.Messages(k.DeadLetters())
		if len(letters) != 1 || letters[0].Subject != "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.CALLS.tool" {
			t.Fatalf("%v", letters)
		}
		var advisory map[string]any
		if err := json.Unmarshal(letters[0].Data, &advisory); err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]any{"type": "io.nats.jetstream.advisory.v1.max_deliver", "stream": "CALLS", "consumer": "tool", "stream_seq": float64(seq), "deliveries": 2.0} {
			if advisory[key] != want {
				t.Errorf("%s is %v", key, advisory[key])
			}
		}
	})
}

func TestRetriedAppendIsFencedOrDuplicate(t *testing.T) { // N5
	retry := func(k *kit) (natswire.Ack, error) {
		m := natswire.Msg{Subject: k.LogSubject("app", "s"), Expect: new(uint64), ID: "e1", Data: []byte("x")}
		k.publish(m)
		return k.Publish(k.T.Context(), m)
	}
	plain(t, func(t *testing.T, k *kit) {
		if _, err := retry(k); protocol.CodeOf(err) != protocol.CodeFenced {
			t.Fatal(err)
		}
	})
	seen := map[bool]bool{}
	for seed := range uint64(20) {
		bubble(t, sim.Config{Seed: seed + 1, Faults: sim.Faults{Delay: 0.1}}, func(t *testing.T, k *kit) {
			ack, err := retry(k)
			if !ack.Duplicate && protocol.CodeOf(err) != protocol.CodeFenced {
				t.Fatalf("%+v %v", ack, err)
			}
			seen[ack.Duplicate] = true
		})
	}
	if len(seen) != 2 {
		t.Fatalf("only one of the two answers in 20 seeds: %v", seen)
	}
}

func TestMailboxTakesTheFirstOnly(t *testing.T) { // N7, and the retry of a claim whose ack was lost
	plain(t, func(t *testing.T, k *kit) {
		result := natswire.Msg{Subject: k.ResultSubject("tool", "s", "c", 0), Data: []byte("1")}
		seq := k.publish(result).Seq
		k.refused(protocol.CodeAnswered, result)
		k.refused(protocol.CodeAnswered, natswire.Msg{Subject: result.Subject, Data: []byte("2")})
		if m, err := k.Last(k.T.Context(), k.Results(), result.Subject); err != nil || m.Seq != seq || string(m.Data) != "1" {
			t.Fatalf("%+v %v", m, err)
		}
		claim := func(id string) error {
			return natswire.StoreClaim(k.T.Context(), k.Bus, k.Names, "tool", "c", 0, id, protocol.Claim{Worker: id})
		}
		if err := errors.Join(claim("d1"), claim("d1")); err != nil {
			t.Fatalf("one's own claim again: %v", err)
		}
		if err := claim("d2"); protocol.CodeOf(err) != protocol.CodeAnswered {
			t.Fatalf("another's claim: %v", err)
		}
	})
}

func TestMessageIDIsRememberedAfterTheAck(t *testing.T) { // N8
	plain(t, func(t *testing.T, k *kit) {
		got, _ := k.pull(k.Bus, 9)
		m := k.call("x")
		m.ID = "c.0"
		k.publish(m)
		k.next(got, 0).Ack()
		other := natswire.Msg{Subject: k.CallSubject("other"), ID: "c.0"}
		if ack := k.publish(other); !ack.Duplicate || ack.Seq != 1 {
			t.Fatalf("ids hold for the stream: %+v", ack)
		}
		k.none(got, 2*time.Minute)
		if ack := k.publish(m); ack.Duplicate {
			t.Fatal("remembered past the window")
		}
		k.next(got, 0)
	})
	bubble(t, sim.Config{Seed: 1, Faults: sim.Faults{Forget: 1}}, func(t *testing.T, k *kit) {
		m := k.call("x")
		m.ID = "c.0"
		k.publish(m)
		if ack := k.publish(m); ack.Duplicate {
			t.Fatal("nothing forgotten")
		}
	})
}

func TestPurgeResetsTheFenceUnlessOneIsKept(t *testing.T) { // N9
	plain(t, func(t *testing.T, k *kit) {
		subject := k.LogSubject("app", "s")
		first := natswire.Msg{Subject: subject, Expect: new(uint64)}
		k.publish(first)
		tail := k.publish(natswire.Msg{Subject: subject}).Seq
		if err := k.Purge(k.T.Context(), k.Log(), subject, 1); err != nil {
			t.Fatal(err)
		}
		k.refused(protocol.CodeFenced, first)
		if m, err := k.Last(k.T.Context(), k.Log(), subject); err != nil || m.Seq != tail {
			t.Fatalf("%+v %v", m, err)
		}
		if err := k.Purge(k.T.Context(), k.Log(), subject, 0); err != nil {
			t.Fatal(err)
		}
		k.publish(first)
	})
}

func TestTimeToLiveIsForTheRegistryOnly(t *testing.T) { // N10
	plain(t, func(t *testing.T, k *kit) {
		beat := natswire.Msg{Subject: k.RegistrationSubject("tool", "w"), TTL: 15 * time.Second}
		k.publish(beat)
		k.none(nil, 10*time.Second)
		k.publish(beat)
		k.none(nil, 14*time.Second)
		if n := len(k.Messages(k.Registry())); n != 1 {
			t.Fatalf("%d beats", n)
		}
		k.none(nil, 2*time.Second)
		if n := len(k.Messages(k.Registry())); n != 0 {
			t.Fatalf("%d beats after their time", n)
		}
		k.refused(protocol.CodeInternal, natswire.Msg{Subject: k.ResultSubject("tool", "s", "c", 0), TTL: time.Minute})
	})
}

func TestResultsEndAfterThirtyDays(t *testing.T) {
	plain(t, func(t *testing.T, k *kit) {
		for i := range 3 {
			k.publish(natswire.Msg{Subject: k.ResultSubject("tool", "s", "c", i)})
			k.none(nil, 24*time.Hour)
		}
		for left, wait := range []time.Duration{27*24*time.Hour - time.Second, 2 * time.Second, 24 * time.Hour, 24 * time.Hour} {
			k.none(nil, wait)
			if n := len(k.Messages(k.Results())); n != 3-left {
				t.Fatalf("%d results, want %d", n, 3-left)
			}
		}
	})
}

func TestReadsMayMissTheNewest(t *testing.T) { // N11
	bubble(t, sim.Config{Seed: 1, Faults: sim.Faults{Stale: 1}}, func(t *testing.T, k *kit) {
		subject := k.LogSubject("app", "s")
		for range 10 {
			k.publish(natswire.Msg{Subject: subject})
		}
		all, err := k.Read(k.T.Context(), k.Log(), subject, 0, 100)
		if err != nil || len(all) == 10 || len(all) < 6 || all[0].Seq != 1 || all[len(all)-1].Seq != uint64(len(all)) {
			t.Fatalf("%d of 10, %v", len(all), err)
		}
		newest, err := k.Latest(k.T.Context(), k.Log(), k.LogFilter("app"))
		if err != nil || len(newest) != 1 || newest[0].Seq == 10 {
			t.Fatalf("%v %v", newest, err)
		}
		if m, err := k.Last(k.T.Context(), k.Log(), subject); err != nil || m.Seq != 10 {
			t.Fatalf("the leader: %+v %v", m, err)
		}
	})
}

func TestTimerFiresOnceAndIsReplacedOrPurged(t *testing.T) { // N12
	plain(t, func(t *testing.T, k *kit) {
		fired := make(chan natswire.Delivery, 9)
		if err := k.EnsureConsumer(k.T.Context(), natswire.Consumer{Stream: k.Timers(), Durable: "app", Filter: k.DueFilter("app")}); err != nil {
			t.Fatal(err)
		}
		p, err := k.Pull(k.T.Context(), k.Timers(), "app", natswire.PullEvents{Deliver: func(d natswire.Delivery) { fired <- d }})
		if err != nil {
			t.Fatal(err)
		}
		p.Want(9)
		set := func(in time.Duration) {
			t.Helper()
			if err := natswire.SetGuard(k.T.Context(), k.Bus, k.Names, "app", "s", time.Now().Add(in), protocol.Guard{Adoption: "a"}); err != nil {
				t.Fatal(err)
			}
		}
		set(5 * time.Second)
		k.none(fired, 4*time.Second)
		set(5 * time.Second)
		k.none(fired, 4999*time.Millisecond)
		d := k.next(fired, time.Second)
		if d.Subject != k.DueSubject("app", "s") || d.Header.Get("Nats-Scheduler") != k.TimerSubject("app", "s", "a") {
			t.Fatalf("%+v", d.Stored)
		}
		d.Ack()
		k.none(fired, time.Hour)
		set(5 * time.Second)
		if err := natswire.RemoveGuard(k.T.Context(), k.Bus, k.Names, "app", "s", "a"); err != nil {
			t.Fatal(err)
		}
		k.none(fired, time.Hour)
		set(-time.Second)
		k.next(fired, 0)
		k.refused(protocol.CodeInternal, natswire.Msg{Subject: k.TimerSubject("app", "s", "b"), At: time.Now(), Target: k.CallSubject("tool")})
		k.refused(protocol.CodeInternal, natswire.Msg{Subject: k.CallSubject("tool"), At: time.Now(), Target: k.DueSubject("app", "s")})
	})
}

func TestMaxAckPendingCapsWhatIsActive(t *testing.T) { // N13
	plain(t, func(t *testing.T, k *kit) {
		got, _ := k.pull(k.Bus, 9, func(c *natswire.Consumer) { c.MaxAckPending = 1 })
		k.publish(k.call("1"))
		k.publish(k.call("2"))
		first := k.next(got, 0)
		k.none(got, 9*time.Second)
		first.Nak(time.Minute) // keeps its place
		k.none(got, 59*time.Second)
		first = k.next(got, 2*time.Second)
		first.Ack()
		if second := k.next(got, 0); string(second.Data) != "2" {
			t.Fatalf("%q", second.Data)
		}
		k.refused(protocol.CodeTooLarge, k.call(string(bytes.Repeat([]byte("x"), sim.MaxPayload+1))))
	})
}

func TestDeletedConsumerEndsItsPullers(t *testing.T) { // N15
	plain(t, func(t *testing.T, k *kit) {
		k.pull(k.Bus, 0)
		lost := make(chan error, 1)
		p, err := k.Pull(k.T.Context(), k.Calls(), "tool", natswire.PullEvents{Lost: func(err error) { lost <- err }})
		if err != nil {
			t.Fatal(err)
		}
		p.Want(1)
		if err := k.Bus.DeleteConsumer(k.T.Context(), k.Calls(), "tool"); err != nil {
			t.Fatal(err)
		}
		if err := <-lost; protocol.CodeOf(err) != protocol.CodeConsumerGone {
			t.Fatal(err)
		}
		if _, err := k.Pull(k.T.Context(), k.Calls(), "tool", natswire.PullEvents{}); protocol.CodeOf(err) != protocol.CodeNotFound {
			t.Fatal(err)
		}
	})
}

func TestFailedPublishLandsLate(t *testing.T) { // N16
	bubble(t, sim.Config{Seed: 1, Faults: sim.Faults{Late: 1}}, func(t *testing.T, k *kit) {
		k.refused(protocol.CodeUnreachable, k.call("x"))
		if n := len(k.Messages(k.Calls())); n != 0 {
			t.Fatalf("%d messages at once", n)
		}
		k.none(nil, 3*time.Second)
		if n := len(k.Messages(k.Calls())); n != 1 {
			t.Fatalf("%d messages in the end", n)
		}
	})
}

func TestListenersSeeWhatTheStreamRefuses(t *testing.T) { // N17, and that republished messages were stored
	plain(t, func(t *testing.T, k *kit) {
		raw, stored := make(chan natswire.Msg, 9), make(chan natswire.Msg, 9)
		for subject, to := range map[string]chan natswire.Msg{"tf.result.>": raw, k.DoneSubject("s"): stored} {
			if _, err := k.Subscribe(subject, func(m natswire.Msg) { to <- m }); err != nil {
				t.Fatal(err)
			}
		}
		m := natswire.Msg{Subject: k.ResultSubject("tool", "s", "c", 0), Header: natswire.Header{"traceparent": "t"}, Data: []byte("1")}
		k.publish(m)
		k.refused(protocol.CodeAnswered, m)
		synctest.Wait()
		if len(raw) != 2 || len(stored) != 1 {
			t.Fatalf("%d raw, %d stored", len(raw), len(stored))
		}
		done := <-stored
		session, tool, call, round, ok := k.ParseDone(done)
		if !ok || session != "s" || tool != "tool" || call != "c" || round != 0 || done.Header["Nats-Sequence"] != "1" || done.Header.Get("traceparent") != "t" {
			t.Fatalf("%+v", done)
		}
		k.publish(natswire.Msg{Subject: k.ClaimSubject("tool", "c", 0)})
		if synctest.Wait(); len(stored) != 0 {
			t.Fatal("a claim was republished")
		}
	})
}

func TestLostAckHidesAnAppend(t *testing.T) {
	bubble(t, sim.Config{Seed: 1, Faults: sim.Faults{LostAck: 1}}, func(t *testing.T, k *kit) {
		k.refused(protocol.CodeUnreachable, k.call("x"))
		records := k.Records()
		if len(records) != 1 || records[0].Acked {
			t.Fatalf("%+v", records)
		}
		k.SetFaults(sim.Faults{})
		k.publish(k.call("y"))
		if records = k.Records(); len(records) != 2 || !records[1].Acked {
			t.Fatalf("%+v", records)
		}
	})
}

func TestFullStreamRefuses(t *testing.T) {
	plain(t, func(t *testing.T, k *kit) {
		if err := k.Fill(k.Calls(), 1); err != nil {
			t.Fatal(err)
		}
		k.publish(k.call("1"))
		k.refused(protocol.CodeStorageFull, k.call("2"))
		if err := k.Fill(k.Calls(), 0); err != nil {
			t.Fatal(err)
		}
		k.publish(k.call("2"))
	})
}
