package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"strings"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// Moment is one step at the live end of a session's log in which code of the agent and of plugins runs. What that code sets
// is collected in Delta, for the step's event, and seen by what runs after it in the same moment. It belongs to one
// goroutine. A nil *Moment has no code to run.
type Moment struct {
	Hooks   *Hooks
	Agent   string
	Run     Run
	Message *genai.Content // that the run began with; nil when that is not known here
	Logger  *slog.Logger
	Tools   map[string]tool.Tool // that the agent lists, by name; others are known by their names
	Tree    *Tree                // whom a call may hand the run over to; nil is not known

	Delta map[string]json.RawMessage // set so far
	room  int                        // bytes that may still be set

	ctx context.Context // of the step
}

// Begin starts the moment: its code runs until ctx ends. room is how many bytes of state it may set.
func (m *Moment) Begin(ctx context.Context, room int) {
	m.ctx, m.room = ctx, room
	if m.Run.State = maps.Clone(m.Run.State); m.Run.State == nil {
		m.Run.State = map[string]json.RawMessage{}
	}
}

// enter makes the context of one step of code; c is the call that it is about, nil for none.
func (m *Moment) enter(c *protocol.Call, word *protocol.Confirmed) *live {
	l := &live{readonly: readonly{Context: m.ctx, agent: m.Agent, run: m.Run, message: clone(m.Message)}, logger: m.Logger}
	l.actions.StateDelta = map[string]any{} // code may write into it
	l.state.snapshot, l.state.actions = maps.Clone(m.Run.State), &l.actions
	if c != nil {
		l.call, l.tool = c.ID, c.Tool
		l.word = confirmationOf(word)
	}
	return l
}

// Readonly is what toolsets and predicates see, for as long as ctx.
func (m *Moment) Readonly(ctx context.Context) agent.ReadonlyContext {
	run := m.Run
	run.State = maps.Clone(run.State)
	return readonly{Context: ctx, agent: m.Agent, run: run, message: clone(m.Message)}
}

// taken is what a step of code wants of the session; the state that it set is seen by the next one. It returns an error when
// that is no JSON, or more than there is room for, or when a call would hand the run over to nobody.
func (m *Moment) taken(l *live) (*protocol.Actions, error) {
	a, err := l.wanted()
	if a == nil || err != nil {
		return nil, err
	}
	if l.call != "" && m.Tree != nil {
		if nobody := m.Tree.Misdirected(a.TransferToAgent); nobody != "" {
			return nil, fmt.Errorf("%s: nothing that a callback asked of the session was done; the agents are: %s", nobody, strings.Join(m.Tree.Names(), ", "))
		}
	}
	for k, v := range a.StateDelta {
		if m.room -= len(k) + len(v); m.room < 0 {
			return nil, fmt.Errorf("what was set would make the session's state larger than 256 KiB")
		}
		m.Run.State[k] = v
	}
	return a, nil
}

// keep puts what a step of code set into the moment's delta.
func (m *Moment) keep(l *live) error {
	a, err := m.taken(l)
	if a == nil || err != nil {
		return err
	}
	m.add(a.StateDelta)
	return nil
}

func (m *Moment) add(delta map[string]json.RawMessage) {
	if m.Delta == nil && len(delta) > 0 {
		m.Delta = map[string]json.RawMessage{}
	}
	maps.Copy(m.Delta, delta)
}

// panicked is the error of code that panicked. Its text goes to models and people; the stack is in the log only.
type panicked struct{ name string }

func (p *panicked) Error() string { return p.name + " panicked" }

// contain runs f, which is name's code.
func contain[R any](m *Moment, name string, f func() (R, error)) (r R, err error) {
	defer func() {
		if p := recover(); p != nil {
			stack := debug.Stack()
			m.Logger.Error("a callback panicked", "callback", name, "session", m.Run.Session, "panic", p, "stack", string(stack[:min(len(stack), 16<<10)]))
			err = &panicked{name}
		}
	}()
	return f()
}

// first asks hooks in order until one has said something: a value that said recognizes, or an error. name is whose word it
// is, empty for nobody's.
func first[F, R any](m *Moment, hooks []hook[F], said func(R) bool, ask func(F) (R, error)) (r R, name string, err error) {
	for _, h := range hooks {
		r, err := contain(m, h.name, func() (R, error) { return ask(h.call) })
		if err != nil || said(r) {
			return r, h.name, err
		}
	}
	var none R
	return none, "", nil
}

// fails is a callback's error as the problem that its run ends with.
func fails(name string, err error) error {
	if protocol.CodeOf(err) != protocol.CodeInternal {
		return err
	}
	if name == "" {
		name = "a callback"
	}
	text := err.Error()
	if _, ok := err.(*panicked); ok {
		return protocol.Wrap(err, protocol.CodeModelFailed, "%s; the coordinator's log has the stack", text)
	}
	return protocol.Wrap(err, protocol.CodeModelFailed, "%s failed: %.500s", name, text)
}

// encodeObject writes what a callback answered.
func encodeObject(v map[string]any) (json.RawMessage, error) {
	raw, err := invoke.Encode(v)
	if err != nil {
		return nil, err
	}
	if len(raw) > protocol.MaxInlineResult {
		return nil, fmt.Errorf("the result has %d bytes, more than %d", len(raw), protocol.MaxInlineResult)
	}
	return raw, nil
}
