package turn

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// opinion is what before-tool callbacks said of a call that has not run.
type opinion struct {
	result  map[string]any // nil: nothing
	err     error
	ask     *protocol.Ask     // a person is to agree first; nil: no
	args    map[string]any    // as they are now
	changed bool              // args are not the call's own
	actions *protocol.Actions // what else they want; nil: nothing
}

// answers reports whether the call is answered: nobody runs it.
func (s *opinion) answers() bool { return s.ask == nil && (s.result != nil || s.err != nil) }

// before asks the before-tool callbacks about c with args; word is what people said of it, nil when nobody was asked. A
// refused call cannot be asked about again.
func (m *Moment) before(c *protocol.Call, args json.RawMessage, word *protocol.Confirmed) opinion {
	s := opinion{}
	own, err := invoke.Map(args)
	if err != nil {
		own = map[string]any{} // whoever checks the arguments says what is wrong with them
	}
	if own == nil {
		own = map[string]any{}
	}
	s.args = clone(own)
	l := m.enter(c, word)
	l.asks = word == nil || word.Confirmed
	t := m.tool(c)
	s.result, _, s.err = first(m, m.Hooks.beforeTool, isMap, func(f llmagent.BeforeToolCallback) (map[string]any, error) { return f(l, t, s.args) })
	if s.err == nil {
		s.ask = l.asked()
	}
	s.changed = !reflect.DeepEqual(own, s.args)
	if s.actions, err = m.taken(l); err != nil && s.err == nil {
		s.result, s.ask, s.err = nil, nil, err
	}
	return s
}

func isMap(r map[string]any) bool { return r != nil }

// ended is the call's result when callbacks answered it.
func (s *opinion) ended() protocol.Result {
	r := protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeCompleted, Actions: s.actions}
	err := s.err
	if err == nil {
		r.Value, err = encodeObject(s.result)
	}
	if err != nil {
		failed(&r, err)
	}
	return r
}

// failed makes r the answer of a call that failed for err.
func failed(r *protocol.Result, err error) {
	r.Outcome, r.Code, r.Value = protocol.OutcomeFailed, "", protocol.ErrorValue(err.Error())
	if _, ok := errors.AsType[*panicked](err); ok {
		r.Code = protocol.CodeToolPanic
	}
}

// after shows how c ended to the callbacks and returns what is to be recorded: r itself when they leave it as it is. Of a
// call of a tool that does not exist only on-error callbacks are told. How a call truly ended stays: only what came of its
// own run is completed or failed as they say.
func (m *Moment) after(c *protocol.Call, args json.RawMessage, word *protocol.Confirmed, r protocol.Result, exists bool) protocol.Result {
	own, err := outcomeOf(c.Tool, &r)
	return m.show(c, args, word, r, own, err, exists)
}

// answered is what is to be recorded of a call that callbacks answered.
func (m *Moment) answered(c *protocol.Call, args json.RawMessage, word *protocol.Confirmed, s *opinion) protocol.Result {
	r := s.ended()
	own, err := outcomeOf(c.Tool, &r)
	if s.err != nil {
		err = s.err // the callbacks behind may know it
	}
	return m.show(c, args, word, r, own, err, true)
}

// show is after for r, which means own or ownErr to callbacks.
func (m *Moment) show(c *protocol.Call, args json.RawMessage, word *protocol.Confirmed, r protocol.Result, own map[string]any, ownErr error, exists bool) protocol.Result {
	in, err := invoke.Map(args)
	if err != nil || in == nil {
		in = map[string]any{}
	}
	t, l := m.tool(c), m.enter(c, word)
	result, problem := clone(own), ownErr
	replace := func(v map[string]any, err error) {
		switch {
		case err != nil:
			result, problem = nil, err
		case v != nil:
			result, problem = v, nil
		}
	}
	if problem != nil {
		v, _, err := first(m, m.Hooks.onToolError, isMap, func(f llmagent.OnToolErrorCallback) (map[string]any, error) { return f(l, t, clone(in), problem) })
		replace(v, err)
	}
	if exists {
		v, _, err := first(m, m.Hooks.afterTool, isMap, func(f llmagent.AfterToolCallback) (map[string]any, error) { return f(l, t, clone(in), result, problem) })
		replace(v, err)
	}
	actions, err := m.taken(l)
	if err != nil {
		replace(nil, err)
	}
	if problem != ownErr || !reflect.DeepEqual(result, own) {
		r = changed(r, result, problem)
	}
	r.Actions = both(r.Actions, actions)
	return r
}

