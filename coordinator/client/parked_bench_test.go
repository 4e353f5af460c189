package client

import (
	"flag"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

var parkedCalls = flag.Int("parked", 20_000, "calls that wait in BenchmarkParked")

// BenchmarkParked measures reads of an index in which many calls wait: go test -bench Parked -parked 1000000.
func BenchmarkParked(b *testing.B) {
	conn := natstest.Start(b).Connect(b, "")
	c, err := New(Config{Bus: conn, Names: conn.Names()})
	if err != nil {
		b.Fatal(err)
	}
	fill(b, conn, *parkedCalls)
	last := strconv.Itoa(*parkedCalls - 1)
	b.Run("first page", func(b *testing.B) {
		for b.Loop() {
			page, err := c.Parked(b.Context(), ParkedFilter{}, 0, 100)
			if err != nil || len(page.Parked) != 100 {
				b.Fatal(len(page.Parked), err)
			}
		}
	})
	b.Run("one session", func(b *testing.B) {
		for b.Loop() {
			page, err := c.Parked(b.Context(), ParkedFilter{App: "helper", Session: "s" + last}, 0, 100)
			if err != nil || len(page.Parked) != 1 {
				b.Fatal(len(page.Parked), err)
			}
		}
	})
	b.Run("by call id", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.FindParked(b.Context(), "c"+last); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("by key", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.ParkedCall(b.Context(), "helper", "s"+last, "c"+last); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("by confirmation id", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.FindParked(b.Context(), "q"+last); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// fill parks n calls.
func fill(b *testing.B, conn *natswire.Conn, n int) {
	b.Helper()
	var writing sync.WaitGroup
	next := make(chan int)
	for range 64 {
		writing.Go(func() {
			for i := range next {
				id := strconv.Itoa(i)
				p := question("s"+id, "c"+id, "q"+id, `{"amount":`+id+`,"to":"`+fmt.Sprintf("%0100d", i)+`"}`)
				data, err := protocol.Encode(p)
				if err == nil {
					_, err = conn.Publish(b.Context(), natswire.Msg{Subject: conn.Names().ParkSubject(p.App, p.Session, p.Call), Data: data})
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	writing.Wait()
}
