package tool

import (
	"encoding/json"
	"errors"

	"github.com/toolfabric/toolfabric/toolkit/agent"
)

// What ADK's tools answer while a person is asked, and after one has refused. Texts are ADK's.
var (
	ErrConfirmationRequired = errors.New("requires confirmation, please approve or reject")
	ErrConfirmationRejected = errors.New("call is rejected")
)

// ConfirmationProvider decides by a tool's name and arguments, a map[string]any whose numbers are float64, whether a person
// must agree to a call first. It may be asked several times about one call and should say the same each time.
type ConfirmationProvider func(toolName string, toolInput any) bool

// WithConfirmation is ts with each of its tools as ToolWithConfirmation makes it. It keeps the name, and panics when ts is
// nil.
func WithConfirmation(ts Toolset, requireConfirmation bool, provider ConfirmationProvider) Toolset {
	if ts == nil {
		panic("tool.WithConfirmation: the toolset is nil")
	}
	return &setLayer{ts, func(_ agent.ReadonlyContext, t Tool) Tool {
		return ToolWithConfirmation(t, requireConfirmation, provider)
	}}
}

// ToolWithConfirmation is t, asking a person before each call, or, when there is a provider, before those that it names;
// requireConfirmation is then ignored. A tool that asks already goes on doing so, and one agreement counts for both.
// Everything else of t is kept: declaration, settings, how it runs, what it does to model requests.
//
// The question belongs where the tool runs: of Pool(name) nothing but the name is here, so that wrapping it makes a tool
// that no agent takes. It panics when t is nil.
func ToolWithConfirmation(t Tool, requireConfirmation bool, provider ConfirmationProvider) Tool {
	if t == nil {
		panic("tool.ToolWithConfirmation: the tool is nil")
	}
	if r, runs := AsRunnable(t); runs {
		return &confirmed{runLayer{layer{t}, r}, requireConfirmation && provider == nil, provider}
	}
	if _, shapes := As[RequestProcessor](t); shapes {
		return t // nobody calls it
	}
	return named{t, t.Name()}
}

// confirmed is a tool whose calls are asked about.
type confirmed struct {
	runLayer
	require  bool
	provider ConfirmationProvider
}

// Settings are those of the tool, with the flag on top.
func (c *confirmed) Settings() Settings {
	s := settingsOf(c.Tool)
	s.Confirm = s.Confirm || c.require
	return s
}

// AsksConfirmation asks the tool itself and then the provider, which knows the tool by the name it has here.
func (c *confirmed) AsksConfirmation(args json.RawMessage) (bool, error) {
	if below, ok := As[Asker](c.Tool); ok {
		if asks, err := below.AsksConfirmation(args); asks || err != nil {
			return asks, err
		}
	}
	if c.provider == nil {
		return false, nil
	}
	var in map[string]any
	if err := json.Unmarshal(args, &in); err != nil {
		return false, err
	}
	return c.provider(c.Name(), in), nil
}