// changed is r with another value.
func changed(r protocol.Result, result map[string]any, err error) protocol.Result {
	r.Body = nil
	var value json.RawMessage
	if err == nil {
		value, err = encodeObject(result)
	}
	own := r.Outcome == protocol.OutcomeCompleted || r.Outcome == protocol.OutcomeFailed
	switch {
	case err != nil && own:
		failed(&r, err)
	case err != nil:
		r.Value = protocol.ErrorValue(err.Error())
	case own:
		r.Outcome, r.Code, r.Value = protocol.OutcomeCompleted, "", value
	default:
		r.Value = value
	}
	return r
}

// outcomeOf is how a call ended as ADK's callbacks are told: a result or an error.
func outcomeOf(name string, r *protocol.Result) (map[string]any, error) {
	value, err := invoke.Map(r.Value)
	text, isError := value["error"].(string)
	switch {
	case r.Outcome == protocol.OutcomeDenied:
		return nil, fmt.Errorf("error tool %q %w", name, tool.ErrConfirmationRejected)
	case r.Outcome == protocol.OutcomeAsks && (value == nil || isError && len(value) == 1):
		return nil, fmt.Errorf("error tool %q %w", name, tool.ErrConfirmationRequired)
	case r.Outcome == protocol.OutcomeCompleted, r.Outcome.Interim():
		return value, err
	case isError:
		return nil, &callError{text, r.Code}
	}
	return nil, &callError{fmt.Sprintf("the call ended as %s", r.Outcome), r.Code}
}

// callError is a call's error as its tool, or the fabric, told it; Unwrap gives the fabric's code.
type callError struct {
	text string
	code protocol.Code
}

func (e *callError) Error() string { return e.text }

func (e *callError) Unwrap() error {
	if e.code == "" {
		return nil
	}
	return &protocol.Error{Code: e.code, Public: e.text}
}

// both is a with what b adds: b's state wins.
func both(a, b *protocol.Actions) *protocol.Actions {
	switch {
	case b == nil:
		return a
	case a == nil:
		return b
	}
	sum := protocol.Actions{SkipSummarization: a.SkipSummarization || b.SkipSummarization, Escalate: a.Escalate || b.Escalate, TransferToAgent: a.TransferToAgent}
	if b.TransferToAgent != "" {
		sum.TransferToAgent = b.TransferToAgent
	}
	if len(a.StateDelta)+len(b.StateDelta) > 0 {
		sum.StateDelta = map[string]json.RawMessage{}
		mergeDelta(sum.StateDelta, a.StateDelta)
		mergeDelta(sum.StateDelta, b.StateDelta)
	}
	return &sum
}

func mergeDelta(into, from map[string]json.RawMessage) {
	for k, v := range from {
		into[k] = v
	}
}

// tool is c's tool as the agent lists it, or what is known of it here.
func (m *Moment) tool(c *protocol.Call) tool.Tool {
	if t := m.Tools[c.Tool]; t != nil {
		return t
	}
	return known{c.Tool, c.LongRunning}
}

// known is a tool of which its pool knows the rest.
type known struct {
	name string
	long bool
}

func (k known) Name() string        { return k.name }
func (k known) Description() string { return "" }
func (k known) IsLongRunning() bool { return k.long }

// guided is the verdict on a call that callbacks have a say in. It is asked for as the model sent it, is checked as they
// leave it, and is recorded with what they made of its refusal or of its question.
func (j *judge) guided(i int, c protocol.Call, f *genai.FunctionCall) protocol.Call {
	m, offer := j.desk.Moment, j.offer(c.Tool)
	decoded, s := f.Args, opinion{}
	if offer != nil && len(m.Hooks.beforeTool) > 0 {
		c.LongRunning = offer.LongRunning
		s = m.before(&c, c.Args, nil)
		if s.changed {
			raw, err := encode(s.args)
			if err != nil {
				s.result, s.ask, s.err = nil, nil, fmt.Errorf("a callback left arguments that cannot be written as JSON: %w", err)
			} else {
				c.Args, decoded = raw, s.args
			}
		}
	}
	if s.answers() {
		c.Digest, c.Effect, c.Verdict = offer.Pinned, offer.Class(), protocol.VerdictAnswer
		r := m.answered(&c, c.Args, nil, &s)
		c.Answer = &r
		return c
	}
	if s.actions != nil {
		m.add(s.actions.StateDelta)
	}
	j.ask = s.ask
	c = j.verdict(i, c, decoded)
	j.ask = nil
	switch {
	case c.Recorded() != nil:
		r := m.after(&c, c.Args, nil, *c.Recorded(), offer != nil)
		if s.actions != nil { // state is the turn's already
			s.actions.StateDelta = nil
			r.Actions = both(s.actions, r.Actions)
		}
		if r.Outcome == protocol.OutcomeCompleted {
			c.Verdict, c.Refusal = protocol.VerdictAnswer, nil
		}
		if c.Verdict == protocol.VerdictAnswer {
			c.Answer = &r
		} else {
			c.Refusal = &r
		}
	case c.Confirmation != nil:
		c.Shown = m.shown(&c, c.Args, s.result)
	}
	return c
}

