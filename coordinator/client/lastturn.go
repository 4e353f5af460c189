package client

import (
	"slices"

	"github.com/toolfabric/toolfabric/protocol"
)

// lastTurn is the newest turn of a model in a run, with what its calls were answered.
type lastTurn struct {
	calls   []protocol.Call
	answers map[string]protocol.Answer
}

func (l *lastTurn) begin(t *protocol.Turn) {
	l.calls, l.answers = t.Calls, map[string]protocol.Answer{}
	for i := range t.Calls {
		if r := t.Calls[i].Recorded(); r != nil {
			l.answers[t.Calls[i].ID] = protocol.Answer{Call: t.Calls[i].ID, Result: *r}
		}
	}
}

// answered keeps the newest answer of each call.
func (l *lastTurn) answered(answers []protocol.Answer) {
	for _, a := range answers {
		if slices.ContainsFunc(l.calls, func(c protocol.Call) bool { return c.ID == a.Call }) {
			l.answers[a.Call] = a
		}
	}
}

// results are the answers that say something, in call order.
func (l *lastTurn) results() []protocol.Answer {
	var all []protocol.Answer
	for i := range l.calls {
		if a, ok := l.answers[l.calls[i].ID]; ok && len(a.Value) > len(`{}`) {
			all = append(all, a)
		}
	}
	return all
}
