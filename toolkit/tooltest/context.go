package tooltest

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/memory"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

// ContextConfig is what a Context tells. Every field may be zero: names and ids then are "app", "user", "session", "agent"
// and "call", and the attempt is the first.
type ContextConfig struct {
	App, User, Session, Agent string
	Call                      string // also the idempotency key
	Tool                      string // in the handle of a later result
	Attempt                   int
	UserContent               *genai.Content                     // the message that started the run
	State                     map[string]any                     // of the session, when the call was allowed; JSON-encodable
	Confirmation              *toolconfirmation.ToolConfirmation // a person's word on the call
	Artifacts                 agent.Artifacts                    // nil are none that can be reached
	Memory                    func(ctx context.Context, query string) (*memory.SearchResponse, error)
}

// Context is a tool.Context to call a tool's function with in a test, where adk-go's tests make a ToolContext by hand. State,
// actions, questions and handles behave as on a worker; log records go to the test's log. It may be used concurrently.
type Context struct {
	invoke.Detached
	cfg  ContextConfig
	log  *slog.Logger
	mu   sync.Mutex
	told []protocol.Progress
}

var _ tool.Context = (*Context)(nil)

// NewContext makes a context that ends with ctx. It fails the test when the state or the confirmation is no JSON.
func NewContext(t testing.TB, ctx context.Context, cfg ContextConfig) *Context {
	t.Helper()
	c := &Context{cfg: cfg, log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	e := protocol.Envelope{
		V: protocol.Version, App: cmp.Or(cfg.App, "app"), User: cmp.Or(cfg.User, "user"), Session: cmp.Or(cfg.Session, "session"),
		Agent: cmp.Or(cfg.Agent, "agent"), Call: cmp.Or(cfg.Call, "call"),
	}
	encode := func(what string, v any) json.RawMessage {
		raw, err := invoke.Encode(v)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return raw
	}
	for key, v := range cfg.State {
		if e.State == nil {
			e.State = map[string]json.RawMessage{}
		}
		e.State[key] = encode("the state "+key, v)
	}
	if w := cfg.Confirmation; w != nil {
		e.Confirmation = &protocol.Confirmed{ID: "confirmation", Hint: w.Hint, Confirmed: w.Confirmed}
		if w.Payload != nil {
			e.Confirmation.Payload = encode("the payload", w.Payload)
		}
	}
	c.Detached = invoke.NewDetached(ctx, invoke.Call{Envelope: e, Attempt: max(1, cfg.Attempt), Worker: "worker", Progress: c.tell}, cmp.Or(cfg.Tool, "tool"))
	return c
}

func (c *Context) tell(p protocol.Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, p)
}

// Told is the progress that was told so far, pieces of streamed answers among it.
func (c *Context) Told() []protocol.Progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.told)
}

// UserContent is the message that started the run.
func (c *Context) UserContent() *genai.Content { return c.cfg.UserContent }

// Logger writes to the test's log.
func (c *Context) Logger() *slog.Logger { return c.log }

// Artifacts are those of the config, or none.
func (c *Context) Artifacts() agent.Artifacts {
	if c.cfg.Artifacts != nil {
		return c.cfg.Artifacts
	}
	return c.Detached.Artifacts()
}

// SearchMemory asks the config's Memory.
func (c *Context) SearchMemory(ctx context.Context, query string) (*memory.SearchResponse, error) {
	if c.cfg.Memory != nil {
		return c.cfg.Memory(ctx, query)
	}
	return c.Detached.SearchMemory(ctx, query)
}