// shown is what people see in the place of a response while they are asked about c; result is what a callback returned that
// asked. It is nil for ADK's placeholder.
func (m *Moment) shown(c *protocol.Call, args json.RawMessage, result map[string]any) json.RawMessage {
	r := protocol.Result{Outcome: protocol.OutcomeAsks}
	if result != nil {
		raw, err := encodeObject(result)
		if err != nil {
			raw = protocol.ErrorValue(err.Error())
		}
		r.Value = raw
	}
	r = m.after(c, args, nil, r, true)
	if r.Actions != nil {
		m.add(r.Actions.StateDelta)
	}
	return r.Value
}

// After shows how c ended to the callbacks and returns what is to be recorded. word is what people said of it before it ran.
func (m *Moment) After(c *protocol.Call, word *protocol.Confirmed, r protocol.Result) protocol.Result {
	return m.after(c, c.Args, word, r, true)
}

// Decided asks the callbacks about c, with the arguments that people were asked about, once these have decided. over says
// that the result is the call's answer in that round; otherwise it goes on as decided, and Delta is what callbacks set. What
// people refused stays refused, whatever is shown for it; only a tool that asked by itself, toolDecides, is told a refusal.
func (m *Moment) Decided(c *protocol.Call, d *protocol.FoldedDecision, toolDecides bool) (r protocol.Result, over bool) {
	word := &protocol.Confirmed{ID: d.Confirmation, Confirmed: d.Confirmed, Hint: d.Hint, Payload: d.Payload}
	s := opinion{}
	if len(m.Hooks.beforeTool) > 0 {
		s = m.before(c, c.Args, word)
	}
	if s.changed {
		m.Logger.Warn("a callback changed arguments that people have decided about; the change is left out", "tool", c.Tool, "call", c.ID, "session", m.Run.Session)
	}
	refused := !d.Confirmed && !toolDecides
	switch {
	case s.ask != nil:
		r = protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeAsks, Ask: s.ask, Actions: stateOf(s.actions)}
		if s.result != nil {
			raw, err := encodeObject(s.result)
			if err != nil {
				raw = protocol.ErrorValue(err.Error())
			}
			r.Value = raw
		}
		r = m.after(c, c.Args, word, r, true)
		r.Actions = stateOf(r.Actions)
		return r, true
	case s.answers():
		r = m.answered(c, c.Args, word, &s)
	case refused:
		r = protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeDenied, Actions: s.actions,
			Value: protocol.ErrorValue(fmt.Sprintf("error tool %q %s", c.Tool, tool.ErrConfirmationRejected))}
		r = m.after(c, c.Args, word, r, true)
	default:
		if s.actions != nil {
			m.add(s.actions.StateDelta)
		}
		return protocol.Result{}, false
	}
	if refused {
		r.Outcome, r.Code = protocol.OutcomeDenied, protocol.CodeDenied
	}
	return r, true
}

// stateOf is the state of actions alone: the rest belongs to the answer that ends a call.
func stateOf(a *protocol.Actions) *protocol.Actions {
	if a == nil || len(a.StateDelta) == 0 {
		return nil
	}
	return &protocol.Actions{StateDelta: a.StateDelta}
}

// Late is r when the callbacks that it was shown to did not end.
func Late(r protocol.Result, err error) protocol.Result {
	return changed(r, nil, errors.New(public(err)))
}

// Unrun is the answer of a call about which callbacks were asked that did not end.
func Unrun(err error) protocol.Result {
	r := protocol.Result{V: protocol.Version}
	failed(&r, fmt.Errorf("not executed: %s", public(err)))
	return r
}
