package natstest

import (
	"bufio"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Proxy is a network between clients and a server that can be cut, frozen and healed, and that can lose, double or hold back
// single messages on their way to a client. All methods may be called concurrently.
type Proxy struct {
	target   string
	listener net.Listener
	done     sync.WaitGroup

	mu     sync.Mutex
	cut    bool
	frozen [2]chan struct{} // by Way; closed while bytes flow
	conns  map[net.Conn]struct{}
	rules  []*Catch // those that have caught nothing yet
}

// StartProxy puts a proxy before a server. It stops with the test.
func StartProxy(t testing.TB, s *Server) *Proxy {
	t.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	flowing := make(chan struct{})
	close(flowing)
	p := &Proxy{target: u.Host, listener: l, frozen: [2]chan struct{}{flowing, flowing}, conns: make(map[net.Conn]struct{})}
	p.done.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.Heal()
		p.Cut()
		p.done.Wait()
	})
	return p
}

// URL is where clients connect.
func (p *Proxy) URL() string { return "nats://" + p.listener.Addr().String() }

// Cut breaks all connections and takes no new ones.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.conns {
		c.Close()
	}
}

// Way is a direction through a Proxy.
type Way int

// The two ways.
const (
	ToServer Way = iota
	ToClient
)

// Freeze stops all bytes, or those of one way, and breaks nothing: each side waits for the other.
func (p *Proxy) Freeze(ways ...Way) {
	if len(ways) == 0 {
		ways = []Way{ToServer, ToClient}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, way := range ways {
		select {
		case <-p.frozen[way]:
			p.frozen[way] = make(chan struct{})
		default:
		}
	}
}

// Heal undoes Cut and Freeze. What was frozen on its way arrives now.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
	for _, frozen := range p.frozen {
		select {
		case <-frozen:
		default:
			close(frozen)
		}
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if !p.keep(client) {
			continue
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil || !p.keep(server) {
			p.drop(client)
			continue
		}
		l := &link{proxy: p, client: &sender{conn: client}, waiting: map[string]*Catch{}}
		p.done.Go(func() { p.carry(ToServer, &sender{conn: server}, client, l.fromClient) })
		p.done.Go(func() { p.carry(ToClient, l.client, server, l.fromServer) })
	}
}

// keep remembers a connection, or closes it while the network is cut.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		c.Close()
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	c.Close()
}

func (p *Proxy) flow(way Way) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frozen[way]
}

// carry takes frames from one end to the other. Those that were read together are written together.
func (p *Proxy) carry(way Way, to *sender, from net.Conn, seen func(frame) []byte) {
	defer p.drop(to.conn)
	defer p.drop(from)
	r := bufio.NewReaderSize(from, maxLine)
	var out []byte
	for {
		f, err := readFrame(r)
		if err != nil {
			to.send(append(out, f.bytes...))
			return
		}
		out = append(out, seen(f)...)
		if r.Buffered() > 0 && len(out) < maxLine {
			continue
		}
		<-p.flow(way)
		if to.send(out) != nil {
			return
		}
		out = out[:0]
	}
}

// sender writes whole frames to a connection. Safe for concurrent use.
type sender struct {
	mu   sync.Mutex
	conn net.Conn
}

func (s *sender) send(frames []byte) error {
	if len(frames) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.conn.Write(frames)
	return err
}
