package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/sim"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

// Two workers on a network that loses, repeats, delays and lies. An at_most_once call never starts twice; every call that
// may be repeated is answered once the network is well again; nothing is left in the queue.
func TestStorm(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed+1), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { storm(t, seed+1) })
		})
	}
}

func storm(t *testing.T, seed uint64) {
	n := names(t)
	world := sim.New(sim.Config{Names: n, Seed: seed, Faults: sim.Faults{
		LostAck: 0.1, Late: 0.1, Timeout: 0.05, Drop: 0.1, Delay: 0.2, Twin: 0.1, Forget: 0,
	}})
	driven, stopDriver := context.WithCancel(context.Background())
	var driver sync.WaitGroup
	driver.Go(func() { world.Run(driven) })
	defer func() { world.Close(); stopDriver(); driver.Wait() }()

	var mu sync.Mutex
	starts := map[string]int{}
	tools := []tool.Tool{echo("once", tool.AtMostOnce), echo("again", tool.Idempotent)}
	for _, tl := range tools {
		tl.(*fn).run = func(ctx tool.Context, args json.RawMessage) (json.RawMessage, error) {
			mu.Lock()
			starts[ctx.FunctionCallID()]++
			mu.Unlock()
			<-time.After(700 * time.Millisecond)
			return args, nil
		}
	}
	coordinator := world.Connect("coordinator")
	persist(func() error {
		for _, tl := range tools {
			if err := coordinator.EnsureConsumer(t.Context(), natswire.Consumer{
				Stream: n.Calls(), Durable: tl.Name(), Filter: n.CallSubject(tl.Name()), AckWait: 3 * time.Second, MaxDeliver: -1, MaxAckPending: -1,
			}); err != nil {
				return err
			}
		}
		return nil
	})

	ctx, stop := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	for _, id := range []string{"w1", "w2"} {
		var ids atomic.Int64
		w, err := worker.New(worker.Config{
			Bus: world.Connect(id), Names: n, ID: id, Tools: tools, Slots: 3,
			NewID: func() string { return fmt.Sprintf("%s-%d", id, ids.Add(1)) },
		})
		if err != nil {
			t.Fatal(err)
		}
		workers.Go(func() { _ = w.Run(ctx) })
	}
	defer func() { stop(); workers.Wait() }()

	var calls []protocol.Envelope
	for i := range 20 {
		tl := tools[i%2].(*fn)
		env := protocol.Envelope{
			V: protocol.Version, App: "app", User: "u", Session: "s", Call: fmt.Sprint("c", i), Tool: tl.name, Digest: digest(t, tl), Effect: tl.settings.Effect,
			Args: json.RawMessage(`{"n":1}`), AnswersTo: protocol.MailboxResults, Deadline: time.Now().Add(time.Hour).UnixMilli(),
		}
		calls = append(calls, env)
		data, err := json.Marshal(env)
		if err != nil {
			t.Fatal(err)
		}
		persist(func() error {
			_, err := coordinator.Publish(t.Context(), natswire.Msg{Subject: n.CallSubject(tl.name), ID: env.Call, Data: data})
			return err
		})
	}
	<-time.After(2 * time.Minute)
	world.SetFaults(sim.Faults{})
	<-time.After(5 * time.Minute)

	mu.Lock()
	defer mu.Unlock()
	for _, c := range calls {
		var result, claim error
		persist(func() error {
			_, result = coordinator.Last(t.Context(), n.Results(), n.ResultSubject(c.Tool, c.Session, c.Call, 0))
			_, claim = coordinator.Last(t.Context(), n.Results(), n.ClaimSubject(c.Tool, c.Call, 0))
			return nil
		})
		switch {
		case c.Effect == tool.AtMostOnce && starts[c.Call] > 1:
			t.Errorf("call %s was started %d times", c.Call, starts[c.Call])
		case c.Effect == tool.AtMostOnce && starts[c.Call] == 1 && claim != nil:
			t.Errorf("call %s was started without a claim: %v", c.Call, claim)
		case starts[c.Call] > 0 && result != nil:
			t.Errorf("call %s was started and has no result: %v", c.Call, result)
		case c.Effect == tool.Idempotent && result != nil:
			t.Errorf("call %s has no result: %v", c.Call, result)
		}
	}
	for _, tl := range tools {
		st, err := coordinator.ConsumerState(t.Context(), n.Calls(), tl.Name())
		if err != nil || st.Pending != 0 || st.AckPending != 0 {
			t.Errorf("queue of %s: %+v, %v", tl.Name(), st, err)
		}
	}
	if t.Failed() {
		for _, line := range world.Trace() {
			t.Log(line)
		}
	}
}

// persist tries until it works.
func persist(try func() error) {
	for try() != nil {
		<-time.After(100 * time.Millisecond)
	}
}
