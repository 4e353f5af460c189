package invoke_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

// asker is a stub that decides by the arguments.
type asker struct {
	stub
	asks func(args json.RawMessage) (bool, error)
}

func (a *asker) AsksConfirmation(args json.RawMessage) (bool, error) { return a.asks(args) }

func said(yes bool) *protocol.Confirmed { return &protocol.Confirmed{ID: "k1", Confirmed: yes} }

func TestGate(t *testing.T) {
	needsN := map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}}
	over100 := func(args json.RawMessage) (bool, error) {
		var in struct{ N int }
		return json.Unmarshal(args, &in) == nil && in.N > 100, nil
	}
	flag := &stub{name: "x", set: tool.Settings{Confirm: true}}
	plain := &stub{name: "x"}
	by := func(asks func(json.RawMessage) (bool, error)) tool.Tool {
		return &asker{stub{name: "x", schema: needsN}, asks}
	}
	const rejected = `{"error":"error tool \"x\" call is rejected"}`
	const required = `{"error":"error tool \"x\" requires confirmation, please approve or reject"}`
	for _, c := range []struct {
		name    string
		tool    tool.Tool
		args    string
		word    *protocol.Confirmed
		round   int
		outcome protocol.Outcome // empty is open
		code    protocol.Code
		text    string
	}{
		{name: "a plain tool", tool: plain},
		{name: "a plain tool that people agreed to", tool: plain, word: said(true)},
		{name: "a plain tool that policy asked about and people refused", tool: plain, word: said(false), outcome: protocol.OutcomeDenied, code: protocol.CodeDenied, text: rejected},
		{name: "a tool that asked by itself and was refused", tool: plain, word: said(false), round: 1},
		{name: "the flag without a word", tool: flag, outcome: protocol.OutcomeFailed, code: protocol.CodeForbidden, text: "not executed"},
		{name: "the flag without a word in a later round", tool: flag, round: 3, outcome: protocol.OutcomeFailed, code: protocol.CodeForbidden, text: "not executed"},
		{name: "the flag, agreed", tool: flag, word: said(true)},
		{name: "the flag, refused", tool: flag, word: said(false), outcome: protocol.OutcomeDenied, code: protocol.CodeDenied, text: rejected},
		{name: "the flag, agreed, then its own question refused", tool: flag, word: said(false), round: 1},
		{name: "the provider says no need", tool: by(over100), args: `{"n":100}`},
		{name: "the provider asks", tool: by(over100), args: `{"n":101}`, outcome: protocol.OutcomeAsks, text: required},
		{name: "the provider, agreed", tool: by(over100), args: `{"n":101}`, word: said(true), round: 1},
		{name: "the provider, agreed before it was asked", tool: by(over100), args: `{"n":101}`, word: said(true)},
		{name: "the provider, refused", tool: by(over100), args: `{"n":101}`, word: said(false), round: 1, outcome: protocol.OutcomeDenied, code: protocol.CodeDenied, text: rejected},
		{name: "the provider had no need, and the tool's own question was refused", tool: by(over100), args: `{"n":1}`, word: said(false), round: 1},
		{name: "the provider, agreed, then the tool's own question refused", tool: by(over100), args: `{"n":101}`, word: said(false), round: 2},
		{name: "arguments that do not fit", tool: by(func(json.RawMessage) (bool, error) { panic("asked about bad arguments") }), args: `{"n":"x"}`},
		{name: "the provider panics", tool: by(func(json.RawMessage) (bool, error) { panic("boom") }), outcome: protocol.OutcomeFailed, code: protocol.CodeToolPanic, text: "boom"},
		{name: "the provider panics over a refusal", tool: by(func(json.RawMessage) (bool, error) { panic("boom") }), word: said(false), round: 1, outcome: protocol.OutcomeDenied, code: protocol.CodeDenied, text: rejected},
		{name: "the provider fails", tool: by(func(json.RawMessage) (bool, error) { return false, errors.New("no rate today") }), outcome: protocol.OutcomeFailed, text: `{"error":"no rate today"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.args == "" {
				c.args = "{}"
			}
			inv := call(c.args)
			inv.Envelope.Confirmation, inv.Envelope.Round = c.word, c.round
			r, open := mustNew(t, c.tool).Gate(t.Context(), inv)
			if open != (c.outcome == "") {
				t.Fatalf("open: %v, %+v, %s", open, r, r.Value)
			}
			if open {
				return
			}
			if r.Outcome != c.outcome || r.Code != c.code || !strings.Contains(string(r.Value), c.text) || r.Worker != "w1" || r.Attempt != 2 {
				t.Errorf("got %+v, %s", r, r.Value)
			}
			if want := c.outcome == protocol.OutcomeAsks; want != (r.Ask != nil) || want && (!r.Ask.Provider || r.Ask.Hint != toolconfirmation.Hint("x")) {
				t.Errorf("it asks %+v", r.Ask)
			}
			taken(t, r)
		})
	}
}

// taken fails unless a coordinator reads the result as it was meant.
func taken(t *testing.T, r protocol.Result) {
	t.Helper()
	data, err := protocol.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := protocol.DecodeResult(data); err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("%s is read as %+v, %v", data, back, err)
	}
}

func TestAProviderThatHangsIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		it := mustNew(t, &asker{stub{name: "x"}, func(json.RawMessage) (bool, error) { <-let; return false, nil }})
		c := call(`{}`)
		c.Envelope.Timeout = 10
		r, open := it.Gate(t.Context(), c)
		if open || r.Outcome != protocol.OutcomeFailed || r.Code != protocol.CodeExpired || it.Stuck() != 1 {
			t.Errorf("open: %v, %+v, %s", open, r, r.Value)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Millisecond, cancel)
		if r, open := it.Gate(ctx, c); !open {
			t.Errorf("a call that was cancelled meanwhile is answered by the gate: %+v", r)
		}
		close(let)
		synctest.Wait()
	})
}

func TestToolSeesTheWord(t *testing.T) {
	var got *toolconfirmation.ToolConfirmation
	it := ready(t, func(ctx tool.Context, _ any) (map[string]any, error) {
		got = ctx.ToolConfirmation()
		if ctx.ToolConfirmation() != got {
			t.Error("another word each time")
		}
		return nil, nil
	})
	for name, c := range map[string]struct {
		word *protocol.Confirmed
		want *toolconfirmation.ToolConfirmation
	}{
		"nobody was asked": {nil, nil},
		"agreed":           {said(true), &toolconfirmation.ToolConfirmation{Confirmed: true}},
		"refused, with a remark": {&protocol.Confirmed{ID: "k", Hint: "not in May", Payload: json.RawMessage(`{"days":5,"by":["me"],"n":9007199254740993}`)},
			&toolconfirmation.ToolConfirmation{Hint: "not in May", Payload: map[string]any{"days": 5.0, "by": []any{"me"}, "n": json.Number("9007199254740993")}}},
	} {
		inv := call(`{}`)
		inv.Envelope.Confirmation, inv.Envelope.Round = c.word, 1
		if _, err := it.Run(t.Context(), inv); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestRequestConfirmation(t *testing.T) {
	ask := func(ctx tool.Context) {
		if err := ctx.RequestConfirmation("how many days?", map[string]any{"days": 3}); err != nil {
			t.Error(err)
		}
	}
	question := &protocol.Ask{Hint: "how many days?", Payload: json.RawMessage(`{"days":3}`)}
	for _, c := range []struct {
		name    string
		long    bool
		run     func(tool.Context) (map[string]any, error)
		outcome protocol.Outcome
		ask     *protocol.Ask
		value   string
	}{
		{"what it returned is shown", false, func(ctx tool.Context) (map[string]any, error) {
			ask(ctx)
			return map[string]any{"status": "waiting"}, nil
		},
			protocol.OutcomeAsks, question, `{"status":"waiting"}`},
		{"nothing returned is nothing shown", false, func(ctx tool.Context) (map[string]any, error) { ask(ctx); return nil, nil }, protocol.OutcomeAsks, question, ``},
		{"an error asks all the same", false, func(ctx tool.Context) (map[string]any, error) { ask(ctx); return nil, tool.ErrConfirmationRequired },
			protocol.OutcomeAsks, question, `{"error":"requires confirmation, please approve or reject"}`},
		{"a retryable error asks all the same", false, func(ctx tool.Context) (map[string]any, error) {
			ask(ctx)
			return nil, tool.Retryable(errors.New("later"))
		}, protocol.OutcomeAsks, question, `{"error":"later"}`},
		{"a question wins over pending", true, func(ctx tool.Context) (map[string]any, error) { ask(ctx); return map[string]any{"ticket": 1}, nil },
			protocol.OutcomeAsks, question, `{"ticket":1}`},
		{"the last question counts", false, func(ctx tool.Context) (map[string]any, error) { ask(ctx); return nil, ctx.RequestConfirmation("", nil) },
			protocol.OutcomeAsks, &protocol.Ask{}, ``},
		{"a panic asks nothing", false, func(ctx tool.Context) (map[string]any, error) { ask(ctx); panic("boom") },
			protocol.OutcomeFailed, nil, `{"error":"tool \"x\" panicked: boom"}`},
		{"a payload that is no JSON", false, func(ctx tool.Context) (map[string]any, error) {
			return nil, ctx.RequestConfirmation("", map[string]any{"x": math.NaN()})
		}, protocol.OutcomeFailed, nil, `{"error":"the payload: the answer cannot be written as JSON: /x: NaN is no JSON value"}`},
		{"a payload that is too large", false, func(ctx tool.Context) (map[string]any, error) {
			return nil, ctx.RequestConfirmation("", strings.Repeat("x", 64<<10))
		}, protocol.OutcomeFailed, nil, `{"error":"the payload has 65538 bytes, more than 65536"}`},
		{"a hint that is too long", false, func(ctx tool.Context) (map[string]any, error) {
			return nil, ctx.RequestConfirmation(strings.Repeat("x", 4<<10+1), nil)
		}, protocol.OutcomeFailed, nil, `{"error":"the hint has 4097 bytes, more than 4096"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			it := mustNew(t, &stub{name: "x", long: c.long, run: func(ctx tool.Context, _ any) (map[string]any, error) { return c.run(ctx) }})
			r, err := it.Run(t.Context(), call(`{}`))
			if err != nil || r.Outcome != c.outcome || string(r.Value) != c.value || !reflect.DeepEqual(r.Ask, c.ask) {
				t.Errorf("got %s, %s, ask %+v, %v", r.Outcome, r.Value, r.Ask, err)
			}
			taken(t, r)
		})
	}
}

