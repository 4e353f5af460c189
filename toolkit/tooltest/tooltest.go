// Package tooltest is the suite that every tool and every kind of tool must pass.
package tooltest

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// Case is one round of one call of the tool. The zero outcome is completed, or pending for a long-running tool.
type Case struct {
	Name    string
	Args    string           // a JSON object
	Outcome protocol.Outcome // what the round ends as
	Code    protocol.Code    // why it failed: tool_panic, too_large; empty is any
	Want    string           // the value that the model reads, compared as JSON; empty is any
	Tells   []string         // what watchers are told meanwhile, in this order, perhaps with more between; nil is anything
	Refused bool             // the arguments do not fit the schema: the call fails before the tool runs
	Blocks  bool             // the call does not end by itself: it is cancelled, and must end soon

	// Confirmation is people's word on the call. Nil is none, but for a tool that is declared to need one, which people
	// then have agreed to. Round and State are what the rounds before left: a second stage has a round above 0.
	Confirmation *protocol.Confirmed
	Round        int
	State        map[string]json.RawMessage
	Asks         *protocol.Ask              // what an outcome asks must ask; nil is anything
	Sets         map[string]json.RawMessage // state that the tool must set, compared as JSON; nil is anything
}

// Run checks the tool that mk makes:
//
//   - its name, description and schemas are legal, and have the same digest each time and under another name;
//   - arguments that do not fit its schema are refused before it runs: no objects, and those of each case with a required
//     property left out, written in other letters, or one more where the schema takes no other;
//   - every case ends as it says, alone, beside itself and under another name; one of a tool that is read or idempotent ends
//     so too when it is delivered again with its idempotency key;
//   - a call that blocks ends soon after it was cancelled, before or while it runs, and when its time is over;
//   - each result is one that a coordinator takes, of valid text, and holds no stack of a goroutine; progress comes while the
//     tool runs, and is one that a watcher takes;
//   - of a tool that is declared to need a confirmation no call starts without one or after a refusal;
//   - no goroutine is left.
//
// mk is called several times. Tests that run beside it must not start goroutines.
func Run(t *testing.T, mk func() tool.Tool, cases ...Case) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	it, err := invoke.New(mk())
	if err != nil {
		t.Fatalf("the tool is refused: %v", err)
	}
	t.Run("declaration", func(t *testing.T) { declaration(t, it, mk) })
	t.Run("arguments that are no object", func(t *testing.T) {
		for _, args := range []string{`[]`, `"x"`, `{"a":1,"a":2}`, `{`, `{"a":1e999}`} {
			refused(t, it, Case{Args: args})
		}
	})
	t.Run("arguments that do not fit", func(t *testing.T) { misfits(t, it, cases) })
	if it.Declaration().Confirm {
		t.Run("calls that people did not agree to", func(t *testing.T) { gated(t, it, cases) })
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			switch {
			case c.Refused:
				refused(t, it, c)
			case c.Blocks:
				ends(t, it, c)
			default:
				once(t, it, c)
				beside(t, it, c)
				again(t, it, c)
				renamed(t, mk, c)
			}
		})
	}
	if n := it.Stuck(); n != 0 {
		t.Errorf("%d executions ignored the end of their context", n)
	}
}

func (c *Case) call(it *invoke.Tool) invoke.Call {
	word := c.Confirmation
	if word == nil && it.Declaration().Confirm {
		word = &protocol.Confirmed{ID: "confirmation", Confirmed: true}
	}
	return invoke.Call{
		Envelope: protocol.Envelope{
			V: protocol.Version, App: "app", User: "user", Session: "session", Agent: "agent", Call: protocol.NewID(), Args: json.RawMessage(c.Args),
			Round: c.Round, Confirmation: word, State: c.State,
		},
		Attempt: 1, Worker: "worker",
	}
}

// run is what a worker does with a call that it took. Nothing may be told after it returned.
func run(t *testing.T, ctx context.Context, it *invoke.Tool, c invoke.Call) (protocol.Result, []protocol.Progress, error) {
	t.Helper()
	var (
		mu   sync.Mutex
		told []protocol.Progress
		over bool
	)
	c.Progress = func(p protocol.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if told = append(told, p); over {
			t.Errorf("it tells %q after its end", p.Message)
		}
	}
	if r, open := it.Gate(ctx, c); !open {
		return r, nil, nil
	}
	r, err := it.Run(ctx, c)
	mu.Lock()
	defer mu.Unlock()
	over = true
	return r, told, err
}

func refused(t *testing.T, it *invoke.Tool, c Case) {
	t.Helper()
	r, told, err := run(t, t.Context(), it, c.call(it))
	if err != nil || len(told) > 0 || r.Outcome != protocol.OutcomeFailed || r.Code != protocol.CodeSchemaViolation {
		t.Errorf("%s: got outcome %s, code %q, %v; want them refused", c.Args, r.Outcome, r.Code, err)
	}
	onTheWire(t, r)
}

