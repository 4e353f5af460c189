package invoke_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stub is a tool of ADK's form.
type stub struct {
	name   string
	schema any
	set    tool.Settings
	long   bool
	run    func(ctx tool.Context, args any) (map[string]any, error)
}

func (s *stub) Name() string            { return s.name }
func (s *stub) Description() string     { return "a stub" }
func (s *stub) IsLongRunning() bool     { return s.long }
func (s *stub) Settings() tool.Settings { return s.set }
func (s *stub) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: s.name, Description: "a stub", ParametersJsonSchema: s.schema}
}

func (s *stub) Run(ctx tool.Context, args any) (map[string]any, error) { return s.run(ctx, args) }

// stubJSON answers raw JSON.
type stubJSON struct {
	stub
	json func(ctx tool.Context, args json.RawMessage) (json.RawMessage, error)
}

func (s *stubJSON) RunJSON(ctx tool.Context, args json.RawMessage) (json.RawMessage, error) {
	return s.json(ctx, args)
}

func ready(t testing.TB, run func(ctx tool.Context, args any) (map[string]any, error)) *invoke.Tool {
	t.Helper()
	return mustNew(t, &stub{name: "x", run: run})
}

func mustNew(t testing.TB, s tool.Tool) *invoke.Tool {
	t.Helper()
	it, err := invoke.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

func call(args string) invoke.Call {
	return invoke.Call{Envelope: protocol.Envelope{Session: "s1", Call: "c1", User: "u", App: "a", Tool: "x", Args: json.RawMessage(args)}, Attempt: 2, Worker: "w1"}
}

func TestAnObjectIsTheAnswer(t *testing.T) {
	it := ready(t, func(ctx tool.Context, args any) (map[string]any, error) {
		return map[string]any{"got": args, "call": ctx.FunctionCallID(), "attempt": ctx.Attempt()}, nil
	})
	r, err := it.Run(t.Context(), call(`{"n":9007199254740993,"f":2}`))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"attempt":2,"call":"c1","got":{"f":2,"n":9007199254740993}}`
	if string(r.Value) != want || r.Outcome != protocol.OutcomeCompleted || r.Worker != "w1" || r.Attempt != 2 || r.Started == 0 || r.Ended < r.Started {
		t.Errorf("got %+v, value %s", r, r.Value)
	}
}

func TestAnErrorIsAnAnswer(t *testing.T) {
	it := ready(t, func(ctx tool.Context, _ any) (map[string]any, error) {
		_ = ctx.State().Set("tries", 1)
		ctx.Actions().Escalate = true
		return map[string]any{"lost": true}, errors.New("disk full")
	})
	r, err := it.Run(t.Context(), call(`{}`))
	if err != nil || r.Outcome != protocol.OutcomeFailed || r.Code != "" || string(r.Value) != `{"error":"disk full"}` {
		t.Errorf("got %+v, %s, %v", r, r.Value, err)
	}
	if r.Actions == nil || !r.Actions.Escalate || string(r.Actions.StateDelta["tries"]) != "1" {
		t.Errorf("actions %+v are not those of the failed tool", r.Actions)
	}
}

func TestRetryableErrorsComeBackBesideTheResult(t *testing.T) {
	cause := errors.New("busy")
	it := ready(t, func(tool.Context, any) (map[string]any, error) { return nil, tool.Retryable(cause) })
	r, err := it.Run(t.Context(), call(`{}`))
	if !errors.Is(err, cause) || string(r.Value) != `{"error":"busy"}` {
		t.Errorf("got %v, %s", err, r.Value)
	}
}

func TestAPanicIsAFailedAnswerWithoutItsStack(t *testing.T) {
	var log bytes.Buffer
	for name, run := range map[string]func(){
		"boom":           func() { panic("boom") },
		"runtime.Goexit": func() { runtime.Goexit() },
		"nil pointer":    func() { var p *stub; _ = p.name },
	} {
		it := ready(t, func(tool.Context, any) (map[string]any, error) { run(); return nil, nil })
		c := call(`{}`)
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		r, err := it.Run(t.Context(), c)
		if err != nil || r.Outcome != protocol.OutcomeFailed || r.Code != protocol.CodeToolPanic ||
			!strings.Contains(string(r.Value), `tool \"x\" panicked: `) || !strings.Contains(string(r.Value), name) || strings.Contains(string(r.Value), ".go:") {
			t.Errorf("%s: got %+v, %s, %v", name, r, r.Value, err)
		}
	}
	if !strings.Contains(log.String(), "run_test.go") {
		t.Error("the log lacks the stack")
	}
}

func TestArgumentsThatDoNotFitNeverReachTheTool(t *testing.T) {
	it := mustNew(t, &stub{name: "x", schema: map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}, "required": []string{"n"}},
		run: func(tool.Context, any) (map[string]any, error) { t.Error("the tool ran"); return nil, nil }})
	r, err := it.Run(t.Context(), call(`{"n":"1"}`))
	if err != nil || r.Outcome != protocol.OutcomeFailed || r.Code != protocol.CodeSchemaViolation || string(r.Value) != `{"error":"/n: must be integer, got string"}` {
		t.Errorf("got %+v, %s, %v", r, r.Value, err)
	}
}