func TestOnlyStateTravelsWithAQuestion(t *testing.T) {
	it := ready(t, func(ctx tool.Context, _ any) (map[string]any, error) {
		_ = ctx.State().Set("stage", 2)
		ctx.Actions().SkipSummarization, ctx.Actions().Escalate, ctx.Actions().TransferToAgent = true, true, "clerk"
		return nil, ctx.RequestConfirmation("sure?", nil)
	})
	r, _ := it.Run(t.Context(), call(`{}`))
	want := &protocol.Actions{StateDelta: map[string]json.RawMessage{"stage": json.RawMessage("2")}}
	if r.Outcome != protocol.OutcomeAsks || !reflect.DeepEqual(r.Actions, want) {
		t.Errorf("got %+v with %+v", r, r.Actions)
	}
}

func TestACancelledToolAsksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		it := ready(t, func(ctx tool.Context, _ any) (map[string]any, error) {
			_ = ctx.RequestConfirmation("sure?", nil)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if r, _ := it.Run(ctx, call(`{}`)); r.Outcome != protocol.OutcomeCancelled || r.Ask != nil {
			t.Errorf("got %+v", r)
		}
	})
}

func TestLongRunningAnswersArePending(t *testing.T) {
	for name, c := range map[string]struct {
		value   map[string]any
		err     error
		outcome protocol.Outcome
		want    string
	}{
		"nil":     {nil, nil, protocol.OutcomePending, ``},
		"ticket":  {map[string]any{"ticket": "T-7"}, nil, protocol.OutcomePending, `{"ticket":"T-7"}`},
		"empty":   {map[string]any{}, nil, protocol.OutcomePending, `{"result":{}}`},
		"failure": {nil, errors.New("no such queue"), protocol.OutcomeFailed, `{"error":"no such queue"}`},
	} {
		it := mustNew(t, &stub{name: "x", long: true, run: func(ctx tool.Context, _ any) (map[string]any, error) {
			_ = ctx.State().Set("sent", true)
			return c.value, c.err
		}})
		r, err := it.Run(t.Context(), call(`{}`))
		if err != nil || r.Outcome != c.outcome || string(r.Value) != c.want || r.Actions == nil {
			t.Errorf("%s: got %s, %s, %v", name, r.Outcome, r.Value, err)
		}
		taken(t, r)
	}
}

