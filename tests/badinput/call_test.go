package badinput

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// claimFirst stores a claim that is no claim for each call it hears of.
func (f *fabric) claimFirst(calls *[]string) func(natswire.Msg) {
	return func(m natswire.Msg) {
		env, err := protocol.DecodeEnvelope(m.Data)
		if err != nil {
			return
		}
		*calls = append(*calls, env.Call)
		_ = f.mallory.Publish(f.names.ClaimSubject(env.Tool, env.Call, 0), []byte("mine"))
	}
}

// envelope is a call of add as a coordinator writes it, with other values for some keys; nil leaves a key out.
func (f *fabric) envelope(call string, other map[string]any) []byte {
	f.t.Helper()
	d, err := f.client.Tool(f.t.Context(), "add")
	if err != nil {
		f.t.Fatal(err)
	}
	env := map[string]any{
		"v": 1, "app": "house", "user": "", "session": "s-" + call, "call": call, "round": 0, "tool": "add", "digest": d.Digest,
		"effect": "at_most_once", "args": map[string]any{}, "answers_to": "results", "start_by": 0, "timeout_ms": 1000,
		"deadline": time.Now().Add(time.Minute).UnixMilli(),
	}
	maps.Copy(env, other)
	for k, v := range env {
		if v == nil {
			delete(env, k)
		}
	}
	data, err := json.Marshal(env)
	if err != nil {
		f.t.Fatal(err)
	}
	return data
}

// calls are messages in the queue of add that no coordinator writes.
var calls = []struct {
	name   string
	data   string         // as it is
	other  map[string]any // or an envelope with these values
	answer bool           // it shows in the call's mailbox; else as a dead letter
}{
	{name: "not JSON", data: "add"},
	{name: "nothing at all", data: ""},
	{name: "JSON that ends early", data: `{"v":1`},
	{name: "large and not JSON", data: strings.Repeat("x", 1_000_000)},
	{name: "a lone surrogate in a key", data: `{"v":1,"args":{"\udc00":1}}`},
	{name: "a key twice", data: `{"v":1,"tool":"add","tool":"slow"}`},
	{name: "a version of tomorrow", other: map[string]any{"v": 2}},
	{name: "another tool", other: map[string]any{"tool": "slow"}},
	{name: "a tool that is no name", other: map[string]any{"tool": "a.b"}},
	{name: "an app that is no name", other: map[string]any{"app": "*"}},
	{name: "a session that is no id", other: map[string]any{"session": "a.b"}},
	{name: "no call id", other: map[string]any{"call": nil}},
	{name: "a call id that reaches elsewhere", other: map[string]any{"call": "x.0.>"}},
	{name: "an unknown effect", other: map[string]any{"effect": "harmless"}},
	{name: "no effect", other: map[string]any{"effect": nil}},
	{name: "a round below zero", other: map[string]any{"round": -1}},
	{name: "a mailbox that does not exist", other: map[string]any{"answers_to": "elsewhere"}},
	{name: "arguments that do not fit", other: map[string]any{"args": map[string]any{"n": 12}}, answer: true},
	{name: "arguments that are no object", other: map[string]any{"args": []int{1}}, answer: true},
	{name: "no arguments", other: map[string]any{"args": nil}, answer: true},
	{name: "an effect that is not the tool's", other: map[string]any{"effect": "read"}, answer: true},
}

func TestBadCallsAreToldAndTheQueueGoesOn(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	subject := f.names.CallSubject("add")
	var b strings.Builder
	for i, row := range calls {
		id := fmt.Sprintf("call-%d", i)
		data := []byte(row.data)
		if row.other != nil {
			data = f.envelope(id, row.other)
		}
		ran := f.add.runs.Load()
		f.store(subject, data)
		fmt.Fprintf(&b, "# %s\n", row.name)
		if row.answer {
			fmt.Fprintln(&b, f.mailbox("add", "s-"+id, id))
		} else {
			fmt.Fprintln(&b, f.letter("call", subject, data))
			if f.add.runs.Load() != ran {
				t.Errorf("%s: it ran", row.name)
			}
		}
		f.nothingLost()
	}
	f.eventually("empty queue", func() bool {
		left, err := f.conn.Read(t.Context(), f.names.Calls(), subject, 1, 10)
		return err == nil && len(left) == 0
	})
	golden(t, "call", b.String())
}

// mailbox waits for the answer of a call that no session waits for.
func (f *fabric) mailbox(tool, session, call string) string {
	f.t.Helper()
	var r protocol.Result
	f.eventually("answer of "+call, func() bool {
		m, err := f.conn.Last(f.t.Context(), f.names.Results(), f.names.ResultSubject(tool, session, call, 0))
		if err != nil {
			return false
		}
		if r, err = protocol.DecodeResult(m.Data); err != nil {
			f.t.Fatal(err)
		}
		return true
	})
	return fmt.Sprintf("result: %s %s %s", r.Outcome, r.Code, r.Value)
}

// A call whose time is over is not started. A call whose caller knows another version of the tool runs when it fits, and is
// told when it does not.
func TestLateCallsAndOtherVersions(t *testing.T) {
	t.Parallel()
	gated := answering("gated", `{}`)
	gated.settings = tool.Settings{Effect: tool.Idempotent}
	f := newFabricOn(t, natstest.Start(t), logins{}, []tool.Tool{gated})
	ran := f.add.runs.Load()
	past := time.Now().Add(-time.Minute).UnixMilli()
	f.store(f.names.CallSubject("add"), f.envelope("late", map[string]any{"deadline": past}))
	f.store(f.names.CallSubject("add"), f.envelope("untaken", map[string]any{"start_by": past}))
	f.store(f.names.CallSubject("add"), f.envelope("older", map[string]any{"digest": strings.Repeat("0", 64)}))
	if got := f.mailbox("add", "s-older", "older"); !strings.Contains(got, `{"sum":42}`) {
		t.Errorf("a call that fits the other version ended with %s", got)
	}
	f.store(f.names.CallSubject("add"), f.envelope("other", map[string]any{"digest": strings.Repeat("0", 64), "args": map[string]any{"m": 1}}))
	got := f.mailbox("add", "s-other", "other")
	if n := f.add.runs.Load() - ran; n != 1 {
		t.Errorf("add ran %d times, want once", n)
	}
	if m, err := f.conn.Last(t.Context(), f.names.Results(), f.names.ResultSubject("add", "s-late", "late", 0)); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("a call past its deadline was answered with %s", m.Data)
	}
	if got := f.mailbox("add", "s-untaken", "untaken"); !strings.Contains(got, "not executed: no worker took the call in time") {
		t.Errorf("a call that was not taken in time was answered with %s", got)
	}
	f.nothingLost()
	golden(t, "version", got+"\n")
}
