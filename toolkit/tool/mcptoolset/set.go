package mcptoolset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// Name is what ADK calls every MCP toolset. One with a prefix adds it, so that two can be told apart.
const Name = "mcp_tool_set"

// The newest protocol version of before, and the one from which on servers keep no sessions and answer with their questions.
const (
	protocolOlder     = "2025-11-25"
	protocolStateless = "2026-07-28"
)

// set is a server's tools.
type set struct {
	cfg     Config
	link    *link
	own     bool // the client is ours
	watched bool // the transport fills in flights
	changed chan struct{}
	flights flights

	mu  sync.Mutex
	bad map[string]string // why a tool was left out, as it was logged last
}

func newSet(cfg Config) *set {
	s := &set{cfg: cfg, changed: make(chan struct{}, 1), own: cfg.Client == nil}
	s.flights.init(&s.cfg)
	client := cfg.Client
	if client == nil {
		client = mcp.NewClient(&mcp.Implementation{Name: "toolfabric", Version: "1"}, &mcp.ClientOptions{
			Logger:                 cfg.Logger,
			Capabilities:           &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}},
			ElicitationHandler:     s.flights.elicit,
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {}, // heard by the middleware, like a caller's client
			MultiRoundTrip:         &mcp.MultiRoundTripOptions{Disabled: true},            // a question parks the call
		})
	}
	client.AddReceivingMiddleware(s.hear)
	s.link = &link{place: s.cfg.place(), limit: s.cfg.Connect, log: cfg.Logger}
	s.link.connect = func(ctx context.Context, older bool) (*mcp.ClientSession, error) {
		t, _, err := s.cfg.transport()
		if err != nil {
			return nil, err
		}
		var opts mcp.ClientSessionOptions
		if older {
			opts.ProtocolVersion = protocolOlder
		}
		return client.Connect(ctx, t, &opts)
	}
	_, s.watched, _ = s.cfg.transport()
	return s
}

// Name implements tool.Toolset.
func (s *set) Name() string {
	if s.cfg.Prefix == "" {
		return Name
	}
	return Name + ":" + s.cfg.Prefix
}

// Changed implements tool.Changing.
func (s *set) Changed() <-chan struct{} { return s.changed }

// Close ends the session, and the server if it was started here. Calls fail from then on.
func (s *set) Close() error {
	s.link.close()
	return nil
}

// Tools asks the server for its tools, connecting first if need be. It returns those that can be offered, in the server's
// order; what is left out is named in the log, once for each reason. Its error names the server and says why there is no list
// at all, or that nothing in it can be offered.
func (s *set) Tools(ctx agent.ReadonlyContext) ([]tool.Tool, error) {
	var base context.Context = context.Background()
	if ctx != nil {
		base = ctx
	}
	limited, cancel := context.WithTimeout(base, s.cfg.Connect+s.cfg.Idle)
	defer cancel()
	remote, faults, err := s.list(limited)
	if err != nil {
		return nil, fmt.Errorf("list the tools of %s: %w", s.cfg.place(), err)
	}
	var tools []tool.Tool
	seen := map[string]string{}
	hidden := 0 // by the configuration
	for _, r := range remote {
		if len(s.cfg.Only) > 0 && !slices.Contains(s.cfg.Only, r.Name) {
			hidden++
			continue
		}
		t, err := s.declare(r)
		if err != nil {
			faults[r.Name] = err.Error()
			continue
		}
		if first, twice := seen[t.Name()]; twice {
			faults[r.Name] = fmt.Sprintf("it has the name of another one, %q", first)
			continue
		}
		if s.cfg.ToolFilter != nil && !s.cfg.ToolFilter(ctx, t) {
			hidden++
			continue
		}
		seen[t.Name()] = r.Name
		tools = append(tools, t)
	}
	s.report(faults)
	if len(tools) == 0 && hidden == 0 {
		why := "it lists none"
		for _, name := range slices.Sorted(maps.Keys(faults)) {
			why = faults[name]
			break
		}
		return nil, fmt.Errorf("the MCP server %s offers no tools: %s", s.cfg.place(), why)
	}
	return tools, nil
}

// report logs what is left out and was not before.
func (s *set) report(faults map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, why := range faults {
		if s.bad[name] != why {
			s.cfg.Logger.Warn("a tool of an MCP server is left out", "server", s.cfg.place(), "tool", clip(seen(name), 80), "reason", why)
		}
	}
	s.bad = faults
}

// hear sees what the server says by itself.
func (s *set) hear(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch p := req.GetParams().(type) {
		case *mcp.ProgressNotificationParams:
			s.flights.progress(p)
		}
		if method == "notifications/tools/list_changed" {
			select {
			case s.changed <- struct{}{}:
			default:
			}
		}
		return next(ctx, method, req)
	}
}
