package natswire

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolfabric/toolfabric/protocol"
)

// A pull request lives at the broker for an ack wait of its consumer, within these bounds, and is renewed then. It must not
// live longer: a process that is stopped keeps what it has asked for, and a message that comes back from it would be handed
// to it again, until it counts as poison. When the broker does not say in time that a request is over, it is taken for lost.
const (
	pullExpiresLeast = time.Second
	pullExpiresMost  = 10 * time.Second
	pullSilence      = 5 * time.Second // beyond the request's end
)

// Pull implements Bus. It returns code not_found when the consumer does not exist.
func (c *Conn) Pull(ctx context.Context, stream, durable string, on PullEvents) (Puller, error) {
	state, err := c.ConsumerState(ctx, stream, durable)
	if err != nil {
		return nil, err
	}
	p := &puller{
		c: c, on: on, stream: stream, durable: durable,
		next:    apiPrefix + "CONSUMER.MSG.NEXT." + stream + "." + durable,
		expires: min(max(state.Config.AckWait, pullExpiresLeast), pullExpiresMost),
	}
	if err := c.addPuller(p); err != nil {
		return nil, err
	}
	p.mu.Lock()
	err = p.listen()
	p.mu.Unlock()
	if err != nil {
		p.Close()
		return nil, protocol.Wrap(err, protocol.CodeUnreachable, "pull from %s", durable)
	}
	return p, nil
}

// puller keeps as much asked for at the broker as its owner wants, never more, in as few requests as that takes.
//
// The count of what is asked for is exact as long as every request ends with a word of the broker. When one may have been
// lost (reconnect, new leader, no word of its end) the puller moves to a new inbox: the broker drops requests whose inbox
// nobody listens on, so that nothing comes twice.
type puller struct {
	c               *Conn
	on              PullEvents
	stream, durable string
	next            string // subject of pull requests
	expires         time.Duration

	// serial is held while the owner is told something, so that it hears one thing at a time although an old inbox may still
	// be emptied beside the new one. Taken before mu.
	serial sync.Mutex

	mu      sync.Mutex
	ended   bool
	sub     *nats.Subscription
	inbox   string // of this sub, with a trailing dot
	request uint64
	want    int // asked for by the owner, not come yet
	asked   int // asked for at the broker, not come yet; never more than want
	heard   time.Time
	watch   *time.Timer // runs while something is asked for
	retry   *time.Timer // runs while the broker is given time to recover
	refused int         // requests in a row that nobody took
}

// Want implements Puller.
func (p *puller) Want(n int) {
	if n <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.want += n
	p.ask()
}

// Close implements Puller.
func (p *puller) Close() { p.end() }

func (p *puller) end() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	p.ended = true
	p.stopTimers()
	p.leave()
	p.c.dropPuller(p)
	return true
}

// lose ends the subscription for good and tells the owner, once.
func (p *puller) lose(err error) {
	if !p.end() || p.on.Lost == nil {
		return
	}
	// On a goroutine of its own: the caller may hold the broker's reader, and serial may be held by a Deliver.
	go func() {
		p.serial.Lock()
		defer p.serial.Unlock()
		p.on.Lost(err)
	}()
}

// resync forgets what is asked for and asks again on a new inbox.
func (p *puller) resync() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.stopTimers()
	p.leave()
	p.asked = 0
	if err := p.listen(); err != nil {
		return // the connection is closed: lose follows
	}
	p.ask()
}

// listen subscribes to a new inbox. mu is held.
func (p *puller) listen() error {
	inbox := p.c.newInbox() + "."
	sub, err := p.c.nc.Subscribe(inbox+"*", func(m *nats.Msg) { p.receive(inbox, m) })
	if err != nil {
		return err
	}
	// What may come is bounded by what is asked for.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return err
	}
	p.sub, p.inbox = sub, inbox
	return nil
}

// leave gives up the inbox. What is on its way is still received. mu is held.
func (p *puller) leave() {
	if p.sub != nil {
		_ = p.sub.Drain()
		p.sub = nil
	}
}

func (p *puller) stopTimers() {
	for _, t := range [...]*time.Timer{p.watch, p.retry} {
		if t != nil {
			t.Stop()
		}
	}
	p.watch, p.retry = nil, nil
}

