package natswire

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolfabric/toolfabric/protocol"
)

// callTimeout bounds every call whose ctx has no deadline of its own.
const callTimeout = 5 * time.Second

// Conn is a Bus on one NATS connection. It reconnects for ever. While there is no connection every call fails at once with
// code bus_unreachable, and nothing of it is kept to be sent later. All methods may be called concurrently.
type Conn struct {
	names  Names
	nc     *nats.Conn
	prefix string // of all inboxes of this connection, with a trailing dot
	listen func(Notice)

	replies *replies
	sub     *nats.Subscription // of replies

	mu      sync.Mutex
	closed  bool
	pullers map[*puller]struct{}
	missed  map[*func()]struct{}
	nextID  uint64
}

var _ Bus = (*Conn)(nil)

// Names spells the subjects and streams of this connection's namespace.
func (c *Conn) Names() Names { return c.names }

// ServerVersion is the version of the server this connection is on, for instance "2.15.3".
func (c *Conn) ServerVersion() string { return c.nc.ConnectedServerVersion() }

// ServerURL is where this connection is, by Redact; empty while it is nowhere.
func (c *Conn) ServerURL() string { return Redact(c.nc.ConnectedUrl()) }

// Close ends the connection. Waiting calls fail and pull subscriptions are lost with code bus_unreachable. What was
// published with Emit or acked before is sent first, within a second. Closing twice is no error.
func (c *Conn) Close() {
	c.mu.Lock()
	done := c.closed
	c.closed = true
	c.mu.Unlock()
	if done {
		return
	}
	if c.nc.IsConnected() {
		// Acks are fire-and-forget: without the flush the last ones would be delivered again after their AckWait.
		_ = c.nc.FlushTimeout(time.Second)
	}
	c.nc.Close()
	c.lost(errClosed())
}

func errClosed() *protocol.Error {
	return protocol.Errorf(protocol.CodeUnreachable, "the connection to NATS is closed")
}

// lost ends everything that waits on this connection for good.
func (c *Conn) lost(err *protocol.Error) {
	c.replies.failAll(err)
	for _, p := range c.openPullers() {
		p.lose(err)
	}
}

func (c *Conn) openPullers() []*puller {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*puller, 0, len(c.pullers))
	for p := range c.pullers {
		all = append(all, p)
	}
	return all
}

// Missed implements Bus.
func (c *Conn) Missed(tell func()) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.missed == nil {
		c.missed = map[*func()]struct{}{}
	}
	c.missed[&tell] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.missed, &tell)
	}
}

func (c *Conn) tellers() []*func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.missed))
}

func (c *Conn) addPuller(p *puller) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed()
	}
	c.pullers[p] = struct{}{}
	return nil
}

func (c *Conn) dropPuller(p *puller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pullers, p)
}

// newInbox returns a subject that only this connection listens on.
func (c *Conn) newInbox() string { return c.prefix + rand.Text() }

func (c *Conn) onDisconnect(_ *nats.Conn, err error) {
	cause := protocol.Wrap(err, protocol.CodeUnreachable, "the connection to NATS was lost before the answer came; it may have had its effect")
	if err == nil {
		cause.Err = nil
	}
	c.replies.failAll(cause)
	c.notify(Notice{Kind: Disconnected, Err: err})
}

func (c *Conn) onReconnect(nc *nats.Conn) {
	for _, p := range c.openPullers() {
		p.resync()
	}
	for _, tell := range c.tellers() {
		(*tell)()
	}
	c.notify(Notice{Kind: Reconnected, URL: Redact(nc.ConnectedUrl())})
}

func (c *Conn) onClosed(nc *nats.Conn) {
	c.mu.Lock()
	ours := c.closed
	c.closed = true
	c.mu.Unlock()
	if ours {
		return
	}
	cause := errClosed()
	cause.Err = nc.LastError()
	if isAuthError(cause.Err) {
		cause.Code = protocol.CodeAuth
	}
	c.lost(errClosed())
	c.notify(Notice{Kind: Closed, Err: cause})
}

func (c *Conn) onError(_ *nats.Conn, _ *nats.Subscription, err error) {
	denied, ok := parseViolation(err)
	if !ok {
		c.notify(Notice{Kind: Trouble, Err: err})
		return
	}
	cause := errForbidden(denied, err)
	if !denied.subscribe {
		c.replies.failDenied(denied, cause)
		for _, p := range c.openPullers() {
			if p.next == denied.subject {
				p.lose(cause)
			}
		}
	}
	if denied.subject == apiInfo {
		return // our own question on connecting; workers need no such right
	}
	c.notify(Notice{Kind: Denied, Err: cause})
}

func (c *Conn) notify(n Notice) {
	if c.listen != nil {
		c.listen(n)
	}
}

// withDeadline bounds one call of the broker.
func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callTimeout)
}
