package sim_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/sim"
)

// rush is a pool of two workers that claim, start and answer calls while they are killed, restarted, paused and cut off.
type rush struct {
	t     *testing.T
	n     natswire.Names
	w     *sim.World
	clock natswire.SystemClock
	work  sync.WaitGroup

	mu     sync.Mutex
	starts map[string]int
}

// until tries again, with pauses, what may fail. It returns false when the process ends first.
func (s *rush) until(bus *sim.Bus, try func() error) bool {
	for try() != nil {
		fired, stop := s.clock.After(100 * time.Millisecond)
		select {
		case <-fired:
		case <-bus.Context().Done():
			stop()
			return false
		}
	}
	return true
}

// worker is one process of the pool.
func (s *rush) worker(node string) {
	bus := s.w.Connect(node)
	ctx := bus.Context()
	deliveries := make(chan natswire.Delivery, 10)
	s.work.Go(func() {
		var p natswire.Puller
		if !s.until(bus, func() (err error) {
			if err = bus.EnsureConsumer(ctx, natswire.Consumer{Stream: s.n.Calls(), Durable: "tool", Filter: s.n.CallSubject("tool"), AckWait: 3 * time.Second}); err != nil {
				return err
			}
			p, err = bus.Pull(ctx, s.n.Calls(), "tool", natswire.PullEvents{Deliver: func(d natswire.Delivery) { deliveries <- d }})
			return err
		}) {
			return
		}
		for i := 0; ; i++ {
			p.Want(1)
			select {
			case d := <-deliveries:
				s.execute(bus, d, fmt.Sprintf("%s-%d-%d", node, i, time.Now().UnixNano()))
			case <-ctx.Done():
				return
			}
		}
	})
}

func (s *rush) execute(bus *sim.Bus, d natswire.Delivery, id string) {
	ctx, call := bus.Context(), string(d.Data)
	var taken bool
	if !s.until(bus, func() error {
		err := natswire.StoreClaim(ctx, bus, s.n, "tool", call, 0, id, protocol.Claim{Worker: id})
		if taken = protocol.CodeOf(err) == protocol.CodeAnswered; taken {
			return nil
		}
		return err
	}) {
		return
	}
	if !taken {
		if bus.Step() != nil {
			return
		}
		s.mu.Lock()
		s.starts[call]++
		s.mu.Unlock()
		if !s.until(bus, func() error {
			_, err := natswire.StoreResult(ctx, bus, s.n, "tool", "s", call, 0, nil, protocol.Result{Outcome: protocol.OutcomeCompleted, Value: []byte(`{}`), Worker: id})
			if protocol.CodeOf(err) == protocol.CodeAnswered {
				return nil
			}
			return err
		}) {
			return
		}
	}
	d.Ack()
}

// run returns how the storm went.
func (s *rush) run(seed uint64) {
	const calls = 30
	s.worker("w1")
	s.worker("w2")
	client := s.w.Connect("client")
	chance := rand.New(rand.NewPCG(seed, 1))
	pause := func(most time.Duration) { <-time.After(time.Duration(chance.Int64N(int64(most)))) }
	s.work.Go(func() {
		for i := range calls {
			m := natswire.Msg{Subject: s.n.CallSubject("tool"), ID: fmt.Sprint("c", i, ".0"), Data: fmt.Append(nil, "c", i)}
			s.until(client, func() error { _, err := client.Publish(client.Context(), m); return err })
		}
	})
	for range 6 {
		pause(5 * time.Second)
		s.w.Kill("w1")
		s.worker("w1")
		pause(5 * time.Second)
		s.w.Cut("w1")
		pause(5 * time.Second)
		s.w.Heal("w1")
		s.w.Pause("w2")
		pause(10 * time.Second)
		if chance.IntN(3) > 0 {
			s.w.Resume("w2")
		} else {
			s.w.Kill("w2")
			s.worker("w2")
		}
	}
	s.w.SetFaults(sim.Faults{})
	s.until(client, func() error {
		st, err := client.ConsumerState(client.Context(), s.n.Calls(), "tool")
		if err == nil && (st.Pending > 0 || st.AckPending > 0) {
			return context.DeadlineExceeded
		}
		return err
	})
	if left := s.w.Messages(s.n.Calls()); len(left) > 0 {
		s.t.Errorf("%d calls are left", len(left))
	}
	for i := range calls {
		call := fmt.Sprint("c", i)
		if s.starts[call] > 1 {
			s.t.Errorf("call %s was started %d times", call, s.starts[call])
		}
		if n := len(s.stored(s.n.ClaimSubject("tool", call, 0))); n != 1 {
			s.t.Errorf("call %s has %d claims", call, n)
		}
		if n := len(s.stored(s.n.ResultSubject("tool", "s", call, 0))); n > 1 {
			s.t.Errorf("call %s has %d results", call, n)
		}
	}
}

func (s *rush) stored(subject string) []sim.Record {
	return slices.DeleteFunc(s.w.Records(), func(r sim.Record) bool { return r.Subject != subject })
}

func weather(t *testing.T, seed uint64) (trace []string) {
	synctest.Test(t, func(t *testing.T) {
		w := sim.New(sim.Config{Names: names(t), Seed: seed, Faults: unkind})
		go w.Run(t.Context())
		s := &rush{t: t, n: names(t), w: w, starts: map[string]int{}}
		s.run(seed)
		trace = w.Trace()
		w.Close()
		s.work.Wait()
	})
	return trace
}

func TestClaimsHoldInAStorm(t *testing.T) {
	for seed := range uint64(25) {
		first, second := weather(t, seed+1), weather(t, seed+1)
		if t.Failed() || !slices.Equal(first, second) {
			for i := range min(len(first), len(second)) {
				if first[i] != second[i] {
					t.Fatalf("seed %d, line %d:\n%s\n%s", seed+1, i, first[i], second[i])
				}
			}
			t.Fatalf("seed %d", seed+1)
		}
	}
}
