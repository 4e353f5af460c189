package sim_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/tests/sim"
)

// acts is a call whose answer its turn records.
func acts(id string, a protocol.Actions) protocol.Call {
	c := call(id)
	c.Verdict, c.Answer = protocol.VerdictAnswer, &protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{}`), Actions: &a}
	return c
}

func TestCheckTellsWhoseTurnItIs(t *testing.T) {
	exits, toB := protocol.Actions{SkipSummarization: true}, protocol.Actions{TransferToAgent: "b"}
	for name, tc := range map[string]struct {
		calls  []protocol.Call
		speaks string // in the turn that follows
		speak  bool   // somebody says something in between
		bad    bool
	}{
		"it goes on with who spoke":                  {calls: []protocol.Call{acts("c1", protocol.Actions{})}, speaks: "a"},
		"another one takes the word":                 {calls: []protocol.Call{acts("c1", protocol.Actions{})}, speaks: "b", bad: true},
		"it is handed over":                          {calls: []protocol.Call{acts("c1", toB)}, speaks: "b"},
		"it is handed over and goes on all the same": {calls: []protocol.Call{acts("c1", toB)}, speaks: "a", bad: true},
		"it ended":                         {calls: []protocol.Call{acts("c1", exits), acts("c2", protocol.Actions{})}, speaks: "a", bad: true},
		"it ended, and somebody speaks":    {calls: []protocol.Call{acts("c1", exits)}, speaks: "a", speak: true},
		"handing over goes before the end": {calls: []protocol.Call{acts("c1", toB), acts("c2", exits)}, speaks: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			s.event(1, adopt("a1", folded("i1", s.input("i1"))))
			first := s.answer("first", 1, tc.calls...)
			first.Agent = "a"
			s.event(1, protocol.Event{Turn: first})
			if tc.speak {
				s.event(1, protocol.Event{Inputs: []protocol.FoldedInput{folded("i2", s.input("i2"))}})
			}
			next := s.answer("next", s.seqs[s.Names.Log()])
			next.Agent = tc.speaks
			s.event(1, protocol.Event{Turn: next, Stop: done})
			found := sim.Check(s.History)
			if is := slices.ContainsFunc(found, func(v sim.Violation) bool { return v.ID == "I28" }); is != tc.bad || !tc.bad && len(found) > 0 {
				t.Errorf("found %v", found)
			}
		})
	}
}
