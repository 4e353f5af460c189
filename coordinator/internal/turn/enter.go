package turn

import (
	"encoding/json"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/plugin"
)

// Enter asks the callbacks before a run goes into the agent; begins says that the run begins with it. A content is the answer
// that ends the run.
func (m *Moment) Enter(begins bool) (json.RawMessage, error) {
	if begins {
		l := m.enter(nil, nil)
		c, name, err := first(m, m.Hooks.beforeRun, isContent, func(f plugin.BeforeRunCallback) (*genai.Content, error) { return f(l) })
		if raw, err := m.spoken(l, c, name, err); raw != nil || err != nil {
			return raw, err
		}
	}
	l := m.enter(nil, nil)
	c, name, err := first(m, m.Hooks.beforeAgent, isContent, func(f agent.BeforeAgentCallback) (*genai.Content, error) { return f(l) })
	return m.spoken(l, c, name, err)
}

func isContent(c *genai.Content) bool { return c != nil }

// Leave asks the after-agent callbacks when calls have ended the run. A content is said behind them.
func (m *Moment) Leave() (json.RawMessage, error) { return m.last(nil) }

// last asks the after-agent callbacks, which see what the last answer sets.
func (m *Moment) last(sets map[string]json.RawMessage) (json.RawMessage, error) {
	m.add(sets)
	mergeDelta(m.Run.State, sets)
	if len(m.Hooks.afterAgent) == 0 {
		return nil, nil
	}
	l := m.enter(nil, nil)
	c, name, err := first(m, m.Hooks.afterAgent, isContent, func(f agent.AfterAgentCallback) (*genai.Content, error) { return f(l) })
	return m.spoken(l, c, name, err)
}

// spoken keeps what a callback set, and writes the content that it said; nil for none.
func (m *Moment) spoken(l *live, c *genai.Content, name string, err error) (json.RawMessage, error) {
	if err == nil {
		err = m.keep(l)
	}
	if err != nil {
		return nil, fails(name, err)
	}
	if c == nil {
		return nil, nil
	}
	out := &genai.Content{Role: genai.RoleModel, Parts: full(c.Parts)}
	if len(out.Parts) == 0 || len(plain(out.Parts)) < len(full(c.Parts)) {
		return nil, protocol.Errorf(protocol.CodeModelFailed, "%s failed: what it says needs text or data, and no function calls or responses", name)
	}
	raw, err := encode(out)
	if err != nil {
		return nil, fails(name, err)
	}
	if len(raw) > MaxTurn {
		return nil, protocol.Errorf(protocol.CodeTooLarge, "%s said %d bytes, more than %d", name, len(raw), MaxTurn)
	}
	return raw, nil
}

// UserMessage shows a user's message to plugins before it is part of the session, and returns it as it is to be recorded.
func (m *Moment) UserMessage(raw json.RawMessage) (json.RawMessage, error) {
	c, err := decode(raw)
	if err != nil {
		return raw, nil // whoever checks it says so
	}
	l := m.enter(nil, nil)
	l.message = clone(c)
	other, name, err := first(m, m.Hooks.userMessage, isContent, func(f plugin.OnUserMessageCallback) (*genai.Content, error) { return f(l, clone(c)) })
	if err != nil {
		return nil, fails(name, err)
	}
	if other == nil {
		return raw, nil
	}
	return encode(other)
}

// RunEnded tells plugins that a run has ended.
func (m *Moment) RunEnded() {
	for _, h := range m.Hooks.afterRun {
		l := m.enter(nil, nil)
		_, _ = contain(m, h.name, func() (struct{}, error) { h.call(l); return struct{}{}, nil })
	}
}
