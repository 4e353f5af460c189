package bench

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
)

// payloadSize is the size in bytes of a request and of an answer, about that of a small tool call.
const payloadSize = 256

// NameCore is the name of the subject that OpenCore opens.
const NameCore = "core request-reply"

// core is a NATS request and its reply: nothing is stored. It is the honest lower bound of anything on NATS.
type core struct{ client *nats.Conn }

// OpenCore opens the measurement of core request-reply, between two connections.
func OpenCore(_ context.Context, b *Broker) (Subject, func(), error) {
	server, err := b.Connect("bench-core-responder")
	if err != nil {
		return nil, nil, err
	}
	answer := make([]byte, payloadSize)
	_, err = server.Subscribe("bench.core", func(m *nats.Msg) { _ = m.Respond(answer) }) // the requester has a deadline
	if err == nil {
		err = server.Flush()
	}
	if err != nil {
		server.Close()
		return nil, nil, fmt.Errorf("core responder: %w", err)
	}
	client, err := b.Connect("bench-core-requester")
	if err != nil {
		server.Close()
		return nil, nil, err
	}
	return core{client}, func() { client.Close(); server.Close() }, nil
}

func (core) Name() string { return NameCore }

func (c core) Run(ctx context.Context, inFlight, n int) (Sample, error) {
	question := make([]byte, payloadSize)
	return Drive(ctx, inFlight, n, func(ctx context.Context, _, _ int) error {
		_, err := c.client.RequestWithContext(ctx, "bench.core", question)
		return err
	})
}
