package natswire_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
)

// The benchmarks compare the Bus with plain NATS, on one server over loopback, with 256 bytes.

var payload = make([]byte, 256)

func BenchmarkPublish(b *testing.B) {
	server := natstest.Start(b)
	conn := server.Connect(b, "")
	subject := conn.Names().LogSubject("app", "s1")
	for b.Loop() {
		if _, err := conn.Publish(b.Context(), natswire.Msg{Subject: subject, Data: payload}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPublishParallel(b *testing.B) {
	server := natstest.Start(b)
	conn := server.Connect(b, "")
	subject := conn.Names().LogSubject("app", "s1")
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := conn.Publish(b.Context(), natswire.Msg{Subject: subject, Data: payload}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkPlainPublish(b *testing.B) {
	js, subject := plain(b)
	for b.Loop() {
		if _, err := js.Publish(b.Context(), subject, payload); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPlainPublishParallel(b *testing.B) {
	js, subject := plain(b)
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := js.Publish(b.Context(), subject, payload); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func plain(b *testing.B) (jetstream.JetStream, string) {
	server := natstest.Start(b)
	conn := server.Connect(b, "")
	nc, err := nats.Connect(server.URL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	return js, conn.Names().LogSubject("app", "s1")
}

func BenchmarkCoreRequest(b *testing.B) {
	server := natstest.Start(b)
	nc, err := nats.Connect(server.URL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	if _, err := nc.Subscribe("echo", func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := nc.Request("echo", payload, time.Second); err != nil {
			b.Fatal(err)
		}
	}
}

// One call at a time: publish, delivery, ack, the next is wanted.
func BenchmarkPullRoundTrip(b *testing.B) {
	conn := natstest.Start(b).Connect(b, "")
	names := conn.Names()
	durable := natswire.Consumer{
		Stream: names.Calls(), Durable: "tool", Filter: names.CallSubject("tool"), AckWait: time.Minute, MaxDeliver: -1, MaxAckPending: -1,
	}
	if err := conn.EnsureConsumer(b.Context(), durable); err != nil {
		b.Fatal(err)
	}
	came := make(chan natswire.Delivery, 16)
	p, err := conn.Pull(b.Context(), names.Calls(), "tool", natswire.PullEvents{Deliver: func(d natswire.Delivery) { came <- d }})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Close)
	p.Want(8)
	for b.Loop() {
		if _, err := conn.Publish(b.Context(), natswire.Msg{Subject: durable.Filter, Data: payload}); err != nil {
			b.Fatal(err)
		}
		(<-came).Ack()
		p.Want(1)
	}
}

func BenchmarkPlainPullRoundTrip(b *testing.B) {
	server := natstest.Start(b)
	conn := server.Connect(b, "")
	names := conn.Names()
	nc, err := nats.Connect(server.URL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	consumer, err := js.CreateConsumer(b.Context(), names.Calls(), jetstream.ConsumerConfig{
		Durable: "tool", FilterSubject: names.CallSubject("tool"), AckPolicy: jetstream.AckExplicitPolicy,
	})
	if err != nil {
		b.Fatal(err)
	}
	came := make(chan jetstream.Msg, 16)
	consuming, err := consumer.Consume(func(m jetstream.Msg) { came <- m }, jetstream.PullMaxMessages(8))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(consuming.Stop)
	for b.Loop() {
		if _, err := js.Publish(b.Context(), names.CallSubject("tool"), payload); err != nil {
			b.Fatal(err)
		}
		if err := (<-came).Ack(); err != nil {
			b.Fatal(err)
		}
	}
}
