package natswire

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolfabric/toolfabric/protocol"
)

// Headers of the broker that a publisher writes.
const (
	headerMsgID          = "Nats-Msg-Id"
	headerExpectSubject  = "Nats-Expected-Last-Subject-Sequence"
	headerTTL            = "Nats-TTL"
	headerSchedule       = "Nats-Schedule"
	headerScheduleTarget = "Nats-Schedule-Target"
	headerRollup         = "Nats-Rollup"
)

// While a replicated stream elects its leader nobody listens on its subjects: a publish is tried again this often.
const (
	electionTries = 3
	electionPause = 250 * time.Millisecond
)

// Publish implements Bus.
func (c *Conn) Publish(ctx context.Context, m Msg) (Ack, error) {
	for try := 1; ; try++ {
		reply, err := c.ask(ctx, encode(m))
		if err != nil {
			return Ack{}, err
		}
		if !noResponders(reply) {
			return c.readAck(m, reply.Data)
		}
		if try == electionTries {
			return Ack{}, protocol.Errorf(protocol.CodeUnreachable, "no stream takes %s: it has no leader now, or the namespace %s is not provisioned", m.Subject, c.names.ns)
		}
		if err := pause(ctx, electionPause); err != nil {
			return Ack{}, err
		}
	}
}

// Send implements Bus.
func (c *Conn) Send(m Msg, done func(Ack, error)) {
	_, id := c.replies.add(m.Subject, nil, func(a answer) {
		switch {
		case a.err != nil:
			done(Ack{}, a.err)
		case noResponders(a.msg):
			go func() { done(c.Publish(context.Background(), m)) }() // with pauses
		default:
			done(c.readAck(m, a.msg.Data))
		}
	})
	out := encode(m)
	out.Reply = c.replies.subject(id)
	if err := c.publish(out); err != nil {
		c.replies.settle(id, answer{err: err})
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return protocol.ContextError(ctx)
	}
}

// Emit implements Bus.
func (c *Conn) Emit(_ context.Context, m Msg) error { return c.publish(encode(m)) }

// Request implements Bus.
func (c *Conn) Request(ctx context.Context, m Msg) (Msg, error) {
	reply, err := c.ask(ctx, encode(m))
	if err != nil {
		return Msg{}, err
	}
	if noResponders(reply) {
		return Msg{}, protocol.Errorf(protocol.CodeNotFound, "nobody listens on %s", m.Subject)
	}
	return received(reply), nil
}

// outgoing is a message on its way to the client library, which is done with it when its PublishMsg returns. They are used
// again for the room in their headers.
type outgoing struct {
	nats.Msg
	header nats.Header
	values []string // of all headers, in one piece
}

var outgoings = sync.Pool{New: func() any { return &outgoing{header: nats.Header{}, values: make([]string, 0, 8)} }}

func encode(m Msg) *outgoing {
	out := outgoings.Get().(*outgoing)
	out.Msg = nats.Msg{Subject: m.Subject, Reply: m.Reply, Data: m.Data}
	for k, v := range m.Header {
		out.set(k, v)
	}
	if m.ID != "" {
		out.set(headerMsgID, m.ID)
	}
	if m.Expect != nil {
		out.set(headerExpectSubject, strconv.FormatUint(*m.Expect, 10))
	}
	if m.TTL > 0 {
		out.set(headerTTL, m.TTL.String())
	}
	if !m.At.IsZero() {
		// Not through the library: it cuts the instant to whole seconds, and the timer fires early.
		out.set(headerSchedule, "@at "+m.At.UTC().Format(time.RFC3339Nano))
		out.set(headerScheduleTarget, m.Target)
	}
	return out
}

func (o *outgoing) set(key, value string) {
	o.values = append(o.values, value)
	o.header[key] = o.values[len(o.values)-1 : len(o.values) : len(o.values)]
	o.Msg.Header = o.header
}

// publish sends the message, which is nobody's from then on.
func (c *Conn) publish(o *outgoing) error {
	err := c.nc.PublishMsg(&o.Msg)
	if err != nil {
		err = sendError(err, &o.Msg)
	}
	clear(o.header)
	clear(o.values)
	o.Msg, o.values = nats.Msg{}, o.values[:0]
	outgoings.Put(o)
	return err
}

func received(m *nats.Msg) Msg {
	return Msg{Subject: m.Subject, Reply: m.Reply, Header: header(m.Header), Data: m.Data}
}

func header(in nats.Header) Header {
	if len(in) == 0 {
		return nil
	}
	h := make(Header, len(in))
	for k, v := range in {
		if n := len(v); n > 0 {
			h[k] = v[n-1] // what the broker says of a message stands behind what its publisher said
		}
	}
	return h
}

// readAck reads the broker's answer to a publish of m.
func (c *Conn) readAck(m Msg, data []byte) (Ack, error) {
	if ack, ok := scanAck(data); ok {
		return ack, nil
	}
	var full struct {
		Error     *apiError `json:"error"`
		Stream    string    `json:"stream"`
		Seq       uint64    `json:"seq"`
		Duplicate bool      `json:"duplicate"`
	}
	if err := json.Unmarshal(data, &full); err != nil {
		return Ack{}, protocol.Wrap(err, protocol.CodeInternal, "the answer to %s is no publish ack; does somebody else answer there?", m.Subject)
	}
	if e := full.Error; e != nil {
		if e.perSubject() && c.names.isMailbox(m.Subject) {
			return Ack{}, protocol.Wrap(e, protocol.CodeAnswered, "%s has its message", m.Subject)
		}
		return Ack{}, e.refused("publish on " + m.Subject)
	}
	if full.Stream == "" || full.Seq == 0 {
		return Ack{}, protocol.Errorf(protocol.CodeInternal, "the answer to %s is no publish ack; does somebody else answer there?", m.Subject)
	}
	return Ack{Seq: full.Seq, Duplicate: full.Duplicate}, nil
}

var (
	ackStart = []byte(`{"stream":"`)
	ackSeq   = []byte(`","seq":`)
)

// scanAck reads the form in which all but a few acks come, {"stream":"X","seq":N}, without decoding JSON. Anything else is
// left to the decoder.
func scanAck(data []byte) (Ack, bool) {
	rest, ok := bytes.CutPrefix(data, ackStart)
	if !ok {
		return Ack{}, false
	}
	stream, rest, ok := bytes.Cut(rest, ackSeq)
	if !ok || len(stream) == 0 || bytes.ContainsFunc(stream, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }) {
		return Ack{}, false
	}
	var seq uint64
	for i, b := range rest {
		if b < '0' || b > '9' {
			return Ack{Seq: seq}, seq > 0 && b == '}' && i == len(rest)-1
		}
		if seq > 1<<59 || i > 0 && seq == 0 {
			return Ack{}, false
		}
		seq = seq*10 + uint64(b-'0')
	}
	return Ack{}, false
}
