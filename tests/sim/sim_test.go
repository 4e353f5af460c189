package sim_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/sim"
)

func names(t testing.TB) natswire.Names {
	n, err := natswire.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// history runs a small workload: two processes append to one log with compare-and-set, a third pulls a queue they fill.
func history(t *testing.T, seed uint64, f sim.Faults) (trace []string, appended int) {
	synctest.Test(t, func(t *testing.T) {
		n := names(t)
		w := sim.New(sim.Config{Names: n, Seed: seed, Faults: f})
		go w.Run(t.Context())
		const each = 10
		var wg sync.WaitGroup
		for _, node := range []string{"a", "b"} {
			bus := w.Connect(node)
			wg.Go(func() {
				for i := 0; i < each; {
					tail, err := bus.Last(t.Context(), n.Log(), n.LogSubject("app", "s"))
					if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
						continue
					}
					_, err = bus.Publish(t.Context(), natswire.Msg{Subject: n.LogSubject("app", "s"), Expect: &tail.Seq, Data: fmt.Append(nil, node, i)})
					if err != nil {
						continue
					}
					i++
					_, _ = bus.Publish(t.Context(), natswire.Msg{Subject: n.CallSubject("tool"), Data: fmt.Append(nil, node, i)})
				}
			})
		}
		puller := w.Connect("c")
		for puller.EnsureConsumer(t.Context(), natswire.Consumer{Stream: n.Calls(), Durable: "tool", Filter: n.CallSubject("tool"), AckWait: 10 * time.Second}) != nil {
		}
		for {
			p, err := puller.Pull(t.Context(), n.Calls(), "tool", natswire.PullEvents{Deliver: func(d natswire.Delivery) { d.Ack() }})
			if err == nil {
				p.Want(1000)
				break
			}
		}
		wg.Wait()
		for {
			st, err := puller.ConsumerState(t.Context(), n.Calls(), "tool")
			if err == nil && st.Pending == 0 && st.AckPending == 0 {
				break
			}
			<-time.After(time.Second)
		}
		trace = w.Trace()
		for _, r := range w.Records() {
			if r.Stream == n.Log() {
				appended++
			}
		}
		w.Close()
	})
	return trace, appended
}

var unkind = sim.Faults{LostAck: 0.1, Late: 0.1, Fail: 0.05, Timeout: 0.05, Drop: 0.1, Delay: 0.2, Twin: 0.1, Stale: 0.2, Forget: 0.05}

func TestOneSeedGivesOneHistory(t *testing.T) {
	for seed := range uint64(20) {
		first, appended := history(t, seed+1, unkind)
		if appended < 20 {
			t.Fatalf("seed %d: %d of 20 appends landed", seed+1, appended)
		}
		second, _ := history(t, seed+1, unkind)
		if !slices.Equal(first, second) {
			for i := range min(len(first), len(second)) {
				if first[i] != second[i] {
					t.Fatalf("seed %d, line %d:\n%s\n%s", seed+1, i, first[i], second[i])
				}
			}
			t.Fatalf("seed %d: %d and %d lines", seed+1, len(first), len(second))
		}
	}
	a, _ := history(t, 1, unkind)
	b, _ := history(t, 2, unkind)
	if slices.Equal(a, b) {
		t.Fatal("two seeds gave the same history")
	}
}

func TestPlainWorldNeedsNoDriver(t *testing.T) {
	trace, appended := history(t, 0, sim.Faults{})
	if appended != 20 {
		t.Fatalf("%d appends landed: %v", appended, trace)
	}
}
