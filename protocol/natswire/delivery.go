package natswire

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

var (
	ackBody        = []byte("+ACK")
	nakBody        = []byte("-NAK")
	inProgressBody = []byte("+WPI")
)

// settler is the Acker of one delivery: plain publishes on its reply subject.
type settler struct {
	nc    *nats.Conn
	reply string
}

// Errors are dropped: without a connection the message is delivered again, which is what an unacked message is for.
func (s settler) send(body []byte) { _ = s.nc.Publish(s.reply, body) }

func (s settler) Ack() { s.send(ackBody) }

func (s settler) Nak(delay time.Duration) {
	if delay <= 0 {
		s.send(nakBody)
		return
	}
	s.send([]byte(`-NAK {"delay": ` + strconv.FormatInt(int64(delay), 10) + `}`))
}

func (s settler) InProgress() { s.send(inProgressBody) }

func (s settler) Term(reason string) {
	if reason == "" {
		s.send([]byte("+TERM"))
		return
	}
	s.send([]byte("+TERM " + reason))
}

func delivered(nc *nats.Conn, m *nats.Msg) (Delivery, bool) {
	r, ok := parseAckReply(m.Reply)
	if !ok {
		return Delivery{}, false
	}
	return Delivery{
		Stored:  Stored{Subject: m.Subject, Header: header(m.Header), Data: m.Data, Seq: r.seq, Time: r.time},
		Attempt: r.attempt,
		Acker:   settler{nc: nc, reply: m.Reply},
	}, true
}
