package worker_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

// BenchmarkCalls is the whole way of a call through a worker on an embedded server over loopback: publish, pull, claim if
// the class asks for it, run, store, hear of it. Allocations are those of publisher, worker and server together.
func BenchmarkCalls(b *testing.B) {
	for _, effect := range []tool.Effect{tool.Read, tool.AtMostOnce} {
		for _, flight := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/flight=%d", effect, flight), func(b *testing.B) { benchmarkCalls(b, effect, flight) })
		}
	}
}

func benchmarkCalls(b *testing.B, effect tool.Effect, flight int) {
	l := goLive(b)
	e := echo("echo", effect)
	l.consumer("echo", 30*time.Second)
	l.start("w1", "", worker.Config{Slots: 64}, e)
	env := protocol.Envelope{
		V: protocol.Version, App: "app", User: "u", Session: "s", Tool: "echo", Digest: digest(b, e), Effect: effect,
		Args: json.RawMessage(`{"text":"to be or not to be"}`), AnswersTo: protocol.MailboxResults, Deadline: time.Now().Add(time.Hour).UnixMilli(),
	}
	tickets := make(chan int, flight) // numbers of calls to be published
	failed := make(chan error, flight)
	for range flight {
		go func() {
			for n := range tickets {
				mine := env
				mine.Call = "c" + strconv.Itoa(n)
				data, err := json.Marshal(mine)
				if err == nil {
					_, err = l.bus.Publish(b.Context(), natswire.Msg{Subject: l.names.CallSubject("echo"), Data: data})
				}
				if err != nil {
					failed <- err
				}
			}
		}()
	}
	wait := func() {
		select {
		case <-l.done:
		case err := <-failed:
			b.Fatal(err)
		case <-time.After(patience):
			b.Fatal("no answer")
		}
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n >= flight {
			wait()
		}
		tickets <- n
		n++
	}
	for range min(n, flight) {
		wait()
	}
	close(tickets)
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "calls/s")
}