func TestEndsOfTheContext(t *testing.T) {
	drain := protocol.Errorf(protocol.CodeCancelled, "the worker drains")
	for _, c := range []struct {
		name    string
		ctx     func(context.Context) (context.Context, context.CancelFunc)
		outcome protocol.Outcome
		code    protocol.Code
		text    string
	}{
		{"timeout of the attempt", func(c context.Context) (context.Context, context.CancelFunc) { return c, func() {} },
			protocol.OutcomeFailed, protocol.CodeExpired, "timeout of 5s"},
		{"deadline of the caller", func(c context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(c, time.Second)
		},
			protocol.OutcomeExpired, protocol.CodeExpired, "the time ran out"},
		{"cancel with a cause", func(c context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(c)
			time.AfterFunc(time.Second, func() { cancel(drain) })
			return ctx, func() { cancel(nil) }
		}, protocol.OutcomeCancelled, protocol.CodeCancelled, "the worker drains"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				it := ready(t, func(ctx tool.Context, _ any) (map[string]any, error) { <-ctx.Done(); return nil, ctx.Err() })
				ctx, cancel := c.ctx(t.Context())
				defer cancel()
				inv := call(`{}`)
				inv.Envelope.Timeout = 5000
				r, err := it.Run(ctx, inv)
				if err != nil || r.Outcome != c.outcome || r.Code != c.code || !strings.Contains(string(r.Value), c.text) {
					t.Errorf("got %+v, %s, %v", r, r.Value, err)
				}
			})
		})
	}
}

func TestNothingStartsAfterTheEndOfTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	it := ready(t, func(tool.Context, any) (map[string]any, error) { t.Error("the tool ran"); return nil, nil })
	r, err := it.Run(ctx, call(`{}`))
	if err != nil || r.Outcome != protocol.OutcomeCancelled || !strings.Contains(string(r.Value), "was not started") {
		t.Errorf("got %+v, %s, %v", r, r.Value, err)
	}
}

func TestAnAnswerAfterTheEndOfTheContextStillCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		it := ready(t, func(ctx tool.Context, _ any) (map[string]any, error) {
			<-ctx.Done()
			return map[string]any{"done": true}, nil
		})
		r, _ := it.Run(t.Context(), call(`{}`))
		if r.Outcome != protocol.OutcomeCompleted {
			t.Errorf("got %+v, %s", r, r.Value)
		}
	})
}

func TestAToolThatIgnoresItsContextIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let, reported := make(chan struct{}), 0
		it := ready(t, func(ctx tool.Context, _ any) (map[string]any, error) {
			<-let
			ctx.Progress(50, "too late")
			return map[string]any{}, ctx.State().Set("late", true)
		})
		c := call(`{}`)
		c.Envelope.Timeout = 10
		c.Progress = func(protocol.Progress) { reported++ }
		from := time.Now()
		r, _ := it.Run(t.Context(), c)
		if r.Outcome != protocol.OutcomeFailed || r.Code != protocol.CodeExpired || it.Stuck() != 1 || time.Since(from) != 10*time.Millisecond+invoke.Grace {
			t.Errorf("got %+v, %s, %d stuck after %s", r, r.Value, it.Stuck(), time.Since(from))
		}
		close(let)
		synctest.Wait()
		if it.Stuck() != 0 || reported != 0 {
			t.Errorf("%d stuck after it ended, %d reports", it.Stuck(), reported)
		}
	})
}

func TestStateIsSeenAtOnceAndTravelsAsADelta(t *testing.T) {
	it := ready(t, func(ctx tool.Context, _ any) (map[string]any, error) {
		out := map[string]any{}
		s := ctx.State()
		out["count"], _ = s.Get("count")
		_ = s.Set("count", 2)
		out["then"], _ = s.Get("count")
		_ = s.Set("gone", nil)
		_, err := s.Get("gone")
		out["gone"] = err
		if err := s.Set("bad", make(chan int)); err == nil {
			t.Error("a channel is no state")
		}
		var all []string
		for k := range s.All() {
			all = append(all, k)
		}
		out["all"] = all
		return out, nil
	})
	c := call(`{}`)
	c.Envelope.State = map[string]json.RawMessage{"count": json.RawMessage("1"), "gone": json.RawMessage(`"x"`), "user:name": json.RawMessage(`"u"`)}
	r, _ := it.Run(t.Context(), c)
	if want := `{"all":["count","user:name"],"count":1,"gone":"state key does not exist: gone","then":2}`; string(r.Value) != want {
		t.Errorf("got %s, want %s", r.Value, want)
	}
	if len(r.Actions.StateDelta) != 2 || string(r.Actions.StateDelta["gone"]) != "null" || string(r.Actions.StateDelta["count"]) != "2" {
		t.Errorf("got %s", r.Actions.StateDelta)
	}
}

func TestProgressCarriesWhoAndHowFar(t *testing.T) {
	it := ready(t, func(ctx tool.Context, _ any) (map[string]any, error) { ctx.Progress(140, "half"); return nil, nil })
	c := call(`{}`)
	var got protocol.Progress
	c.Progress = func(p protocol.Progress) { got = p }
	_, _ = it.Run(t.Context(), c)
	if got.Worker != "w1" || got.Attempt != 2 || got.Percent != 100 || got.Message != "half" {
		t.Errorf("got %+v", got)
	}
}

func TestServicesThatAreNotConnectedSaySo(t *testing.T) {
	it := ready(t, func(ctx tool.Context, _ any) (map[string]any, error) {
		_, memory := ctx.SearchMemory(ctx, "q")
		_, files := ctx.Artifacts().List(ctx)
		for _, err := range []error{memory, files} {
			if protocol.CodeOf(err) != protocol.CodeUnsupported {
				t.Errorf("got %v", err)
			}
		}
		return nil, nil
	})
	_, _ = it.Run(t.Context(), call(`{}`))
}
