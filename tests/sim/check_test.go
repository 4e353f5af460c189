package sim_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/sim"
)

// script writes histories by hand.
type script struct {
	sim.History
	seqs map[string]uint64
}

func (s *script) store(stream, subject string, body any) uint64 {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	s.seqs[stream]++
	s.Records = append(s.Records, sim.Record{Stream: stream, Acked: true, Stored: natswire.Stored{Subject: subject, Data: data, Seq: s.seqs[stream]}})
	return s.seqs[stream]
}

func (s *script) input(id string) uint64 {
	in := protocol.Input{V: protocol.Version, ID: id, Kind: protocol.InputMessage, Content: json.RawMessage(`{}`)}
	return s.store(s.Names.Input(), s.Names.InputSubject("app", "me", "s1"), in)
}

// event appends to the log. An adoption has its guard, and a turn of a model its entry in the ledger.
func (s *script) event(epoch uint64, ev protocol.Event) {
	ev.V, ev.Epoch = protocol.Version, epoch
	if ev.Adopt != nil {
		s.guard(ev.Adopt.Adoption, s.seqs[s.Names.Log()])
	}
	s.store(s.Names.Log(), s.Names.LogSubject("app", "s1"), ev)
}

func (s *script) dispatch(id string) {
	env := protocol.Envelope{V: protocol.Version, App: "app", Session: "s1", Call: id, Tool: "tool", Effect: protocol.EffectAtMostOnce, Args: json.RawMessage(`{}`)}
	s.store(s.Names.Calls(), s.Names.CallSubject("tool"), env)
}