// gated holds a tool that is declared to need a confirmation to it.
func gated(t *testing.T, it *invoke.Tool, cases []Case) {
	t.Helper()
	for _, c := range cases {
		if c.Refused {
			continue
		}
		inv := c.call(it)
		for word, outcome := range map[*protocol.Confirmed]protocol.Outcome{nil: protocol.OutcomeFailed, {ID: "confirmation"}: protocol.OutcomeDenied} {
			inv.Envelope.Confirmation, inv.Envelope.Round = word, 0
			r, open := it.Gate(t.Context(), inv)
			if open || r.Outcome != outcome {
				t.Errorf("%s: the gate is open: %v, outcome %s, want %s", c.Args, open, r.Outcome, outcome)
				continue
			}
			onTheWire(t, r)
		}
	}
}

func once(t *testing.T, it *invoke.Tool, c Case) {
	t.Helper()
	judge(t, it, c, c.call(it))
}

// judge runs a call and compares what came of it.
func judge(t *testing.T, it *invoke.Tool, c Case, call invoke.Call) {
	t.Helper()
	r, told, err := run(t, t.Context(), it, call)
	if err != nil && r.Outcome != c.Outcome { // that it asks for another attempt is its right when it fails
		t.Errorf("%s: %v", c.Args, err)
	}
	want := c.Outcome
	switch {
	case want != "":
	case it.Declaration().LongRunning:
		want = protocol.OutcomePending
	default:
		want = protocol.OutcomeCompleted
	}
	if r.Outcome != want || c.Code != "" && r.Code != c.Code {
		t.Errorf("%s: the outcome is %s %s, want %s %s: %s", c.Args, r.Outcome, r.Code, want, c.Code, r.Value)
	}
	if c.Want != "" && (r.Value == nil || canonical(t, string(r.Value)) != canonical(t, c.Want)) {
		t.Errorf("%s: got %s, want %s", c.Args, r.Value, c.Want)
	}
	if c.Asks != nil {
		asked(t, c, r.Ask)
	}
	for key, v := range c.Sets {
		var set json.RawMessage
		if r.Actions != nil {
			set = r.Actions.StateDelta[key]
		}
		if set == nil || canonical(t, string(set)) != canonical(t, string(v)) {
			t.Errorf("%s: the state %q is set to %s, want %s", c.Args, key, set, v)
		}
	}
	tells(t, c, told)
	onTheWire(t, r)
}

// tells fails unless told has the case's words in their order, and only words that a watcher takes.
func tells(t *testing.T, c Case, told []protocol.Progress) {
	t.Helper()
	left := c.Tells
	for _, p := range told {
		if b, err := json.Marshal(p); err != nil || !utf8.ValidString(p.Message) || p.Percent < 0 || p.Percent > 100 {
			t.Errorf("%s: a watcher does not take the progress %s, %v", c.Args, b, err)
		}
		if len(left) > 0 && p.Message == left[0] {
			left = left[1:]
		}
	}
	if len(left) > 0 {
		t.Errorf("%s: it told %+v, and not %q", c.Args, told, left)
	}
}

func asked(t *testing.T, c Case, ask *protocol.Ask) {
	t.Helper()
	want := c.Asks
	switch {
	case ask == nil:
		t.Errorf("%s: it asks nothing, want %+v", c.Args, want)
	case ask.Hint != want.Hint || ask.Provider != want.Provider || (ask.Payload == nil) != (want.Payload == nil):
		t.Errorf("%s: it asks %+v, want %+v", c.Args, ask, want)
	case want.Payload != nil && canonical(t, string(ask.Payload)) != canonical(t, string(want.Payload)):
		t.Errorf("%s: it asks with %s, want %s", c.Args, ask.Payload, want.Payload)
	}
}

func beside(t *testing.T, it *invoke.Tool, c Case) {
	t.Helper()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { once(t, it, c) })
	}
	all.Wait()
}

// again delivers one call twice, as after a worker's death.
func again(t *testing.T, it *invoke.Tool, c Case) {
	t.Helper()
	if d := it.Declaration(); d.Class() == protocol.EffectAtMostOnce {
		return
	}
	call := c.call(it)
	for call.Attempt = 1; call.Attempt <= 2; call.Attempt++ {
		judge(t, it, c, call)
	}
}

// onTheWire fails unless a coordinator takes the result.
func onTheWire(t *testing.T, r protocol.Result) {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := protocol.DecodeResult(b); err != nil {
		t.Errorf("a coordinator refuses the result: %v", err)
	}
	if !utf8.Valid(r.Value) || len(r.Value) > protocol.MaxInlineResult {
		t.Errorf("the value is no valid text, or has %d bytes, more than %d", len(r.Value), protocol.MaxInlineResult)
	}
	if bytes.Contains(r.Value, []byte("goroutine ")) && bytes.Contains(r.Value, []byte(".go:")) {
		t.Errorf("the value tells the model a stack: %s", r.Value)
	}
}

func canonical(t *testing.T, s string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	b, _ := json.Marshal(v)
	return string(b)
}
