package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

// Limits of a question, in bytes.
const (
	maxHint    = 4 << 10
	maxPayload = 64 << 10
)

// Gate decides before anything is claimed whether a call may run. It returns true when it may, or when its context ended,
// as whoever runs it then sees. Otherwise the result is the call's answer, and the tool's function must not run:
//
//   - asks: nobody was asked yet, and the tool's Asker wants a person to agree;
//   - denied: people said no to what was asked before the tool ran;
//   - failed: the tool is declared to need an agreement and the call has none (forbidden), or the Asker failed (no code),
//     panicked (tool_panic) or ran into the timeout of one attempt (expired).
//
// Arguments that do not fit are not asked about: Run refuses them.
func (t *Tool) Gate(ctx context.Context, c Call) (protocol.Result, bool) {
	word := c.Envelope.Confirmation
	if word == nil && !t.decl.Confirm && t.asker == nil || word != nil && word.Confirmed {
		return protocol.Result{}, true
	}
	r := protocol.Result{V: protocol.Version, Worker: c.Worker, Attempt: c.Attempt, Started: time.Now().UnixMilli()}
	open := t.gate(ctx, &c, &r)
	r.Ended = time.Now().UnixMilli()
	return r, open
}

func (t *Tool) gate(ctx context.Context, c *Call, r *protocol.Result) bool {
	word := c.Envelope.Confirmation
	switch {
	case word == nil && t.decl.Confirm:
		fail(r, protocol.CodeForbidden, fmt.Sprintf("not executed: tool %q runs only after a person agreed, and the call brings no agreement. The coordinator that sent it knows another version of the tool, or somebody else sent it.", t.decl.Name))
		return false
	case word == nil:
		return !t.asks(ctx, c, r)
	// A question of before the first run is nobody's but the fabric's; one that ended the first round is the asker's, if it
	// still asks; and only the tool itself asks later ones, which it is told about.
	case c.Envelope.Round == 0, c.Envelope.Round == 1 && t.asker != nil && t.asks(ctx, c, r):
		*r = protocol.Result{V: r.V, Worker: r.Worker, Attempt: r.Attempt, Started: r.Started}
		fail(r, protocol.CodeDenied, fmt.Sprintf("error tool %q %s", t.decl.Name, tool.ErrConfirmationRejected))
		r.Outcome = protocol.OutcomeDenied
		return false
	}
	return true
}

// asks reports whether the tool's asker wants a person to agree, or failed; r is then what to answer.
func (t *Tool) asks(ctx context.Context, c *Call, r *protocol.Result) bool {
	args, err := t.schema.Normalize(c.Envelope.Args)
	if err != nil || ctx.Err() != nil {
		return false
	}
	timeout := t.timeout(c)
	attempt, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	a, ended := t.contain(attempt, c, func() answer {
		yes, err := t.asker.AsksConfirmation(args)
		return answer{yes: yes, err: err}
	})
	switch {
	case ctx.Err() != nil:
		return false
	case !ended:
		t.ended(attempt, timeout, r, true, " when it was asked whether a person must agree")
	case a.stack != nil:
		fail(r, protocol.CodeToolPanic, fmt.Sprintf("not executed: tool %q panicked when it was asked whether a person must agree: %s", t.decl.Name, a.panicked))
	case a.err != nil:
		fail(r, "", a.err.Error())
	case !a.yes:
		return false
	default:
		r.Outcome, r.Ask = protocol.OutcomeAsks, &protocol.Ask{Hint: toolconfirmation.Hint(t.decl.Name), Provider: true}
		r.Value = protocol.ErrorValue(fmt.Sprintf("error tool %q %s", t.decl.Name, tool.ErrConfirmationRequired))
	}
	return true
}

func (c *toolContext) RequestConfirmation(hint string, payload any) error {
	ask, err := AskOf(hint, payload)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ask = ask
	return nil
}

// AskOf is the question that RequestConfirmation asks with hint and payload. Its error says what is wrong with them.
func AskOf(hint string, payload any) (*protocol.Ask, error) {
	if len(hint) > maxHint {
		return nil, fmt.Errorf("the hint has %d bytes, more than %d", len(hint), maxHint)
	}
	ask := &protocol.Ask{Hint: strings.ToValidUTF8(hint, "\uFFFD")}
	if payload != nil {
		raw, err := Encode(payload)
		if err != nil {
			return nil, fmt.Errorf("the payload: %w", err)
		}
		if len(raw) > maxPayload {
			return nil, fmt.Errorf("the payload has %d bytes, more than %d", len(raw), maxPayload)
		}
		if err := protocol.Check(raw, resultLimits); err != nil {
			return nil, fmt.Errorf("the payload: %s", publicText(err))
		}
		if string(raw) != "null" {
			ask.Payload = raw
		}
	}
	return ask, nil
}

// asked is the tool's question; nil without one. Only for a tool that has returned.
func (c *toolContext) asked() *protocol.Ask {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ask
}

// asking makes r the answer of a tool that returned after it had requested a confirmation.
func asking(r *protocol.Result, ask *protocol.Ask, a answer) {
	r.Outcome, r.Code, r.Ask, r.Value = protocol.OutcomeAsks, "", ask, nil
	switch {
	case a.err != nil:
		r.Value = protocol.ErrorValue(a.err.Error())
	case a.object:
		r.Value = a.value
	}
	if r.Actions != nil {
		r.Actions = stateOnly(r.Actions.StateDelta)
	}
}

func stateOnly(delta map[string]json.RawMessage) *protocol.Actions {
	if len(delta) == 0 {
		return nil
	}
	return &protocol.Actions{StateDelta: delta}
}