func (s *script) result(id, text string) protocol.Answer {
	r := protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{"result":"` + text + `"}`)}
	seq := s.store(s.Names.Results(), s.Names.ResultSubject("tool", "s1", id, 0), r)
	return protocol.Answer{Call: id, Seq: seq, Result: r}
}

func (s *script) start(id string) {
	s.Starts = append(s.Starts, sim.Started{Call: id, Tool: "tool", Args: json.RawMessage(`{}`), At: len(s.Records)})
}

func (s *script) guard(id string, after uint64) uint64 {
	return s.store(s.Names.Timers(), s.Names.TimerSubject("app", "s1", id), protocol.Guard{V: protocol.Version, Adoption: id, Expected: after})
}

func (s *script) settle(stream string, seq uint64) {
	s.Settled = append(s.Settled, sim.Settled{Stream: stream, Seq: seq, At: len(s.Records)})
}

func call(id string) protocol.Call {
	return protocol.Call{ID: id, Tool: "tool", Args: json.RawMessage(`{}`), Effect: protocol.EffectAtMostOnce, Verdict: protocol.VerdictRun}
}

func adopt(id string, inputs ...protocol.FoldedInput) protocol.Event {
	return protocol.Event{Adopt: &protocol.Adopt{Coordinator: "c", Adoption: id}, Inputs: inputs}
}

func folded(id string, seq uint64) protocol.FoldedInput {
	return protocol.FoldedInput{ID: id, Seq: seq, Kind: protocol.InputMessage}
}

// answer is a turn of a model that is in its ledger.
func (s *script) answer(id string, seq uint64, calls ...protocol.Call) *protocol.Turn {
	s.Asked = append(s.Asked, sim.Asked{Session: "app.s1", Answer: "answer-" + id})
	return &protocol.Turn{RequestSeq: seq, Content: json.RawMessage(`{"text":"answer-` + id + `"}`), Calls: calls}
}

// claim is what came first on the subject of a call's claim.
func (s *script) claim(c protocol.Claim) {
	s.store(s.Names.Results(), s.Names.ClaimSubject("tool", "c1", 0), c)
}

func turn(calls ...protocol.Call) *protocol.Turn { return &protocol.Turn{Calls: calls} }

var done = &protocol.Stop{Kind: protocol.StopDone}

func newScript(t *testing.T) *script {
	return &script{History: sim.History{Names: names(t), Left: map[string]int{}, ModelCalls: 3, Deliveries: 2}, seqs: map[string]uint64{}}
}

// good is a session of one input and one call.
func good(s *script) {
	seq := s.input("i1")
	s.event(1, adopt("a1", folded("i1", seq)))
	s.event(1, protocol.Event{Turn: turn(call("c1"))})
	s.dispatch("c1")
	s.claim(protocol.Claim{Worker: "w"})
	s.start("c1")
	answer := s.result("c1", "x")
	s.event(1, protocol.Event{Answers: []protocol.Answer{answer}, Turn: s.answer("good", 2), Stop: done})
}

func TestCheckPassesAGoodHistory(t *testing.T) {
	s := newScript(t)
	good(s)
	if found := sim.CheckQuiet(s.History); len(found) > 0 {
		t.Fatal(found)
	}
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		id     string
		write  func(s *script)
		always bool // also in a run that is cut
	}{
		"an epoch falls": {id: "I2", always: true, write: func(s *script) {
			good(s)
			s.event(2, adopt("a2"))
			s.event(1, protocol.Event{Stop: done})
		}},
		"an adoption keeps the epoch": {id: "I2", always: true, write: func(s *script) {
			good(s)
			s.event(1, adopt("a2"))
			s.event(1, protocol.Event{Stop: done})
		}},
		"an input is folded twice": {id: "I5", always: true, write: func(s *script) {
			good(s)
			s.event(2, adopt("a2", folded("i1", 9)))
			s.event(2, protocol.Event{Turn: s.answer("more", 9), Stop: done})
		}},
		"a message is folded as two inputs": {id: "I5", always: true, write: func(s *script) {
			good(s)
			s.event(2, adopt("a2", folded("i2", 1)))
			s.event(2, protocol.Event{Turn: s.answer("more", 9), Stop: done})
		}},
		"an acked input is not folded": {id: "I4", write: func(s *script) {
			good(s)
			s.input("i2")
		}},
		"an unreadable input has no dead letter": {id: "I4", write: func(s *script) {
			good(s)
			s.store(s.Names.Input(), s.Names.InputSubject("app", "me", "s1"), "nonsense")
		}},
		"a call is dispatched before its turn": {id: "I8", always: true, write: func(s *script) {
			s.dispatch("c1")
			good(s)
		}},
		"a refused call is dispatched": {id: "I8", always: true, write: func(s *script) {
			good(s)
			refused := call("c2")
			refused.Verdict, refused.Refusal = protocol.VerdictRefuse, &protocol.Result{Outcome: protocol.OutcomeFailed}
			s.event(2, adopt("a2"))
			s.event(2, protocol.Event{Turn: turn(refused)})
			s.dispatch("c2")
			s.event(2, protocol.Event{Stop: done})
		}},
		"an effect starts that nobody asked for": {id: "I8", always: true, write: func(s *script) {
			good(s)
			s.start("c9")
		}},
		"a call id comes back": {id: "I9", always: true, write: func(s *script) {
			good(s)
			s.event(2, adopt("a2"))
			s.event(2, protocol.Event{Turn: turn(call("c1")), Stop: done})
		}},
		"a call goes out with other arguments": {id: "I9", always: true, write: func(s *script) {
			good(s)
			env := protocol.Envelope{Call: "c1", Tool: "tool", Args: json.RawMessage(`{"a":1}`)}
			s.store(s.Names.Calls(), s.Names.CallSubject("tool"), env)
		}},
		"a call is answered twice": {id: "I10", always: true, write: func(s *script) {
			good(s)
			answer := protocol.Answer{Call: "c1", Seq: 2, Result: protocol.Result{Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{"result":"x"}`)}}
			s.event(2, adopt("a2"))
			s.event(2, protocol.Event{Answers: []protocol.Answer{answer}, Stop: done})
		}},
		"a call is answered that no turn has": {id: "I10", always: true, write: func(s *script) {
			good(s)
			s.event(2, adopt("a2"))
			s.event(2, protocol.Event{Answers: []protocol.Answer{{Call: "c9"}}, Stop: done})
		}},
		"a refused call is answered again": {id: "I10", always: true, write: func(s *script) {
			good(s)
			refused := call("c2")
			refused.Verdict, refused.Refusal = protocol.VerdictRefuse, &protocol.Result{Outcome: protocol.OutcomeFailed}
			s.event(2, adopt("a2"))
			s.event(2, protocol.Event{Turn: turn(refused)})
			s.event(2, protocol.Event{Answers: []protocol.Answer{{Call: "c2"}}, Stop: done})
		}},
		"a call is never answered": {id: "I10", write: func(s *script) {
			good(s)
			s.event(2, adopt("a2"))
			s.event(2, protocol.Event{Turn: turn(call("c2")), Stop: done})
		}},
		"the second result is shown": {id: "I11", always: true, write: func(s *script) {
			s.event(1, adopt("a1"))
			s.event(1, protocol.Event{Turn: turn(call("c1"))})
			s.result("c1", "first")
			s.event(1, protocol.Event{Answers: []protocol.Answer{s.result("c1", "second")}, Stop: done})
		}},
		"another text than the first result's is shown": {id: "I11", always: true, write: func(s *script) {
			s.event(1, adopt("a1"))
			s.event(1, protocol.Event{Turn: turn(call("c1"))})
			answer := s.result("c1", "first")
			answer.Value = json.RawMessage(`{"result":"other"}`)
			s.event(1, protocol.Event{Answers: []protocol.Answer{answer}, Stop: done})
		}},
		"a result is shown that nobody stored": {id: "I11", always: true, write: func(s *script) {
			s.event(1, adopt("a1"))
			s.event(1, protocol.Event{Turn: turn(call("c1"))})
			s.event(1, protocol.Event{Answers: []protocol.Answer{{Call: "c1", Seq: 7}}, Stop: done})
		}},
		"a stored result is passed over": {id: "I11", always: true, write: func(s *script) {
			s.event(1, adopt("a1"))
			s.event(1, protocol.Event{Turn: turn(call("c1"))})
			s.result("c1", "first")
			s.event(1, protocol.Event{Answers: []protocol.Answer{{Call: "c1", Result: protocol.Result{Outcome: protocol.OutcomeExpired}}}, Stop: done})
		}},
		"an at_most_once effect starts twice": {id: "I12", always: true, write: func(s *script) {
			good(s)
			s.start("c1")
		}},
		"an effect starts against a coordinator's claim": {id: "I14", always: true, write: func(s *script) {
			s.claim(protocol.Claim{Coordinator: "c", Code: protocol.CodeCancelled})
			s.claim(protocol.Claim{Worker: "w"})
			good(s)
		}},
		"an effect starts without a claim": {id: "I14", always: true, write: func(s *script) {
			s.event(1, adopt("a1"))
			s.event(1, protocol.Event{Turn: turn(call("c1"))})
			s.dispatch("c1")
			s.start("c1")
			s.claim(protocol.Claim{Worker: "w"})
			s.event(1, protocol.Event{Answers: []protocol.Answer{s.result("c1", "x")}, Stop: done})
		}},
		"an effect is said not to have started": {id: "I14", always: true, write: func(s *script) {
			s.event(1, adopt("a1"))
			s.event(1, protocol.Event{Turn: turn(call("c1"))})
			s.claim(protocol.Claim{Worker: "w"})
			s.start("c1")
			s.event(1, protocol.Event{Answers: []protocol.Answer{s.result("c1", "it was not executed")}, Stop: done})
		}},
		"an effect starts with other arguments": {id: "I13", always: true, write: func(s *script) {
			good(s)
			s.Starts[0].Args = json.RawMessage(`{"n":1}`)
		}},
		"an idempotent call is tried too often": {id: "I13", always: true, write: func(s *script) {
			again := call("c1")
			again.Effect = protocol.EffectIdempotent
			s.event(1, adopt("a1"))
			s.event(1, protocol.Event{Turn: turn(again)})
			env := protocol.Envelope{V: protocol.Version, Call: "c1", Tool: "tool", Effect: protocol.EffectIdempotent, Args: json.RawMessage(`{}`)}
			s.store(s.Names.Calls(), s.Names.CallSubject("tool"), env)
			for range s.Deliveries + 1 {
				s.start("c1")
			}
			s.event(1, protocol.Event{Answers: []protocol.Answer{s.result("c1", "x")}, Stop: done})
		}},
		"a call goes out as another version": {id: "I8", always: true, write: func(s *script) {
			good(s)
			env := protocol.Envelope{Call: "c1", Tool: "tool", Digest: "new", Effect: protocol.EffectAtMostOnce, Args: json.RawMessage(`{}`)}
			s.store(s.Names.Calls(), s.Names.CallSubject("tool"), env)
		}},
		"an event stands twice": {id: "I1", always: true, write: func(s *script) {
			good(s)
			s.event(2, protocol.Event{ID: "e", Adopt: &protocol.Adopt{Adoption: "a2"}})
			s.event(2, protocol.Event{ID: "e", Stop: done})
		}},
		"somebody writes who did not adopt": {id: "I1", always: true, write: func(s *script) {
			good(s)
			s.event(1, protocol.Event{Stop: done})
		}},
		"a log cannot be replayed": {id: "I3", always: true, write: func(s *script) {
			good(s)
			s.event(2, adopt("a2"))
			s.event(2, protocol.Event{State: json.RawMessage(`[]`)})
			s.event(2, protocol.Event{Stop: done})
		}},
		"an input is acked before it is folded": {id: "I6", always: true, write: func(s *script) {
			s.settle(s.Names.Input(), s.input("i1"))
			s.event(1, adopt("a1", folded("i1", 1)))
			s.event(1, protocol.Event{Turn: s.answer("x", 1), Stop: done})
		}},
		"a guard is acked while its adoption owns the session": {id: "I6", always: true, write: func(s *script) {
			s.event(1, adopt("a1"))
			s.settle(s.Names.Timers(), 1)
			s.event(1, protocol.Event{Stop: done})
		}},
		"a guard is removed when its adoption drained": {id: "I6", always: true, write: func(s *script) {
			s.event(1, adopt("a1"))
			s.event(1, protocol.Event{Stop: &protocol.Stop{Kind: protocol.StopDrained}})
			s.settle(s.Names.Timers(), 1)
			s.event(2, adopt("a2"))
			s.event(2, protocol.Event{Stop: done})
		}},
		"a guard is acked before its adoption": {id: "I6", always: true, write: func(s *script) {
			s.settle(s.Names.Timers(), s.guard("a1", 0))
			s.event(1, adopt("a1"))
			s.event(1, protocol.Event{Stop: done})
		}},
		"a call is acked without a result": {id: "I6", always: true, write: func(s *script) {
			s.event(1, adopt("a1"))
			s.event(1, protocol.Event{Turn: turn(call("c1"))})
			s.dispatch("c1")
			s.settle(s.Names.Calls(), 1)
			s.event(1, protocol.Event{Answers: []protocol.Answer{s.result("c1", "x")}, Stop: done})
		}},
		"an adoption has no guard": {id: "I7", always: true, write: func(s *script) {
			good(s)
			s.Records = slices.DeleteFunc(s.Records, func(r sim.Record) bool { return r.Stream == s.Names.Timers() })
		}},
		"a message is not answered": {id: "I4", write: func(s *script) {
			good(s)
			s.event(2, adopt("a2", folded("i2", s.input("i2"))))
			s.event(2, protocol.Event{Turn: s.answer("late", 3), Stop: done})
		}},
		"a deleted session leaves its call alone": {id: "I10", write: func(s *script) {
			good(s)
			s.event(2, adopt("a2"))
			s.event(2, protocol.Event{Turn: turn(call("c2"))})
			s.event(2, protocol.Event{Stop: &protocol.Stop{Kind: protocol.StopDeleted}})
			s.Left[s.Names.LogSubject("app", "s1")] = 1
		}},
		"a deleted log stays": {id: "I26", write: func(s *script) {
			good(s)
			s.event(2, adopt("a2"))
			s.event(2, protocol.Event{Stop: &protocol.Stop{Kind: protocol.StopDeleted}})
			s.Left[s.Names.LogSubject("app", "s1")] = 5
		}},
		"a guard is left behind": {id: "I15", write: func(s *script) {
			good(s)
			s.Left[s.Names.Timers()] = 1
		}},
		"a run asks the model too often": {id: "I21", always: true, write: func(s *script) {
			s.event(1, adopt("a1"))
			for i := range s.ModelCalls + 1 {
				s.event(1, protocol.Event{Turn: s.answer(fmt.Sprint(i), uint64(i))})
			}
			s.event(1, protocol.Event{Stop: done})
		}},
		"a session is adopted again and again": {id: "I23", always: true, write: func(s *script) {
			for i := range 6 {
				s.event(uint64(i+1), adopt(fmt.Sprint("a", i)))
			}
			s.event(6, protocol.Event{Stop: done})
		}},
		"a quarantined session has no dead letter": {id: "I23", write: func(s *script) {
			good(s)
			s.event(2, adopt("a2"))
			s.event(2, protocol.Event{Stop: &protocol.Stop{Kind: protocol.StopQuarantined}})
		}},
		"a turn is nobody's answer": {id: "I27", always: true, write: func(s *script) {
			good(s)
			s.Asked = nil
		}},
		"an answer is recorded twice": {id: "I27", always: true, write: func(s *script) {
			good(s)
			s.event(2, adopt("a2"))
			s.event(2, protocol.Event{Turn: s.answer("good", 4), Stop: done})
		}},
		"a deleted session goes on": {id: "I26", always: true, write: func(s *script) {
			good(s)
			s.event(2, adopt("a2"))
			s.event(2, protocol.Event{Stop: &protocol.Stop{Kind: protocol.StopDeleted}})
			s.event(3, adopt("a3"))
			s.event(3, protocol.Event{Stop: done})
		}},
		"a session stays owned": {id: "I7", write: func(s *script) {
			good(s)
			s.event(2, adopt("a2"))
		}},
		"a drained session stays drained": {id: "I7", write: func(s *script) {
			good(s)
			s.event(2, adopt("a2"))
			s.event(2, protocol.Event{Stop: &protocol.Stop{Kind: protocol.StopDrained}})
		}},
		"an event cannot be read": {id: "I1", always: true, write: func(s *script) {
			good(s)
			s.store(s.Names.Log(), s.Names.LogSubject("app", "s1"), "nonsense")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			tc.write(s)
			has := func(found []sim.Violation) bool {
				return slices.ContainsFunc(found, func(v sim.Violation) bool { return v.ID == tc.id })
			}
			found := sim.CheckQuiet(s.History)
			if !has(found) || slices.ContainsFunc(found, func(v sim.Violation) bool { return v.ID != tc.id }) {
				t.Errorf("want %s only, have %v", tc.id, found)
			}
			if found := sim.Check(s.History); has(found) != tc.always {
				t.Errorf("in a run that is cut: %v", found)
			}
		})
	}
}

