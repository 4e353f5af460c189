package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/sim"
)

func TestKilledNodeIsSilent(t *testing.T) {
	plain(t, func(t *testing.T, k *kit) {
		victim := k.Connect("b")
		got, _ := k.pull(victim, 9)
		if _, err := victim.Subscribe("tf.own.b", func(natswire.Msg) {}); err != nil {
			t.Fatal(err)
		}
		k.publish(k.call("x"))
		d := k.next(got, 0)
		k.Kill("b")
		if <-victim.Context().Done(); protocol.CodeOf(context.Cause(victim.Context())) != protocol.CodeUnreachable {
			t.Fatal(context.Cause(victim.Context()))
		}
		d.Ack()
		if _, err := victim.Publish(t.Context(), k.call("y")); protocol.CodeOf(err) != protocol.CodeUnreachable {
			t.Fatal(err)
		}
		if _, err := k.Request(t.Context(), natswire.Msg{Subject: "tf.own.b"}); protocol.CodeOf(err) != protocol.CodeNotFound {
			t.Fatal(err)
		}
		again, _ := k.pull(k.World.Connect("b"), 9)
		if d := k.next(again, 10*time.Second); d.Attempt != 2 {
			t.Fatalf("attempt %d", d.Attempt)
		}
		k.none(got, time.Hour)
	})
}

func TestPausedNodeStandsStill(t *testing.T) {
	plain(t, func(t *testing.T, k *kit) {
		stopped := k.Connect("b")
		got, _ := k.pull(stopped, 9)
		k.Pause("b")
		k.publish(k.call("x"))
		k.none(got, 5*time.Second) // it is on its way, and its ack wait runs
		returned := make(chan error, 1)
		go func() {
			_, err := stopped.Last(t.Context(), k.Calls(), k.CallSubject("tool"))
			returned <- err
		}()
		select {
		case err := <-returned:
			t.Fatal(err)
		case <-time.After(time.Minute):
		}
		fired, _ := stopped.Clock().After(time.Second)
		k.none(nil, time.Minute)
		if len(fired) != 0 {
			t.Fatal("a clock fires in a process that is paused")
		}
		k.Resume("b")
		<-fired
		if err := <-returned; err != nil {
			t.Fatal(err)
		}
		if d := k.next(got, 0); d.Attempt != 1 {
			t.Fatalf("attempt %d", d.Attempt)
		}
		if d := k.next(got, 0); d.Attempt != 2 {
			t.Fatalf("attempt %d", d.Attempt)
		}
	})
}

func TestRequestIsAnsweredByEmit(t *testing.T) {
	plain(t, func(t *testing.T, k *kit) {
		other := k.Connect("b")
		stop, err := other.Subscribe("tf.own.b", func(m natswire.Msg) {
			_ = other.Emit(t.Context(), natswire.Msg{Subject: m.Reply, Data: append(m.Data, '!')})
		})
		if err != nil {
			t.Fatal(err)
		}
		m, err := k.Request(t.Context(), natswire.Msg{Subject: "tf.own.b", Data: []byte("hi")})
		if err != nil || string(m.Data) != "hi!" {
			t.Fatalf("%q %v", m.Data, err)
		}
		stop()
		if _, err := k.Request(t.Context(), natswire.Msg{Subject: "tf.own.b"}); protocol.CodeOf(err) != protocol.CodeNotFound {
			t.Fatal(err)
		}
	})
}

