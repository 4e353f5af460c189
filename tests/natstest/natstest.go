// Package natstest gives a test its own nats-server and connections to it.
package natstest

import (
	"context"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/protocol/natswire/embed"
)

// Server is a real server on a loopback port, with its data in the test's directory. It stops with the test.
type Server struct {
	cfg embed.Config
	*embed.Server
}

// Option changes how the server is started.
type Option func(*embed.Config)

// Auth sets users and permissions.
func Auth(set func(*server.Options)) Option { return func(c *embed.Config) { c.Auth = set } }

// Start runs a server.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	s := &Server{cfg: embed.Config{Dir: t.TempDir(), Name: "test"}}
	for _, o := range options {
		o(&s.cfg)
	}
	for {
		s.cfg.Listen = fixedPort()
		err := s.run()
		if err == nil {
			break
		}
		if !strings.Contains(err.Error(), "address already in use") {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { s.Shutdown() })
	return s
}

// fixedPort is an address whose port the system gives to nobody who asks for any: while a server is down to be started anew,
// its port would go to a connection of another test.
func fixedPort() string {
	const lowest, highest = 11000, 32000
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(lowest+rand.IntN(highest-lowest)))
}

func (s *Server) run() error {
	cfg := s.cfg
	cfg.Auth = func(o *server.Options) {
		// Ten syncs a second of each stream of each test's server are what a busy disk chokes on, and nats-server 2.15.3 has a
		// data race when the first sync comes before the stream is made.
		o.SyncInterval = time.Minute
		if s.cfg.Auth != nil {
			s.cfg.Auth(o)
		}
	}
	started, err := embed.Start(cfg)
	if err != nil {
		return err
	}
	s.Server = started
	return nil
}

// Connect opens a connection to a namespace, "" for the default, and provisions it. It closes with the test.
func (s *Server) Connect(t testing.TB, namespace string) *natswire.Conn {
	t.Helper()
	c := s.Dial(t, natswire.Config{Namespace: namespace})
	if err := natswire.Provision(t.Context(), c, natswire.ProvisionConfig{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// patience is far above what anything takes, so that only what hangs fails by it.
const patience = 2 * time.Minute

// Dial opens a connection as cfg says, to this server unless cfg names another. It closes with the test.
func (s *Server) Dial(t testing.TB, cfg natswire.Config) *natswire.Conn {
	t.Helper()
	if cfg.URL == "" && cfg.InProcess == nil {
		cfg.URL = s.URL()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := natswire.Connect(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Stop shuts the server down; Restart brings it back.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.Shutdown()
}

// Restart shuts the server down and runs it again on the same port and data.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop(t)
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
}