func TestHandleNamesTheRoundThatFollows(t *testing.T) {
	var handle string
	it := ready(t, func(ctx tool.Context, _ any) (map[string]any, error) { handle = ctx.ResultHandle(); return nil, nil })
	c := call(`{}`)
	c.Envelope.Round = 2
	_, _ = it.Run(t.Context(), c)
	h, err := protocol.ParseHandle(handle)
	if want := (protocol.Handle{App: "a", Tool: "x", Session: "s1", Call: "c1", Round: 3}); err != nil || h != want {
		t.Errorf("%s is %+v, %v", handle, h, err)
	}
}

func TestObjectIsWhatModelsAreSent(t *testing.T) {
	for name, c := range map[string]struct {
		v    any
		want string
		code protocol.Code
	}{
		"object": {map[string]any{"a": 1}, `{"a":1}`, ""},
		"text":   {"x", `{"result":"x"}`, ""},
		"nil":    {nil, `{"result":null}`, ""},
		"NaN":    {math.NaN(), ``, protocol.CodeBadMessage},
		"large":  {strings.Repeat("x", protocol.MaxInlineResult), ``, protocol.CodeTooLarge},
	} {
		if got, err := invoke.Object(c.v); string(got) != c.want || protocol.CodeOf(err) != c.code {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
}