func TestCheckLetsGoWhatIsAccountedFor(t *testing.T) {
	for name, write := range map[string]func(s *script){
		"an input with a dead letter": func(s *script) {
			seq := s.store(s.Names.Input(), s.Names.InputSubject("app", "me", "s1"), "nonsense")
			s.store(s.Names.DeadLetters(), s.Names.DeadLetterSubject("input", "1"), protocol.DeadLetter{Stream: s.Names.Input(), Seq: seq})
		},
		"an input and a call of a deleted session": func(s *script) {
			s.event(2, adopt("a2"))
			s.event(2, protocol.Event{Turn: turn(call("c2"))})
			s.result("c2", "withdrawn")
			s.event(2, protocol.Event{Stop: &protocol.Stop{Kind: protocol.StopDeleted}})
			s.Left[s.Names.LogSubject("app", "s1")] = 1
			s.input("i2")
		},
		"a result that came after the call expired": func(s *script) {
			s.event(2, adopt("a2"))
			s.event(2, protocol.Event{Turn: turn(call("c2"))})
			s.event(2, protocol.Event{Answers: []protocol.Answer{{Call: "c2", Result: protocol.Result{Outcome: protocol.OutcomeExpired}}}, Stop: done})
			s.result("c2", "late")
		},
		"an input that was not acked": func(s *script) {
			s.input("i2")
			s.Records[len(s.Records)-1].Acked = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			good(s)
			write(s)
			if found := sim.CheckQuiet(s.History); len(found) > 0 {
				t.Error(found)
			}
		})
	}
}
