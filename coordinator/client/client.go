package client

import (
	"sync"

	"github.com/toolfabric/toolfabric/coordinator/internal/view"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// Entry is one event of a log with its stream sequence and time.
type Entry = view.Entry

// Span is one piece of work of a session; see Client.Trace.
type Span = view.Span

// Config is what a Client needs. Bus and Names are required.
type Config struct {
	Bus    natswire.Bus
	Names  natswire.Names
	Client string         // who speaks, one token; empty is "local"
	NewID  func() string  // nil is protocol.NewID
	Clock  natswire.Clock // nil is the machine's
}

// Client speaks with sessions. Its methods may be called concurrently. Errors are *protocol.Error with the codes of
// natswire.Bus and those that the methods name.
type Client struct {
	cfg    Config
	served sync.Map // app -> struct{}: a durable was seen; it is never removed again
}

// New checks cfg. It returns code usage or bad_id.
func New(cfg Config) (*Client, error) {
	if cfg.Bus == nil || cfg.Names.Namespace() == "" {
		return nil, protocol.Errorf(protocol.CodeUsage, "a client needs a Bus and Names")
	}
	if cfg.Client == "" {
		cfg.Client = "local"
	}
	if err := protocol.CheckID(cfg.Client); err != nil {
		return nil, err
	}
	if cfg.NewID == nil {
		cfg.NewID = protocol.NewID
	}
	if cfg.Clock == nil {
		cfg.Clock = natswire.SystemClock{}
	}
	return &Client{cfg: cfg}, nil
}