func TestUnansweredCallEndsAtItsDeadline(t *testing.T) {
	bubble(t, sim.Config{Seed: 1, Faults: sim.Faults{Timeout: 1}}, func(t *testing.T, k *kit) {
		start := time.Now()
		k.refused(protocol.CodeUnreachable, k.call("x"))
		if waited := time.Since(start); waited != 5*time.Second {
			t.Fatalf("waited %s", waited)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := k.Publish(ctx, k.call("x")); protocol.CodeOf(err) != protocol.CodeCancelled {
			t.Fatal(err)
		}
	})
}

func TestLostAckOfADeliveryBringsItBack(t *testing.T) {
	bubble(t, sim.Config{Seed: 1}, func(t *testing.T, k *kit) {
		got, _ := k.pull(k.Bus, 9)
		heard := make(chan natswire.Msg, 9)
		if _, err := k.Subscribe("tf.progress.>", func(m natswire.Msg) { heard <- m }); err != nil {
			t.Fatal(err)
		}
		k.publish(k.call("x"))
		d := k.next(got, 0)
		k.SetFaults(sim.Faults{Drop: 1})
		d.Ack()
		if err := k.Emit(t.Context(), natswire.Msg{Subject: k.ProgressSubject("tool", "s", "c")}); err != nil {
			t.Fatal(err)
		}
		if d := k.next(got, 10*time.Second); d.Attempt != 2 {
			t.Fatalf("attempt %d", d.Attempt)
		}
		if len(heard) != 0 {
			t.Fatal("a lost message was heard")
		}
	})
}

func TestTwinComesBeforeTheAckWaitEnds(t *testing.T) {
	bubble(t, sim.Config{Seed: 1, Faults: sim.Faults{Twin: 1}}, func(t *testing.T, k *kit) {
		got, _ := k.pull(k.Bus, 2)
		k.publish(k.call("x"))
		k.next(got, 0)
		if d := k.next(got, 2*time.Second); d.Attempt != 2 {
			t.Fatalf("attempt %d", d.Attempt)
		}
	})
}

func TestDelayedMessagesKeepTheirOrder(t *testing.T) {
	for seed := range uint64(10) {
		bubble(t, sim.Config{Seed: seed + 1, Faults: sim.Faults{Delay: 0.5, MaxDelay: 4 * time.Second}}, func(t *testing.T, k *kit) {
			heard := make(chan natswire.Msg, 10)
			if _, err := k.Subscribe(k.LiveSubject("app", "s"), func(m natswire.Msg) { heard <- m }); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			for i := range 10 {
				k.publish(natswire.Msg{Subject: k.LogSubject("app", "s"), Data: []byte{byte(i)}})
			}
			for i := range 10 {
				if m := <-heard; m.Data[0] != byte(i) {
					t.Fatalf("message %d came as number %d", m.Data[0], i)
				}
			}
			if waited := time.Since(start); waited == 0 {
				t.Fatal("nothing was delayed")
			}
		})
	}
}

func TestNodeThatIsCutOffMissesWhatComes(t *testing.T) {
	plain(t, func(t *testing.T, k *kit) {
		away := k.World.Connect("b")
		got, _ := k.pull(away, 1)
		heard := make(chan natswire.Msg, 9)
		if _, err := away.Subscribe(k.LiveSubject("app", "s"), func(m natswire.Msg) { heard <- m }); err != nil {
			t.Fatal(err)
		}
		k.publish(k.call("1"))
		first := k.next(got, 0)
		k.World.Cut("b")
		first.Ack()
		k.publish(natswire.Msg{Subject: k.LogSubject("app", "s")})
		if _, err := away.Publish(t.Context(), k.call("2")); protocol.CodeOf(err) != protocol.CodeUnreachable {
			t.Fatal(err)
		}
		k.none(got, 15*time.Second)
		k.World.Heal("b")
		if len(heard) != 0 || len(k.Messages(k.Calls())) != 1 {
			t.Fatal("something passed the cut")
		}
		k.none(got, 15*time.Second) // it wanted one, and that came
	})
	plain(t, func(t *testing.T, k *kit) {
		away := k.World.Connect("b")
		got, _ := k.pull(away, 1)
		k.World.Cut("b")
		k.publish(k.call("1"))
		k.none(got, time.Second)
		k.World.Heal("b")
		if d := k.next(got, 10*time.Second); d.Attempt != 2 {
			t.Fatalf("attempt %d", d.Attempt)
		}
	})
}

func TestFailedCallHasNoEffect(t *testing.T) {
	bubble(t, sim.Config{Seed: 1, Faults: sim.Faults{Fail: 1}}, func(t *testing.T, k *kit) {
		k.refused(protocol.CodeUnreachable, k.call("x"))
		k.none(nil, time.Minute)
		if n := len(k.Records()); n != 0 {
			t.Fatalf("%d messages", n)
		}
	})
}
