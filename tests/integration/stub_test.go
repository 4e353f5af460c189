package integration

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// stub is a tool that does what a test says and remembers how it was run.
type stub struct {
	name     string
	settings tool.Settings
	long     bool
	schema   json.RawMessage // empty takes any object
	do       func(ctx tool.Context, args json.RawMessage) (json.RawMessage, error)

	mu   sync.Mutex
	runs []stubRun
}

type stubRun struct {
	call    string
	attempt int
	args    string
}

var _ tool.RunnerJSON = (*stub)(nil)

func (s *stub) Name() string            { return s.name }
func (s *stub) Description() string     { return "The tool " + s.name + "." }
func (s *stub) IsLongRunning() bool     { return s.long }
func (s *stub) Settings() tool.Settings { return s.settings }

func (s *stub) Declaration() *genai.FunctionDeclaration {
	schema := s.schema
	if schema == nil {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	return &genai.FunctionDeclaration{Name: s.name, Description: s.Description(), ParametersJsonSchema: schema}
}

func (s *stub) Run(tool.Context, any) (map[string]any, error) {
	panic("a stub runs by RunJSON")
}

func (s *stub) RunJSON(ctx tool.Context, args json.RawMessage) (json.RawMessage, error) {
	s.mu.Lock()
	s.runs = append(s.runs, stubRun{call: ctx.FunctionCallID(), attempt: ctx.Attempt(), args: string(args)})
	s.mu.Unlock()
	return s.do(ctx, args)
}

// ran is how the tool was run so far.
func (s *stub) ran() []stubRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]stubRun(nil), s.runs...)
}

func (s *stub) wantRuns(t *testing.T, n int) {
	t.Helper()
	if got := len(s.ran()); got != n {
		t.Errorf("%s ran %d times, want %d", s.name, got, n)
	}
}

// answering is a tool that answers with the same value each time.
func answering(name, value string, effect tool.Effect) *stub {
	return &stub{name: name, settings: tool.Settings{Effect: effect}, do: func(tool.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(value), nil
	}}
}

// gate is a tool that says when a run starts and answers once it is opened, or when its context ends.
type gate struct {
	*stub
	started chan string // call ids
	opened  chan struct{}
}

func gated(name, value string, settings tool.Settings) *gate {
	g := &gate{started: make(chan string, 1000), opened: make(chan struct{})}
	g.stub = &stub{name: name, settings: settings, do: func(ctx tool.Context, _ json.RawMessage) (json.RawMessage, error) {
		g.started <- ctx.FunctionCallID()
		select {
		case <-g.opened:
			return json.RawMessage(value), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	return g
}

func (g *gate) open() { close(g.opened) }

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case v := <-from:
		return v
	case <-late.C:
		t.Fatalf("no %s in %s", what, patience)
		panic("unreachable")
	}
}

// sumOf adds a and b of its arguments.
func sumOf(_ tool.Context, args json.RawMessage) (json.RawMessage, error) {
	var in struct{ A, B int }
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, err
	}
	return json.Marshal(in.A + in.B)
}
