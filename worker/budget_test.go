//go:build !race

package worker_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

// null is a bus that takes everything and costs nothing: what is left is the worker.
type null struct {
	natswire.Bus
	on     chan natswire.PullEvents
	wanted chan int
}

func (*null) Publish(context.Context, natswire.Msg) (natswire.Ack, error) { return natswire.Ack{}, nil }
func (*null) Subscribe(string, func(natswire.Msg)) (func(), error)        { return func() {}, nil }
func (*null) Last(context.Context, string, string) (natswire.Stored, error) {
	return natswire.Stored{Time: time.Now()}, nil
}
func (*null) ConsumerState(context.Context, string, string) (natswire.ConsumerState, error) {
	return natswire.ConsumerState{}, nil
}
func (n *null) Pull(_ context.Context, _, _ string, on natswire.PullEvents) (natswire.Puller, error) {
	n.on <- on
	return n, nil
}
func (n *null) Want(int) {}
func (n *null) Close()   {}

// ackedSignal says when a delivery was acked.
type ackedSignal chan struct{}

func (s ackedSignal) Ack()              { s <- struct{}{} }
func (s ackedSignal) Nak(time.Duration) { panic("nak") }
func (s ackedSignal) InProgress()       {}
func (s ackedSignal) Term(string)       { panic("term") }

// bare runs calls through a worker on a null bus.
func bare(t testing.TB, effect tool.Effect) (one func()) {
	t.Helper()
	e := echo("echo", effect)
	bus := &null{on: make(chan natswire.PullEvents, 1)}
	w, err := worker.New(worker.Config{Bus: bus, Names: names(t), Tools: []tool.Tool{e}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	data, err := json.Marshal(protocol.Envelope{
		V: protocol.Version, App: "app", User: "u", Session: "s", Call: "c", Tool: "echo", Digest: digest(t, e), Effect: effect,
		Args: json.RawMessage(`{"text":"to be or not to be"}`), AnswersTo: protocol.MailboxResults, Deadline: time.Now().Add(time.Hour).UnixMilli(),
	})
	if err != nil {
		t.Fatal(err)
	}
	acked := make(ackedSignal, 1)
	on := <-bus.on
	d := natswire.Delivery{Stored: natswire.Stored{Data: data, Time: time.Now()}, Attempt: 1, Acker: acked}
	return func() {
		d.Seq++
		on.Deliver(d)
		<-acked
	}
}

// The worker's own share of a call: decoding and encoding included, the bus and the tool left out.
func TestCallStaysInItsAllocationBudget(t *testing.T) {
	for effect, budget := range map[tool.Effect]float64{tool.Read: 42, tool.AtMostOnce: 47} {
		one := bare(t, effect)
		if got := testing.AllocsPerRun(200, one); got > budget {
			t.Errorf("%s: %.0f allocations a call, the budget is %.0f", effect, got, budget)
		} else {
			t.Logf("%s: %.0f allocations a call", effect, got)
		}
	}
}

func BenchmarkWorkerAlone(b *testing.B) {
	one := bare(b, tool.Read)
	b.ReportAllocs()
	for b.Loop() {
		one()
	}
}
