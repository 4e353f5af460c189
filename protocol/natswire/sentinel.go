package natswire

import (
	"context"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
)

// sentinelEvery is how often sentinels are looked after.
const sentinelEvery = time.Second

// sentinels are the messages that nobody ever consumes, one for each work queue. No tool's and no app's name begins with a
// digit.
func (n Names) sentinels() map[string]Msg {
	return map[string]Msg{
		n.Calls():  {Subject: n.CallSubject("0"), Header: Header{headerTTL: "never"}, Data: []byte(`{}`)}, // outlives MaxAge
		n.Input():  {Subject: n.InputSubject("0", "0", "0"), Data: []byte(`{}`)},
		n.Timers(): {Subject: n.TimerSubject("0", "0", "0"), Data: []byte(`{}`)},
	}
}

// ensureSentinels stores a sentinel in each work queue. An ack that empties the file which a work queue is written to makes the
// server delete the file and create another; with one message left it does not, and over TCP a call costs 0.6 of the time.
func (c *Conn) ensureSentinels(ctx context.Context) error {
	for _, m := range c.names.sentinels() {
		m.Expect = new(uint64)
		if _, err := c.Publish(ctx, m); err != nil && protocol.CodeOf(err) != protocol.CodeFenced {
			return err
		}
	}
	return nil
}

// KeepSentinels moves the sentinel of each work queue to its end, every second in which something was stored, until ctx ends:
// a queue goes on to another file every 4 MiB. Several may run; one of them does the work. What cannot be done is left: it
// only makes a quiet queue slower. It returns nil.
func (c *Conn) KeepSentinels(ctx context.Context) error {
	all := c.names.sentinels()
	for Sleep(ctx, SystemClock{}, sentinelEvery) == nil {
		for stream, m := range all {
			if _, err := c.moveSentinel(ctx, stream, m); protocol.CodeOf(err) == protocol.CodeForbidden {
				delete(all, stream)
			}
		}
	}
	return nil
}

// moveSentinel stores a sentinel behind all else in its queue, and then takes the older ones away. It leaves one that is the
// last message, or was stored a moment ago by somebody else.
func (c *Conn) moveSentinel(ctx context.Context, stream string, m Msg) (moved bool, err error) {
	state, err := c.StreamState(ctx, stream)
	if err != nil {
		return false, err
	}
	now, err := c.Last(ctx, stream, m.Subject)
	if err != nil || now.Seq == state.LastSeq || state.Now.Sub(now.Time) < sentinelEvery {
		return false, err
	}
	ack, err := c.Publish(ctx, m)
	if err != nil {
		return false, err
	}
	for {
		older, err := c.Next(ctx, stream, m.Subject, 1)
		if err != nil || older.Seq >= ack.Seq {
			return true, err
		}
		if err := c.Remove(ctx, stream, older.Seq); err != nil {
			return true, err
		}
	}
}
