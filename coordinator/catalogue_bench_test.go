package coordinator

import (
	"encoding/json"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

var registered = flag.Int("tools", 1000, "tools that are registered in BenchmarkCatalogue")

// registration is the beat of a worker that serves tool i.
func registration(i int, text string) protocol.Registration {
	name := fmt.Sprintf("tool_%05d", i)
	return protocol.Registration{V: protocol.Version, Worker: fmt.Sprintf("w%d", i%100), Slots: 4, Started: 1, Declaration: protocol.Declaration{
		V: protocol.Version, Name: name, Description: text, Effect: protocol.EffectIdempotent, Parameters: json.RawMessage(
			`{"type":"object","properties":{"order":{"type":"string","description":"the order's number"},"lines":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string"},"count":{"type":"integer","minimum":1}},"required":["sku"]}}},"required":["order"],"additionalProperties":false}`),
	}}
}

// beats publishes registrations of n tools, several at once.
func beats(b *testing.B, conn *natswire.Conn, n int, text string) {
	b.Helper()
	var all sync.WaitGroup
	for part := range 16 {
		all.Go(func() {
			for i := part; i < n; i += 16 {
				beat(b, conn, registration(i, text))
			}
		})
	}
	all.Wait()
}

func beat(b *testing.B, conn *natswire.Conn, r protocol.Registration) {
	data, err := json.Marshal(r)
	if err == nil {
		_, err = conn.Publish(b.Context(), natswire.Msg{Subject: conn.Names().RegistrationSubject(r.Declaration.Name, r.Worker), Data: data, TTL: time.Hour})
	}
	if err != nil {
		b.Error(err)
	}
}

// BenchmarkCatalogue measures a registry of many tools: go test -bench Catalogue -benchtime 20x -tools 10000 ./coordinator.
func BenchmarkCatalogue(b *testing.B) {
	conn := natstest.Start(b).Connect(b, "")
	n := *registered
	beats(b, conn, n, "An order's lines.")
	b.Logf("%d tools", n)
	start := func(b *testing.B) *Coordinator {
		c, err := New(Config{Bus: conn, Names: conn.Names()})
		if err != nil {
			b.Fatal(err)
		}
		if err := c.catalogue.start(b.Context()); err != nil {
			b.Fatal(err)
		}
		return c
	}
	from := time.Now()
	c := start(b)
	b.Logf("up after %s, with %d declarations to accept", time.Since(from), n)
	for {
		if _, err := conn.ConsumerState(b.Context(), conn.Names().Calls(), registration(n-1, "").Declaration.Name); err == nil {
			break
		}
		if err := natswire.Sleep(b.Context(), natswire.SystemClock{}, 50*time.Millisecond); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("every pool has its consumer after %s", time.Since(from))
	b.Cleanup(func() { c.catalogue.stop() })
	b.Run("restart", func(b *testing.B) {
		var before, after runtime.MemStats
		for b.Loop() {
			runtime.GC()
			runtime.ReadMemStats(&before)
			other := start(b)
			b.StopTimer()
			runtime.GC()
			runtime.ReadMemStats(&after)
			if len(other.catalogue.tools) != n {
				b.Fatalf("%d tools are known", len(other.catalogue.tools))
			}
			other.catalogue.stop()
			b.StartTimer()
		}
		b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/float64(n), "B/tool")
	})
	b.Run("look at all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.catalogue.gather(b.Context(), "*"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("update of one", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			r := registration(i%n, fmt.Sprint("Version ", i, " of ", b.N))
			beat(b, conn, r)
			for digest := r.Declaration.Digest(); ; runtime.Gosched() {
				if o, ok := c.catalogue.offer(r.Declaration.Name); ok && o.Pinned == digest {
					break
				}
			}
		}
	})
	b.Run("a beat of one that is known", func(b *testing.B) {
		r := registration(n-1, "An order's lines.")
		data, err := json.Marshal(r)
		if err != nil {
			b.Fatal(err)
		}
		subject := conn.Names().RegistrationSubject(r.Declaration.Name, r.Worker)
		b.ReportAllocs()
		for b.Loop() {
			got, err := c.catalogue.registration(subject, data)
			if err != nil || c.catalogue.stale(got) {
				b.Fatal("it is news", err)
			}
		}
	})
	b.Run("offers of 20", func(b *testing.B) {
		names := make([]string, 20)
		for i := range names {
			names[i] = registration(i*n/20, "").Declaration.Name
		}
		b.ReportAllocs()
		for b.Loop() {
			c.catalogue.learn(b.Context(), names...)
			if got := c.catalogue.offers(names); len(got) != 20 {
				b.Fatalf("%d offers", len(got))
			}
		}
	})
	b.Run("what a client's call takes", func(b *testing.B) {
		name := registration(n-1, "").Declaration.Name
		b.ReportAllocs()
		for b.Loop() {
			if got := c.catalogue.about(name); len(got) != 1 {
				b.Fatalf("%d offers", len(got))
			}
		}
	})
}
