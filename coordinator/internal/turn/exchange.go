package turn

import (
	"bytes"
	"encoding/json"
	"slices"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
)

// exchange is a model's content with calls and what is known of their answers.
type exchange struct {
	agent   string // who made the calls
	calls   []call
	answers []*protocol.Answer // by call; nil is missing
	shown   []shown            // by call; what the last content of responses was made of
	closed  bool               // the conversation went on
}

// shown is an answer as a model is shown it.
type shown struct {
	outcome protocol.Outcome
	value   json.RawMessage
	part    *genai.Part
}

// call is a function call of a content and the id that the fabric gave it.
type call struct {
	id       string // empty: the log has no call for it
	provider string
	name     string
}

// newExchange pairs a content's function calls with the turn's calls, by position. It is nil for a content without calls.
func newExchange(c *genai.Content, recorded []protocol.Call) *exchange {
	wanted := functionCalls(c)
	if len(wanted) == 0 {
		return nil
	}
	x := &exchange{calls: make([]call, len(wanted)), answers: make([]*protocol.Answer, len(wanted)), shown: make([]shown, len(wanted))}
	for i, f := range wanted {
		x.calls[i] = call{provider: f.ID, name: f.Name}
		if i < len(recorded) && recorded[i].Tool == f.Name {
			x.calls[i].id = recorded[i].ID
			if r := recorded[i].Recorded(); r != nil {
				x.answers[i] = &protocol.Answer{Call: recorded[i].ID, Result: *r}
			}
		}
	}
	return x
}

// add notes answers and reports whether one of them changes what a model is shown. Of several answers to one call the one
// of the latest round counts, and of those the first. What a call asks of people, or that it goes on without a word, is
// nothing to show; once the exchange is closed, only calls that the model was told to be pending have more to come.
func (x *exchange) add(answers []protocol.Answer) (changed bool) {
	for i := range answers {
		a := &answers[i]
		if j := x.place(a); j >= 0 {
			x.answers[j] = a
			changed = true
		}
	}
	return changed
}

// place is the index of the call that a is the newest answer of; -1 for none.
func (x *exchange) place(a *protocol.Answer) int {
	if a.Call == "" || a.Outcome == protocol.OutcomeAsks || a.Outcome == protocol.OutcomePending && len(a.Value) == 0 {
		return -1
	}
	j := slices.IndexFunc(x.calls, func(c call) bool { return c.id == a.Call })
	if j < 0 {
		return -1
	}
	switch was := x.answers[j]; {
	case was == nil && x.closed, was != nil && !was.Outcome.Interim(), was != nil && a.Round <= was.Round:
		return -1
	}
	return j
}

// changes reports whether add would change anything.
func (x *exchange) changes(answers []protocol.Answer) bool {
	return slices.ContainsFunc(answers, func(a protocol.Answer) bool { return x.place(&a) >= 0 })
}

// isPending reports whether the model was told of a call that it is still to end.
func (x *exchange) isPending() bool {
	return slices.ContainsFunc(x.answers, func(a *protocol.Answer) bool { return a != nil && a.Outcome.Interim() })
}

// responses is the content that answers all calls in call order. extra are answers that the log does not hold yet.
func (x *exchange) responses(extra []protocol.Answer) *genai.Content {
	y := x
	if len(extra) > 0 {
		y = &exchange{calls: x.calls, closed: x.closed, answers: slices.Clone(x.answers)}
		y.add(extra)
	}
	c := &genai.Content{Role: genai.RoleUser, Parts: make([]*genai.Part, len(y.calls))}
	for i, called := range y.calls {
		r := protocol.Result{Outcome: protocol.OutcomeCancelled, Value: interrupted}
		if a := y.answers[i]; a != nil {
			r = a.Result
		}
		c.Parts[i] = x.show(i, called, r)
	}
	return c
}

// show makes the part that answers the i-th call, unless it was made before.
func (x *exchange) show(i int, called call, r protocol.Result) *genai.Part {
	s := &x.shown[i]
	if s.part == nil || s.outcome != r.Outcome || !bytes.Equal(s.value, r.Value) {
		part := &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: called.provider, Name: called.name, Response: responseOf(r)}}
		*s = shown{outcome: r.Outcome, value: r.Value, part: part}
	}
	return s.part
}

var interrupted = json.RawMessage(`{"error":"the run ended before this call was answered; it may have run"}`)
