package worker_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

// letters are the dead letters of kind late.
func (f *fabric) letters() (all []protocol.DeadLetter) {
	f.t.Helper()
	stored, err := f.bus.Latest(f.t.Context(), f.names.DeadLetters(), f.names.DeadLetterSubject("late", "*"))
	if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
		f.t.Fatal(err)
	}
	for _, s := range stored {
		var l protocol.DeadLetter
		if err := json.Unmarshal(s.Data, &l); err != nil {
			f.t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

// endAs answers a call as a coordinator does.
func (f *fabric) endAs(env protocol.Envelope, how protocol.Outcome, code protocol.Code) {
	f.t.Helper()
	r := protocol.Result{Outcome: how, Code: code, Value: protocol.ErrorValue("ended"), Worker: "coordinator"}
	if _, err := natswire.StoreResult(f.t.Context(), f.bus, f.names, env.Tool, env.Session, env.Call, env.Round, nil, r); err != nil {
		f.t.Fatal(err)
	}
}

func TestLateResultIsKeptAsADeadLetter(t *testing.T) {
	for name, tc := range map[string]struct {
		effect tool.Effect
		blind  bool // the worker may not read mailboxes
		end    protocol.Outcome
		want   int
	}{
		"after a cancel":                    {tool.AtMostOnce, false, protocol.OutcomeCancelled, 1},
		"after its time":                    {tool.AtMostOnce, false, protocol.OutcomeExpired, 1},
		"by the claim alone":                {tool.AtMostOnce, true, protocol.OutcomeCancelled, 1},
		"without a claim, by the mailbox":   {tool.Read, false, protocol.OutcomeCancelled, 1},
		"without a claim, nobody can tell":  {tool.Read, true, protocol.OutcomeCancelled, 0},
		"not when another worker was first": {tool.Idempotent, false, protocol.OutcomeCompleted, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				g := newGate("slow", tc.effect)
				f.serve(g)
				r := &record{}
				cfg := worker.Config{Listener: r.events()}
				if tc.blind {
					cfg.Bus = &noReads{f.world.Connect("w1")}
				}
				f.start("w1", cfg, g)
				c := f.call(g, "c1", `{}`)
				f.publish(c)
				f.endAs(c, tc.end, "")
				close(g.open)
				after(time.Second)
				if want := []string{"c1/1 refused"}; !slices.Equal(r.ways(), want) {
					t.Errorf("got %v, want %v", r.ways(), want)
				}
				got := f.letters()
				if len(got) != tc.want {
					t.Fatalf("%d letters: %+v", len(got), got)
				}
				for _, l := range got {
					if l.Call != "c1" || l.Tool != "slow" || l.Code != protocol.CodeAnswered || !strings.Contains(string(l.Data), "through") {
						t.Errorf("got %+v with %s", l, l.Data)
					}
				}
				f.want(c, tc.end, "", "")
			})
		})
	}
}

// noReads is the bus of a worker with the least permissions.
type noReads struct{ natswire.Bus }

func (n *noReads) Last(context.Context, string, string) (natswire.Stored, error) {
	return natswire.Stored{}, protocol.Errorf(protocol.CodeForbidden, "reads are not permitted")
}

// The ack of a result is lost: its own repeat is refused, which is no news.
func TestOwnResultIsNotLate(t *testing.T) {
	for _, blind := range []bool{false, true} {
		inBubble(t, func(t *testing.T, f *fabric) {
			e := echo("echo", tool.AtMostOnce)
			f.serve(e)
			bus := natswire.Bus(f.world.Connect("w1"))
			if blind {
				bus = &noReads{bus}
			}
			lost := false
			flaky := &flaky{Bus: bus, publish: func(m natswire.Msg, do func() (natswire.Ack, error)) (natswire.Ack, error) {
				ack, err := do()
				if !lost && strings.HasPrefix(m.Subject, "tf.result.") {
					lost = true
					return natswire.Ack{}, errLost
				}
				return ack, err
			}}
			r := &record{}
			f.start("w1", worker.Config{Bus: flaky, Listener: r.events()}, e)
			f.publish(f.call(e, "c1", `{}`))
			after(10 * time.Second)
			if want := []string{"c1/1 refused"}; !slices.Equal(r.ways(), want) || len(f.letters()) != 0 {
				t.Errorf("%v, letters %+v", r.ways(), f.letters())
			}
		})
	}
}

func TestLateResultThatCannotBeKeptIsToldToTheLog(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		g := newGate("slow", tool.AtMostOnce)
		f.serve(g)
		bus := &flaky{Bus: f.world.Connect("w1"), publish: func(m natswire.Msg, do func() (natswire.Ack, error)) (natswire.Ack, error) {
			if strings.HasPrefix(m.Subject, "tf.dlq.") {
				return natswire.Ack{}, protocol.Errorf(protocol.CodeForbidden, "not permitted")
			}
			return do()
		}}
		told := make(chan error, 1)
		f.start("w1", worker.Config{Bus: bus, Listener: worker.Events{Settled: func(_ worker.Attempt, s worker.Settlement) { told <- s.Err }}}, g)
		c := f.call(g, "c1", `{}`)
		f.publish(c)
		f.endAs(c, protocol.OutcomeCancelled, protocol.CodeCancelled)
		close(g.open)
		if err := <-told; protocol.CodeOf(err) != protocol.CodeForbidden || !strings.Contains(err.Error(), "c1") {
			t.Errorf("told %v", err)
		}
	})
}
