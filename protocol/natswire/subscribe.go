package natswire

import (
	"github.com/nats-io/nats.go"

	"github.com/toolfabric/toolfabric/protocol"
)

// Subscribe implements Bus.
func (c *Conn) Subscribe(subject string, deliver func(Msg)) (func(), error) {
	unsubscribe, err := c.Listen(subject, deliver)
	if err != nil {
		return nil, err
	}
	if err := c.settled(subject); err != nil {
		unsubscribe()
		return nil, err
	}
	return unsubscribe, nil
}

// Listen implements Bus.
func (c *Conn) Listen(subject string, deliver func(Msg)) (func(), error) {
	sub, err := c.nc.Subscribe(subject, func(m *nats.Msg) { deliver(received(m)) })
	if err != nil {
		return nil, protocol.Wrap(err, protocol.CodeUnreachable, "subscribe to %s", subject)
	}
	// A slow listener costs itself messages, at the library's bound; what is republished is read again anyway.
	return func() { _ = sub.Unsubscribe() }, nil
}

// settled waits until the server has seen a subscription and tells whether it was refused. The refusal comes before the
// answer to the flush.
func (c *Conn) settled(subject string) error {
	if err := c.nc.FlushTimeout(callTimeout); err != nil {
		return protocol.Wrap(err, protocol.CodeUnreachable, "subscribe to %s", subject)
	}
	err := c.nc.LastError()
	if v, ok := parseViolation(err); ok && v.subscribe && v.subject == subject {
		return errForbidden(v, err)
	}
	return nil
}
