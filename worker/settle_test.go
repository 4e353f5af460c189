package worker_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

// failing asks for another attempt until its nth run.
func failing(name string, effect tool.Effect, attempts, n int) (*fn, *int) {
	runs := new(int)
	e := echo(name, effect)
	e.settings.Attempts = attempts
	e.run = func(ctx tool.Context, _ json.RawMessage) (json.RawMessage, error) {
		*runs++
		if *runs < n {
			return nil, tool.Retryable(errors.New("busy"))
		}
		return json.RawMessage(`"at last"`), nil
	}
	return e, runs
}

func TestRetryableFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		effect         tool.Effect
		attempts, good int // the run that succeeds
		runs           int
		outcome        protocol.Outcome
	}{
		"are tried again":                     {tool.Idempotent, 3, 3, 3, protocol.OutcomeCompleted},
		"end with the last attempt":           {tool.Read, 3, 9, 3, protocol.OutcomeFailed},
		"are three attempts by default":       {tool.Read, 0, 9, 3, protocol.OutcomeFailed},
		"end with the broker's deliveries":    {tool.Read, 9, 9, 5, protocol.OutcomeFailed},
		"are final once the effect may stand": {tool.AtMostOnce, 3, 3, 1, protocol.OutcomeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				e, runs := failing("busy", tc.effect, tc.attempts, tc.good)
				f.serve(e) // five deliveries
				f.start("w1", worker.Config{}, e)
				c := f.call(e, "c1", `{}`)
				f.publish(c)
				after(50 * time.Second)
				r := f.want(c, tc.outcome, "", "")
				if *runs != tc.runs || r.Attempt != tc.runs {
					t.Errorf("%d runs, the last as attempt %d; want %d", *runs, r.Attempt, tc.runs)
				}
				if tc.outcome == protocol.OutcomeFailed && string(r.Value) != `{"error":"busy"}` {
					t.Errorf("the model reads %s", r.Value)
				}
				f.wantQueue("busy", 0, 0)
			})
		})
	}
}

func TestRetriesWaitLongerEachTime(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		var at []time.Time
		e := echo("busy", tool.Idempotent)
		e.settings.Attempts = 4
		e.run = func(tool.Context, json.RawMessage) (json.RawMessage, error) {
			at = append(at, time.Now())
			return nil, tool.Retryable(errors.New("busy"))
		}
		f.serve(e)
		f.start("w1", worker.Config{}, e)
		f.publish(f.call(e, "c1", `{}`))
		after(30 * time.Second)
		if len(at) != 4 {
			t.Fatalf("%d attempts", len(at))
		}
		for i, base := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
			if gap := at[i+1].Sub(at[i]); gap > base || gap < base*3/4 {
				t.Errorf("pause %d is %s, want within a quarter below %s", i, gap, base)
			}
		}
	})
}

func TestARetryWaitsAsLongAsItWasAskedTo(t *testing.T) {
	for name, c := range map[string]struct {
		deadline time.Duration
		runs     int
	}{"and then runs": {0, 2}, "unless the deadline comes first": {5 * time.Second, 1}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				var at []time.Time
				e := echo("busy", tool.Read)
				e.run = func(tool.Context, json.RawMessage) (json.RawMessage, error) {
					if at = append(at, time.Now()); len(at) == 1 {
						return nil, tool.RetryableAfter(errors.New("busy"), 7*time.Second)
					}
					return json.RawMessage(`"at last"`), nil
				}
				f.serve(e)
				f.start("w1", worker.Config{}, e)
				call := f.call(e, "c1", `{}`)
				if c.deadline > 0 {
					call.Deadline = time.Now().Add(c.deadline).UnixMilli()
				}
				f.publish(call)
				after(30 * time.Second)
				if len(at) != c.runs {
					t.Fatalf("%d runs, want %d", len(at), c.runs)
				}
				if c.runs == 2 && at[1].Sub(at[0]) < 7*time.Second {
					t.Errorf("tried again after %s", at[1].Sub(at[0]))
				}
			})
		})
	}
}

func TestRetryThatWouldMissTheDeadlineIsNotPromised(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		e, runs := failing("busy", tool.Idempotent, 3, 9)
		f.serve(e)
		f.start("w1", worker.Config{}, e)
		c := f.call(e, "c1", `{}`)
		c.Deadline = time.Now().Add(200 * time.Millisecond).UnixMilli()
		f.publish(c)
		f.want(c, protocol.OutcomeFailed, "", `{"error":"busy"}`)
		if *runs != 1 {
			t.Errorf("%d runs", *runs)
		}
	})
}

