package badinput

import (
	"encoding/json"
	"sync/atomic"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// stub is a tool that counts its runs.
type stub struct {
	name     string
	settings tool.Settings
	schema   string
	do       func(ctx tool.Context) (json.RawMessage, error)
	runs     atomic.Int64
}

var _ tool.RunnerJSON = (*stub)(nil)

func (s *stub) Name() string            { return s.name }
func (s *stub) Description() string     { return "The tool " + s.name + "." }
func (s *stub) IsLongRunning() bool     { return false }
func (s *stub) Settings() tool.Settings { return s.settings }

func (s *stub) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: s.name, Description: s.Description(), ParametersJsonSchema: json.RawMessage(s.schema)}
}

func (s *stub) Run(tool.Context, any) (map[string]any, error) { panic("a stub runs by RunJSON") }

func (s *stub) RunJSON(ctx tool.Context, _ json.RawMessage) (json.RawMessage, error) {
	s.runs.Add(1)
	return s.do(ctx)
}

// addSchema is what add takes: n is optional, so that {} is a call.
const addSchema = `{"type":"object","additionalProperties":false,"properties":{"n":{"type":"integer","maximum":10}}}`

func answering(name, value string) *stub {
	return &stub{name: name, schema: addSchema, do: func(tool.Context) (json.RawMessage, error) { return json.RawMessage(value), nil }}
}

// held is a tool whose runs tell their call ids and go on until the call ends otherwise.
type held struct {
	*stub
	started chan string
}

func holding(name string, timeout time.Duration) *held {
	h := &held{started: make(chan string, 100)}
	h.stub = &stub{name: name, schema: addSchema, settings: tool.Settings{Timeout: timeout, QueueTimeout: timeout}, do: func(ctx tool.Context) (json.RawMessage, error) {
		h.started <- ctx.FunctionCallID()
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	return h
}
