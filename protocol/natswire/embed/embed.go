// Package embed runs a nats-server with JetStream inside this process.
package embed

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/toolfabric/toolfabric/protocol"
)

// Config of a server. Dir is required.
type Config struct {
	// Dir holds the streams. It is made when missing and belongs to one server at a time.
	Dir string
	// Listen is HOST:PORT; port 0 or -1 picks a free one. Empty opens no port: only this process can connect. A host that is
	// not loopback is refused without Auth.
	Listen string
	// Name of the server in its monitoring. Empty is "toolfabric".
	Name string
	// SyncAlways puts every message on the disk before its ack: nothing acked is lost when the power fails, at some 0.3 ms a
	// message. Otherwise the disk is synced every 100 ms; a crash of the process alone loses nothing either way.
	SyncAlways bool
	// Auth sets users, accounts or operators in the server's own options. Nil lets everybody in.
	Auth func(*server.Options)
	// Log gets the server's warnings and errors. Nil drops them.
	Log *slog.Logger
}

const readyTimeout = 30 * time.Second // a store of some million messages is read first

// Server is a running server.
type Server struct {
	ns       *server.Server
	unlock   func()
	shutdown sync.Once
}

// Start runs a server and waits until it takes connections. It returns code usage for a Config that makes no sense or a
// directory that another process uses, and forbidden for an open door: a host that is not loopback without Auth.
func Start(cfg Config) (*Server, error) {
	opts, err := options(cfg)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, protocol.Wrap(err, protocol.CodeUsage, "make the data directory %s", cfg.Dir)
	}
	unlock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		unlock()
		return nil, protocol.Wrap(err, protocol.CodeUsage, "configure the embedded nats-server")
	}
	s := &Server{ns: ns, unlock: unlock}
	log := &logger{to: cfg.Log}
	ns.SetLoggerV2(log, false, false, false)
	ns.Start()
	if !ready(ns, log) {
		s.Shutdown()
		return nil, protocol.Errorf(protocol.CodeUnreachable, "the embedded nats-server did not start on %s with data in %s: %s", cfg.Listen, cfg.Dir, log.last())
	}
	log.started()
	return s, nil
}

// ready waits until the server takes connections or says, which it does only in its log, that it never will.
func ready(ns *server.Server, log *logger) bool {
	for end := time.Now().Add(readyTimeout); time.Now().Before(end) && !log.fatal(); {
		if ns.ReadyForConnections(50 * time.Millisecond) {
			return ns.JetStreamEnabled()
		}
	}
	return false
}

func options(cfg Config) (*server.Options, error) {
	if cfg.Dir == "" {
		return nil, protocol.Errorf(protocol.CodeUsage, "the embedded nats-server needs a data directory")
	}
	name := cfg.Name
	if name == "" {
		name = "toolfabric"
	}
	opts := &server.Options{
		ServerName:   name,
		JetStream:    true,
		StoreDir:     filepath.Join(cfg.Dir, "nats"),
		SyncInterval: SyncInterval,
		SyncAlways:   cfg.SyncAlways,
		MaxPayload:   1 << 20,
		NoSigs:       true,
		DontListen:   cfg.Listen == "",
		// One durable per tool and per agent: the server's own default would stop at the thousandth.
		JetStreamLimits: server.JSLimitOpts{DefaultMaxConsumers: -1},
	}
	if cfg.Auth != nil {
		cfg.Auth(opts)
	}
	if cfg.Listen == "" {
		return opts, nil
	}
	host, portText, err := net.SplitHostPort(cfg.Listen)
	if err != nil {
		return nil, protocol.Wrap(err, protocol.CodeUsage, "listen on %q: want HOST:PORT", cfg.Listen)
	}
	port, err := strconv.Atoi(portText)
	if err != nil || port < -1 || port > 65535 {
		return nil, protocol.Errorf(protocol.CodeUsage, "listen on %q: the port is a number up to 65535, 0 for any", cfg.Listen)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	if !guarded(opts) && !loopback(host) {
		return nil, protocol.Errorf(protocol.CodeForbidden, "listening on %s without credentials would let everybody in: use a loopback address, or set up users first", cfg.Listen)
	}
	opts.Host, opts.Port = host, port
	return opts, nil
}

// guarded reports whether a client has to say who it is.
func guarded(o *server.Options) bool {
	return o.Username != "" || o.Authorization != "" || len(o.Users) > 0 || len(o.Nkeys) > 0 || len(o.TrustedOperators) > 0 ||
		len(o.TrustedKeys) > 0 || o.CustomClientAuthentication != nil || o.AuthCallout != nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// URL is where clients connect; empty without a listener.
func (s *Server) URL() string {
	if s.ns.Addr() == nil {
		return ""
	}
	return s.ns.ClientURL()
}

// InProcess connects without a socket. Such a connection ends for good with its server.
func (s *Server) InProcess() nats.InProcessConnProvider { return s.ns }

// Version of the server.
func (s *Server) Version() string { return server.VERSION }

// Shutdown stops the server and waits until its data is on the disk and its directory is free. Repeating it is no error.
func (s *Server) Shutdown() {
	s.shutdown.Do(func() {
		s.ns.Shutdown()
		s.ns.WaitForShutdown()
		s.unlock()
	})
}
