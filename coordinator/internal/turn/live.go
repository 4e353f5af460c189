package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"unicode/utf8"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/artifact"
	"github.com/toolfabric/toolfabric/toolkit/memory"
	"github.com/toolfabric/toolfabric/toolkit/session"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

// live is the agent.Context of code that runs in the coordinator.
type live struct {
	readonly
	logger     *slog.Logger
	call, tool string // the call that it is about; empty for none
	word       *toolconfirmation.ToolConfirmation
	actions    session.EventActions
	state      liveState
	asks       bool // a question about the call may be asked

	mu  sync.Mutex
	ask *protocol.Ask // what was asked last
}

func (l *live) ReadonlyState() session.ReadonlyState { return &l.state }
func (l *live) State() session.State                 { return &l.state }
func (l *live) Actions() *session.EventActions       { return &l.actions }
func (l *live) FunctionCallID() string               { return l.call }
func (l *live) Artifacts() agent.Artifacts           { return noArtifacts{} }
func (l *live) ResultHandle() string                 { return "" }
func (l *live) Attempt() int                         { return 1 }
func (l *live) Progress(float64, string)             {}

func (l *live) ToolConfirmation() *toolconfirmation.ToolConfirmation { return l.word }

func (l *live) SearchMemory(context.Context, string) (*memory.SearchResponse, error) {
	return nil, notConnected("memory search")
}

func (l *live) Logger() *slog.Logger {
	logger := l.logger.With("agent", l.agent, "session", l.run.Session)
	if l.call != "" {
		logger = logger.With("tool", l.tool, "call", l.call)
	}
	return logger
}

func (l *live) RequestConfirmation(hint string, payload any) error {
	switch {
	case l.call == "":
		return protocol.Errorf(protocol.CodeUnsupported, "there is no call to ask about: a confirmation is asked for by a tool or a BeforeToolCallback")
	case !l.asks:
		return protocol.Errorf(protocol.CodeUnsupported, "call %s cannot be asked about any more: it has run, or people have refused it", l.call)
	}
	ask, err := invoke.AskOf(hint, payload)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ask = ask
	return nil
}

func (l *live) asked() *protocol.Ask {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ask
}

// wanted is what the code asked of the session; nil when it wants nothing.
func (l *live) wanted() (*protocol.Actions, error) {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	a := &l.actions
	if len(a.StateDelta) == 0 && !a.SkipSummarization && !a.Escalate && a.TransferToAgent == "" {
		return nil, nil
	}
	out := &protocol.Actions{SkipSummarization: a.SkipSummarization, Escalate: a.Escalate, TransferToAgent: a.TransferToAgent}
	for key, v := range a.StateDelta {
		raw, err := invoke.Encode(v)
		if err != nil {
			return nil, fmt.Errorf("state key %q: %w", key, err)
		}
		if out.StateDelta == nil {
			out.StateDelta = make(map[string]json.RawMessage, len(a.StateDelta))
		}
		out.StateDelta[key] = raw
	}
	return out, nil
}

// confirmationOf is people's word as code sees it.
func confirmationOf(w *protocol.Confirmed) *toolconfirmation.ToolConfirmation {
	if w == nil {
		return nil
	}
	c := &toolconfirmation.ToolConfirmation{Hint: w.Hint, Confirmed: w.Confirmed}
	if tree, err := protocol.Tree(w.Payload); err == nil {
		c.Payload = invoke.Floats(tree)
	}
	return c
}

// liveState is the session's state under what the code has set since. Numbers are float64 when that loses no digit,
// json.Number otherwise.
type liveState struct {
	snapshot map[string]json.RawMessage // not changed while the code runs
	mu       sync.Mutex
	actions  *session.EventActions // whose StateDelta mu guards
}

func (s *liveState) Get(key string) (any, error) {
	s.mu.Lock()
	v, ok := s.actions.StateDelta[key]
	s.mu.Unlock()
	if !ok {
		raw := s.snapshot[key]
		if len(raw) == 0 {
			return nil, fmt.Errorf("%w: %s", session.ErrStateKeyNotExist, key)
		}
		tree, err := protocol.Tree(raw)
		if err != nil {
			return nil, fmt.Errorf("state key %q: %w", key, err)
		}
		v = invoke.Floats(tree)
	}
	if v == nil {
		return nil, fmt.Errorf("%w: %s", session.ErrStateKeyNotExist, key)
	}
	return v, nil
}

// All goes over the keys in order.
func (s *liveState) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		s.mu.Lock()
		keys := slices.Collect(maps.Keys(s.snapshot))
		keys = slices.AppendSeq(keys, maps.Keys(s.actions.StateDelta))
		s.mu.Unlock()
		slices.Sort(keys)
		for _, key := range slices.Compact(keys) {
			if v, err := s.Get(key); err == nil && !yield(key, v) {
				return
			}
		}
	}
}

func (s *liveState) Set(key string, value any) error {
	if key == "" || !utf8.ValidString(key) {
		return fmt.Errorf("state key %q: a key is text and not empty", key)
	}
	if _, err := invoke.Encode(value); err != nil {
		return fmt.Errorf("state key %q: %w", key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.actions.StateDelta == nil {
		s.actions.StateDelta = map[string]any{}
	}
	s.actions.StateDelta[key] = value
	return nil
}

// notConnected is the answer of what a coordinator has no service for.
func notConnected(what string) error {
	return protocol.Errorf(protocol.CodeUnsupported, "%s: no such service is connected to this coordinator", what)
}

type noArtifacts struct{}

func (noArtifacts) Save(context.Context, string, *genai.Part) (*artifact.SaveResponse, error) {
	return nil, notConnected("artifacts")
}

func (noArtifacts) List(context.Context) (*artifact.ListResponse, error) {
	return nil, notConnected("artifacts")
}

func (noArtifacts) Load(context.Context, string) (*artifact.LoadResponse, error) {
	return nil, notConnected("artifacts")
}

func (noArtifacts) LoadVersion(context.Context, string, int) (*artifact.LoadResponse, error) {
	return nil, notConnected("artifacts")
}
