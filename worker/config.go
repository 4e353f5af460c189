package worker

import (
	"cmp"
	"log/slog"
	"os"
	"runtime"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// DefaultGrace is how long running calls may go on after a worker was told to stop.
const DefaultGrace = 20 * time.Second

// Config is what a worker is made of. Bus, Names and Tools are required.
type Config struct {
	Bus   natswire.Bus
	Names natswire.Names
	Clock natswire.Clock // nil is natswire.SystemClock
	NewID func() string  // unguessable ids; nil is protocol.NewID

	ID    string      // the worker's name in registry and results, one NATS token; empty is a new id
	Host  string      // shown in the registry; empty is the host's name
	Tools []tool.Tool // all of them tool.Runnable, no name twice

	// Slots is how many calls run at once over all tools; 0 is four per CPU or two per tool, whichever is more. The worker
	// asks the broker only for calls it has a free slot for, and asks for each tool: with fewer slots than tools these take
	// turns, which adds up to 100 ms times their number to the wait of a call, and a tool runs one call at a time while the
	// others are idle. Twice as many slots as tools avoid both.
	Slots int
	// ToolSlots caps the slots of single tools by name. Absent or 0 is Slots.
	ToolSlots map[string]int
	// Grace is how long running calls may go on after Run's context ended; 0 is DefaultGrace, negative is none.
	Grace time.Duration

	Logger   *slog.Logger         // of the worker's own words and of the tools; nil is silent
	Tracer   trace.TracerProvider // nil is OpenTelemetry's global one
	Listener Events               // told what happens, besides the log
}

// validate fills what is empty. It returns an *Error of code usage.
func (c *Config) validate() error {
	if c.Bus == nil || c.Names == (natswire.Names{}) {
		return protocol.Errorf(protocol.CodeUsage, "a worker needs a Bus and the Names of its namespace")
	}
	if len(c.Tools) == 0 {
		return protocol.Errorf(protocol.CodeUsage, "a worker needs at least one tool")
	}
	if c.Slots < 0 {
		return protocol.Errorf(protocol.CodeUsage, "slots: %d is negative", c.Slots)
	}
	for name, n := range c.ToolSlots {
		if n < 0 {
			return protocol.Errorf(protocol.CodeUsage, "slots of tool %s: %d is negative", name, n)
		}
	}
	if c.Clock == nil {
		c.Clock = natswire.SystemClock{}
	}
	if c.NewID == nil {
		c.NewID = protocol.NewID
	}
	c.ID = cmp.Or(c.ID, c.NewID())
	if err := protocol.CheckID(c.ID); err != nil {
		return protocol.Wrap(err, protocol.CodeUsage, "the worker's id is not one NATS token")
	}
	if c.Host == "" {
		c.Host, _ = os.Hostname()
	}
	c.Slots = cmp.Or(c.Slots, max(4*runtime.GOMAXPROCS(0), 2*len(c.Tools)))
	c.Grace = max(0, cmp.Or(c.Grace, DefaultGrace))
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Tracer == nil {
		c.Tracer = otel.GetTracerProvider()
	}
	return nil
}
