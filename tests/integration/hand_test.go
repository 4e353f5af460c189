package integration

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

func TestReusedProviderIDIsAnotherCall(t *testing.T) { // h06
	t.Parallel()
	f := newFabric(t)
	p := provide(t, hand(t, "h06-reused-call-ids/model.json"), nil)
	f.coordinate(newAgent(t, "h06", p.llm, "a", "b"))
	a, b := answering("a", `{"from":"a"}`, tool.AtMostOnce), answering("b", `{"from":"b"}`, tool.AtMostOnce)
	f.work(a, b)
	out := f.ask("h06", "", "first")
	contains(t, "the first answer", out.Text, "one")
	out = f.ask("h06", out.Session, "second")
	contains(t, "the second answer", out.Text, "two")
	a.wantRuns(t, 1)
	b.wantRuns(t, 1)
	if a.ran()[0].call == b.ran()[0].call {
		t.Errorf("both calls have the id %s", a.ran()[0].call)
	}
	p.wantCount(4)
	p.wantContents(4, `[
		{"role":"user","parts":[{"text":"first"}]},
		{"role":"model","parts":[{"functionCall":{"id":"call_807","name":"a"}}]},
		{"role":"user","parts":[{"functionResponse":{"id":"call_807","name":"a","response":{"from":"a"}}}]},
		{"role":"model","parts":[{"text":"one"}]},
		{"role":"user","parts":[{"text":"second"}]},
		{"role":"model","parts":[{"functionCall":{"id":"call_807","name":"b"}}]},
		{"role":"user","parts":[{"functionResponse":{"id":"call_807","name":"b","response":{"from":"b"}}}]}]`)
}

