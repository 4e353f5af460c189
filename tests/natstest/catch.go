package natstest

import (
	"slices"
	"strings"
	"sync"
)

// Traffic is a kind of message that a server sends to a client.
type Traffic int

// The kinds of Traffic.
const (
	Acks       Traffic = iota // the answer to what the client published on a subject: a PubAck
	Deliveries                // what a consumer delivers, by the subject on which it was stored
)

// Catch is one message that a Proxy does something to: the next one of its kind and subject.
type Catch struct {
	traffic Traffic
	pattern string
	act     func(c *Catch, l *link, f frame) []byte
	caught  chan struct{}

	mu      sync.Mutex
	forward func() // what Release does
}

// Drop loses the next message of a kind whose subject matches a pattern of tokens, * and >.
func (p *Proxy) Drop(of Traffic, pattern string) *Catch {
	return p.catch(of, pattern, func(*Catch, *link, frame) []byte { return nil })
}

// Duplicate sends the next message twice.
func (p *Proxy) Duplicate(of Traffic, pattern string) *Catch {
	return p.catch(of, pattern, func(_ *Catch, _ *link, f frame) []byte { return slices.Concat(f.bytes, f.bytes) })
}

// Hold keeps the next message until Release, while later ones overtake it.
func (p *Proxy) Hold(of Traffic, pattern string) *Catch {
	return p.catch(of, pattern, func(c *Catch, l *link, f frame) []byte {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.forward = func() { _ = l.client.send(f.bytes) } // a connection that is gone takes it along
		return nil
	})
}

// Caught is closed when the message came by.
func (c *Catch) Caught() <-chan struct{} { return c.caught }

// Release sends a held message on its way. It does nothing before the message came by, and the second time.
func (c *Catch) Release() {
	c.mu.Lock()
	forward := c.forward
	c.forward = nil
	c.mu.Unlock()
	if forward != nil {
		forward()
	}
}

func (p *Proxy) catch(of Traffic, pattern string, act func(*Catch, *link, frame) []byte) *Catch {
	c := &Catch{traffic: of, pattern: pattern, act: act, caught: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, c)
	return c
}

// take returns the first rule for a message, which is then used up.
func (p *Proxy) take(of Traffic, subject string) *Catch {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.rules, func(c *Catch) bool { return c.traffic == of && matches(c.pattern, subject) })
	if i < 0 {
		return nil
	}
	c := p.rules[i]
	p.rules = slices.Delete(p.rules, i, i+1)
	return c
}

// link is the two directions of one connection.
type link struct {
	proxy  *Proxy
	client *sender

	mu      sync.Mutex
	waiting map[string]*Catch // for the answer on a reply subject
}

// fromClient notes where the answer to a publish will go that a rule waits for.
func (l *link) fromClient(f frame) []byte {
	if (f.op == "PUB" || f.op == "HPUB") && f.reply != "" {
		if c := l.proxy.take(Acks, f.subject); c != nil {
			l.mu.Lock()
			l.waiting[f.reply] = c
			l.mu.Unlock()
		}
	}
	return f.bytes
}

// fromServer returns what the client gets of a frame.
func (l *link) fromServer(f frame) []byte {
	if f.op != "MSG" && f.op != "HMSG" {
		return f.bytes
	}
	l.mu.Lock()
	c := l.waiting[f.subject]
	delete(l.waiting, f.subject)
	l.mu.Unlock()
	if c == nil && strings.HasPrefix(f.reply, "$JS.ACK.") {
		c = l.proxy.take(Deliveries, f.subject)
	}
	if c == nil {
		return f.bytes
	}
	defer close(c.caught)
	return c.act(c, l, f)
}