// onSubject makes a bus whose publishes to subjects of a kind go through lie; n counts them.
func onSubject(f *fabric, node, kind string, lie func(n int, do func() (natswire.Ack, error)) (natswire.Ack, error)) *flaky {
	n := 0
	return &flaky{Bus: f.world.Connect(node), publish: func(m natswire.Msg, do func() (natswire.Ack, error)) (natswire.Ack, error) {
		if !strings.HasPrefix(m.Subject, f.names.Namespace()+"."+kind+".") {
			return do()
		}
		n++
		return lie(n, do)
	}}
}

func TestResultWhoseAckWasLostIsStoredOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		e := echo("echo", tool.AtMostOnce)
		f.serve(e)
		r := &record{}
		bus := onSubject(f, "w1", "result", func(n int, do func() (natswire.Ack, error)) (natswire.Ack, error) {
			ack, err := do()
			if n == 1 {
				return natswire.Ack{}, errLost
			}
			return ack, err
		})
		f.start("w1", worker.Config{Bus: bus, Listener: r.events()}, e)
		c := f.call(e, "c1", `{}`)
		f.publish(c)
		after(time.Second)
		f.want(c, protocol.OutcomeCompleted, "", "")
		if got := r.ways(); !slices.Equal(got, []string{"c1/1 refused"}) {
			t.Errorf("got %v: the twin is refused, and that is as good as stored", got)
		}
		f.wantQueue("echo", 0, 0)
	})
}

func TestClaimWhoseAckWasLostIsStillOurs(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		g := newGate("once", tool.AtMostOnce)
		close(g.open)
		f.serve(g)
		bus := onSubject(f, "w1", "claim", func(n int, do func() (natswire.Ack, error)) (natswire.Ack, error) {
			ack, err := do()
			if n < 3 {
				return natswire.Ack{}, errLost
			}
			return ack, err
		})
		f.start("w1", worker.Config{Bus: bus}, g)
		c := f.call(g, "c1", `{}`)
		f.publish(c)
		after(5 * time.Second)
		f.want(c, protocol.OutcomeCompleted, "", "")
		if g.starts() != 1 {
			t.Errorf("%d starts", g.starts())
		}
	})
}

func TestClaimInDoubtIsNotActedOn(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		g := newGate("once", tool.AtMostOnce)
		f.serve(g)
		r := &record{}
		bus := onSubject(f, "w1", "claim", func(n int, do func() (natswire.Ack, error)) (natswire.Ack, error) {
			ack, err := do()
			if n <= 4 {
				return natswire.Ack{}, errLost
			}
			return ack, err
		})
		f.start("w1", worker.Config{Bus: bus, Listener: r.events()}, g)
		f.publish(f.call(g, "c1", `{}`))
		after(30 * time.Second)
		if g.starts() != 0 {
			t.Errorf("it was started %d times", g.starts())
		}
		if got := r.ways(); !slices.Equal(got, []string{"c1/1 returned", "c1/2 dropped"}) {
			t.Errorf("got %v", got)
		}
		f.wantQueue("once", 0, 0)
	})
}

func TestClaimOfSomebodyElseStopsTheCall(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		g := newGate("once", tool.AtMostOnce)
		f.serve(g)
		c := f.call(g, "c1", `{}`)
		if err := natswire.StoreClaim(t.Context(), f.bus, f.names, "once", "c1", 0, "id", protocol.Claim{Coordinator: "k", Code: protocol.CodeCancelled}); err != nil {
			t.Fatal(err)
		}
		f.start("w1", worker.Config{}, g)
		f.publish(c)
		if g.starts() != 0 {
			t.Error("a call was started that a coordinator had claimed")
		}
		if _, ok := f.result(c); ok {
			t.Error("it was answered beside its coordinator")
		}
		f.wantQueue("once", 0, 0)
	})
}

func TestFullMailboxStreamIsWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		e := echo("echo", tool.Read)
		runs := 0
		e.run = func(tool.Context, json.RawMessage) (json.RawMessage, error) {
			runs++
			return json.RawMessage(`{}`), nil
		}
		f.consumer("echo", 3*time.Second, 5)
		bus := onSubject(f, "w1", "result", func(n int, do func() (natswire.Ack, error)) (natswire.Ack, error) {
			if n <= 10 {
				return natswire.Ack{}, protocol.Errorf(protocol.CodeStorageFull, "the stream is full")
			}
			return do()
		})
		f.start("w1", worker.Config{Bus: bus}, e)
		c := f.call(e, "c1", `{}`)
		f.publish(c)
		after(30 * time.Second)
		f.want(c, protocol.OutcomeCompleted, "", "")
		if runs != 1 {
			t.Errorf("it ran %d times", runs)
		}
	})
}

func TestUnstorableResultIsGivenUpAfterTheDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		e := echo("echo", tool.Idempotent)
		f.consumer("echo", 3*time.Second, 5)
		r := &record{}
		bus := onSubject(f, "w1", "result", func(int, func() (natswire.Ack, error)) (natswire.Ack, error) {
			return natswire.Ack{}, errLost
		})
		f.start("w1", worker.Config{Bus: bus, Listener: r.events()}, e)
		f.publish(f.call(e, "c1", `{}`))
		after(59 * time.Second)
		if got := r.ways(); len(got) != 0 {
			t.Fatalf("given up before the deadline: %v", got)
		}
		after(10 * time.Second)
		if got := r.ways(); !slices.Equal(got, []string{"c1/1 returned", "c1/2 dropped"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestAnswerThatIsTooLargeSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		e := echo("huge", tool.AtMostOnce)
		e.run = func(tool.Context, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`"` + strings.Repeat("x", protocol.MaxInlineResult) + `"`), nil
		}
		f.serve(e)
		f.start("w1", worker.Config{}, e)
		c := f.call(e, "c1", `{}`)
		f.publish(c)
		f.want(c, protocol.OutcomeFailed, protocol.CodeTooLarge, "")
	})
}

func TestActionsThatAreTooLargeAreNotHalfDone(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		e := echo("huge", tool.AtMostOnce)
		e.run = func(ctx tool.Context, _ json.RawMessage) (json.RawMessage, error) {
			if err := ctx.State().Set("k", strings.Repeat("x", 1<<20)); err != nil {
				t.Error(err)
			}
			return json.RawMessage(`{}`), nil
		}
		f.serve(e)
		f.start("w1", worker.Config{}, e)
		c := f.call(e, "c1", `{}`)
		f.publish(c)
		if r := f.want(c, protocol.OutcomeFailed, protocol.CodeTooLarge, ""); r.Actions != nil {
			t.Error("the actions of an answer that was not stored")
		}
	})
}

func TestMessageThatIsNoCallIsBuried(t *testing.T) {
	for name, tc := range map[string]struct {
		data string
		code protocol.Code
	}{
		"not JSON":           {`{"v":1,`, protocol.CodeBadMessage},
		"two calls in one":   {`{"v":1,"v":1}`, protocol.CodeBadMessage},
		"of tomorrow":        {`{"v":2}`, protocol.CodeUnsupportedVersion},
		"for another tool":   {`{"v":1,"app":"a","session":"s","call":"c","tool":"other","args":{},"effect":"read","answers_to":"results"}`, protocol.CodeBadMessage},
		"another mailbox":    {`{"v":1,"app":"a","session":"s","call":"c","tool":"echo","args":{},"effect":"read","answers_to":"pigeon"}`, protocol.CodeUnsupported},
		"an id of two parts": {`{"v":1,"app":"a","session":"s.t","call":"c","tool":"echo","args":{},"effect":"read"}`, protocol.CodeBadID},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				e := echo("echo", tool.Read)
				f.serve(e)
				f.start("w1", worker.Config{}, e)
				if _, err := f.bus.Publish(t.Context(), natswire.Msg{Subject: f.names.CallSubject("echo"), Data: []byte(tc.data)}); err != nil {
					t.Fatal(err)
				}
				f.wantQueue("echo", 0, 0)
				stored, err := f.bus.Latest(t.Context(), f.names.DeadLetters(), f.names.DeadLetterSubject("call", "*"))
				if err != nil || len(stored) != 1 {
					t.Fatalf("dead letters: %v, %v", stored, err)
				}
				var dead protocol.DeadLetter
				if err := json.Unmarshal(stored[0].Data, &dead); err != nil {
					t.Fatal(err)
				}
				if dead.Code != tc.code || dead.Tool != "echo" || dead.Seq != 1 || string(dead.Data) != tc.data || dead.Reason == "" {
					t.Errorf("dead letter %+v", dead)
				}
			})
		})
	}
}