func TestResponsesStandInCallOrder(t *testing.T) { // h08
	t.Parallel()
	f := newFabric(t)
	p := provide(t, hand(t, "h08-completion-order/model.json"), nil)
	f.coordinate(newAgent(t, "h08", p.llm, "slow", "fast"))
	// The slow ones end when all three have begun and the fast one has ended: one after the other they never would.
	var n atomic.Int32
	together, over := make(chan struct{}), make(chan struct{})
	begin := func() {
		if n.Add(1) == 3 {
			close(together)
		}
	}
	slow := &stub{name: "slow", do: func(ctx tool.Context, _ json.RawMessage) (json.RawMessage, error) {
		begin()
		for _, c := range []chan struct{}{together, over} {
			select {
			case <-c:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return json.RawMessage(`{"v":"slow"}`), nil
	}}
	fast := &stub{name: "fast", do: func(tool.Context, json.RawMessage) (json.RawMessage, error) {
		defer close(over)
		begin()
		return json.RawMessage(`{"v":"fast"}`), nil
	}}
	f.work(slow, fast)
	out := f.ask("h08", "", "go")
	contains(t, "the answer", out.Text, "x")
	slow.wantRuns(t, 2)
	fast.wantRuns(t, 1)
	p.wantCount(2)
	p.wantContents(2, `[
		{"role":"user","parts":[{"text":"go"}]},
		{"role":"model","parts":[{"functionCall":{"id":"1","name":"slow"}},{"functionCall":{"id":"2","name":"fast"}},{"functionCall":{"id":"3","name":"slow"}}]},
		{"role":"user","parts":[
			{"functionResponse":{"id":"1","name":"slow","response":{"v":"slow"}}},
			{"functionResponse":{"id":"2","name":"fast","response":{"v":"fast"}}},
			{"functionResponse":{"id":"3","name":"slow","response":{"v":"slow"}}}]}]`)
}

// delayed is a tool that takes its time.
func delayed(name, value string, d time.Duration) *stub {
	return &stub{name: name, do: func(ctx tool.Context, _ json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(value), natswire.Sleep(ctx, natswire.SystemClock{}, d)
	}}
}

func TestOneIDFromThePartialToTheResponse(t *testing.T) { // h09
	t.Parallel()
	f := newFabric(t)
	p := provide(t, hand(t, "h09-stream-split-calls/model.json"), nil)
	f.coordinate(newAgent(t, "h09", p.llm, "w"))
	w := answering("w", `{"t":20}`, tool.AtMostOnce)

	var mu sync.Mutex
	var queued []string
	var early bool // a call was queued before its turn was in the log
	n := f.conn.Names()
	stop, err := f.conn.Subscribe(n.CallSubject("w"), func(m natswire.Msg) {
		env, err := protocol.DecodeEnvelope(m.Data)
		if err != nil {
			t.Error(err)
			return
		}
		tail, err := f.other.Last(t.Context(), n.Log(), n.LogSubject("h09", env.Session))
		mu.Lock()
		defer mu.Unlock()
		queued = append(queued, env.Call)
		early = early || err != nil || !strings.Contains(string(tail.Data), env.Call)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	f.work(w)

	shown := map[string]bool{}
	var out client.Outcome
	for u, err := range f.follow("h09", "", "go") {
		switch {
		case err != nil:
			t.Fatal(err)
		case u.Token != nil:
			for _, c := range u.Token.Calls {
				shown[c.ID] = true
			}
		case u.Outcome != nil:
			out = *u.Outcome
		}
	}
	contains(t, "the answer", out.Text, "ok")
	w.wantRuns(t, 2)

	log := f.log("h09", out.Session)
	turn := turns(log)[0]
	if len(turn.Calls) != 2 || turn.Calls[0].ID == turn.Calls[1].ID {
		t.Fatalf("the turn has calls %+v, want two of different ids", turn.Calls)
	}
	ids := []string{turn.Calls[0].ID, turn.Calls[1].ID}
	slices.Sort(ids)
	f.eventually("both calls seen in the queue", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(queued) >= 2
	})
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(queued)
	same(t, "ids in the queue", queued, ids)
	if early {
		t.Error("a call was queued before its turn was in the log")
	}
	for _, id := range ids {
		if !shown[id] {
			t.Errorf("the partial events showed %v, not %s", shown, id)
		}
	}
	var ran []string
	for _, r := range w.ran() {
		ran = append(ran, r.call)
	}
	slices.Sort(ran)
	same(t, "ids at the tool", ran, ids)
	var answered []string
	for _, a := range answers(log) {
		answered = append(answered, a.Call)
	}
	same(t, "ids of the responses, in call order", answered, []string{turn.Calls[0].ID, turn.Calls[1].ID})
	called, responded := f.eventIDs("h09", out.Session)
	same(t, "ids of calls and responses as people see them", called, responded)
	same(t, "ids of calls as people see them", called, answered)

	if want := (protocol.Usage{Prompt: 11, Candidates: 4, Total: 15}); turn.Usage == nil || *turn.Usage != want {
		t.Errorf("usage is %+v, want %+v", turn.Usage, want)
	}
	p.wantCount(2)
	p.wantContents(2, `[
		{"role":"user","parts":[{"text":"go"}]},
		{"role":"model","parts":[{"functionCall":{"name":"w","args":{"city":"A"}}},{"functionCall":{"name":"w","args":{"city":"B"}}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"w","response":{"t":20}}},{"functionResponse":{"name":"w","response":{"t":20}}}]}]`)
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestFragmentsAreOneCall(t *testing.T) { // h10
	t.Parallel()
	f := newFabric(t)
	p := provide(t, hand(t, "h10-stream-partial-args/model.json"), nil)
	f.coordinate(newAgent(t, "h10", p.llm, "write_doc"))
	write := answering("write_doc", `{"ok":true}`, tool.AtMostOnce)
	f.work(write)
	out := f.ask("h10", "", "go")
	contains(t, "the answer", out.Text, "ok")
	write.wantRuns(t, 1)
	const args = `{"title":"Report","opts":{"tags":["a","b"]},"draft":false,"n":0}`
	wantJSON(t, "the arguments at the tool", write.ran()[0].args, args)
	p.wantCount(2)
	p.wantContents(2, `[
		{"role":"user","parts":[{"text":"go"}]},
		{"role":"model","parts":[{"functionCall":{"id":"c1","name":"write_doc","args":`+args+`},"thoughtSignature":"c2lnLTE="}]},
		{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"write_doc","response":{"ok":true}}}]}]`)
}

func TestBrokenStreamRunsNothing(t *testing.T) { // h10, the stream breaks before the last fragment
	t.Parallel()
	var script map[string]any
	if err := json.Unmarshal(hand(t, "h10-stream-partial-args/model.json"), &script); err != nil {
		t.Fatal(err)
	}
	script["turns"].([]any)[0].(map[string]any)["cut"] = true
	text, err := json.Marshal(script)
	if err != nil {
		t.Fatal(err)
	}
	f := newFabric(t)
	p := provide(t, text, nil)
	f.coordinate(newAgent(t, "h10", p.llm, "write_doc"))
	write := answering("write_doc", `{"ok":true}`, tool.AtMostOnce)
	f.work(write)
	out := f.ask("h10", "", "go")
	if out.Problem == nil || out.Problem.Code != protocol.CodeModelFailed {
		t.Errorf("the run ended with %+v, want model_failed", out.Problem)
	}
	write.wantRuns(t, 0)
	if n := turns(f.log("h10", out.Session)); len(n) > 0 {
		t.Errorf("a broken answer was recorded: %+v", n)
	}
	if st, err := f.conn.ConsumerState(t.Context(), f.conn.Names().Calls(), "write_doc"); err != nil || st.Delivered > 1 || st.Pending > 0 {
		t.Errorf("something was queued: %+v %v", st, err)
	}
}

func wantJSON(t *testing.T, what, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%s: %v in %s", what, err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(w, g); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