// ask sends a pull request for what is wanted and not asked for. As long as half of what is wanted is asked for it waits:
// a worker with many slots then needs one request for many messages, and still the broker always has one. mu is held.
func (p *puller) ask() {
	if p.ended || p.retry != nil || p.asked >= p.want || p.asked > p.want/2 || !p.c.nc.IsConnected() {
		return
	}
	p.request++
	n := p.want - p.asked
	reply := p.inbox + strconv.FormatUint(p.request, 10)
	if err := p.c.nc.PublishRequest(p.next, reply, pullBody(n, p.expires)); err != nil {
		return // no connection: the reconnect asks again
	}
	p.asked += n
	p.heard = time.Now()
	if p.watch == nil {
		p.watch = time.AfterFunc(p.expires+pullSilence, p.listenForSilence)
	}
}

func pullBody(n int, expires time.Duration) []byte {
	b := append(make([]byte, 0, 80), `{"batch":`...)
	b = strconv.AppendInt(b, int64(n), 10)
	b = append(b, `,"expires":`...)
	b = strconv.AppendInt(b, int64(expires), 10)
	return append(b, '}')
}

// listenForSilence is run by the watch.
func (p *puller) listenForSilence() {
	p.mu.Lock()
	if p.ended || p.watch == nil || p.asked == 0 {
		p.watch = nil
		p.mu.Unlock()
		return
	}
	if left := p.expires + pullSilence - time.Since(p.heard); left > 0 {
		p.watch.Reset(left)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	p.resync()
}

// receive runs on the goroutine of an inbox, the current one or one that is left.
func (p *puller) receive(inbox string, m *nats.Msg) {
	if m.Reply == "" || len(m.Data) == 0 && m.Header.Get("Status") != "" {
		p.status(inbox, m)
		return
	}
	d, ok := delivered(p.c.nc, m)
	if !ok {
		return
	}
	p.serial.Lock()
	defer p.serial.Unlock()
	p.mu.Lock()
	current := inbox == p.inbox
	p.heard = time.Now()
	p.refused = 0
	if current && p.asked > 0 {
		p.asked--
	}
	if p.ended || p.want == 0 {
		// It crossed our leaving. Nobody here has room for it.
		p.mu.Unlock()
		d.Nak(0)
		return
	}
	p.want--
	p.ask()
	p.mu.Unlock()
	p.on.Deliver(d)
}

// status handles what the broker says about a request.
func (p *puller) status(inbox string, m *nats.Msg) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || inbox != p.inbox {
		return
	}
	p.heard = time.Now()
	code, _ := strconv.Atoi(m.Header.Get("Status"))
	left, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages"))
	counted := err == nil && left >= 0
	switch text := m.Header.Get("Description"); {
	case code == 100: // a heartbeat
	case code == 503:
		p.refused++
		p.check()
	case code == 409 && text == "Consumer Deleted":
		p.gone("the consumer %s of %s was deleted")
	case code == 409 && text == "Consumer is push based":
		p.gone("the consumer %s of %s is no pull consumer any more")
	case code == 409 && text == "Server Shutdown":
		p.later()
	case counted:
		p.asked = max(p.asked-left, 0)
		p.ask()
	default:
		// A new leader, or a status of a later server: how much is still asked for is not known.
		p.later()
	}
}

// gone ends the subscription. mu is held.
func (p *puller) gone(format string) {
	err := protocol.Errorf(protocol.CodeConsumerGone, format, p.durable, p.stream)
	go p.lose(err)
}

// later asks again on a new inbox after a pause that grows with what was refused. mu is held.
func (p *puller) later() {
	if p.retry == nil {
		p.retry = time.AfterFunc(min(electionPause<<min(p.refused, 4), 2*time.Second), p.resync)
	}
}

// check finds out why nobody took a request: the consumer is gone, or there is no leader now. mu is held.
func (p *puller) check() {
	if p.retry != nil {
		return
	}
	p.later()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		_, err := p.c.ConsumerState(ctx, p.stream, p.durable)
		switch protocol.CodeOf(err) {
		case protocol.CodeNotFound:
			p.lose(protocol.Wrap(err, protocol.CodeConsumerGone, "the consumer %s of %s was deleted", p.durable, p.stream))
		case protocol.CodeForbidden:
			p.lose(err)
		}
	}()
}
