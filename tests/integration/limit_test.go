package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

func limitedAgent(t *testing.T, llm model.LLM, limits llmagent.Limits, tools ...string) agent.Agent {
	t.Helper()
	cfg := llmagent.Config{Name: "app", Model: llm, Limits: limits}
	for _, name := range tools {
		cfg.Tools = append(cfg.Tools, tool.Pool(name))
	}
	a, err := llmagent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func wantProblem(t *testing.T, out client.Outcome, code protocol.Code, text string) {
	t.Helper()
	if out.Problem == nil || out.Problem.Code != code {
		t.Fatalf("the run ended with %q, %+v; want %s", out.Text, out.Problem, code)
	}
	contains(t, "the problem", out.Problem.Message, text)
}

// again is a model that calls a tool as often as it is asked.
func again(n int) []byte {
	var s strings.Builder
	s.WriteString("turns:\n")
	for i := range n {
		fmt.Fprintf(&s, "  - {parts: [{functionCall: {name: slow, id: c%d}}], finishReason: STOP}\n", i)
	}
	return []byte(s.String())
}

func TestModelCallsOfARunAreCapped(t *testing.T) { // H72
	t.Parallel()
	f := newFabric(t)
	p := provide(t, again(10), nil)
	f.coordinate(limitedAgent(t, p.llm, llmagent.Limits{ModelCalls: 3}, "slow"))
	s := answering("slow", `{}`, tool.AtMostOnce)
	f.work(s)
	out := f.ask("app", "", "go")
	wantProblem(t, out, protocol.CodeLimit, "3 times")
	p.wantCount(3)
	s.wantRuns(t, 3)
	out = f.ask("app", out.Session, "go on") // another run has its own cap
	wantProblem(t, out, protocol.CodeLimit, "3 times")
	p.wantCount(6)
	s.wantRuns(t, 6)
}

func TestCallsOfATurnAreCapped(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(`
turns:
  - parts: [{functionCall: {name: slow, id: a}}, {functionCall: {name: slow, id: b}}, {functionCall: {name: slow, id: c}}]
    finishReason: STOP
  - {parts: [{text: finished}], finishReason: STOP}
`), nil)
	f.coordinate(limitedAgent(t, p.llm, llmagent.Limits{CallsPerTurn: 2}, "slow"))
	s := answering("slow", `{"v":1}`, tool.AtMostOnce)
	f.work(s)
	out := f.ask("app", "", "go")
	contains(t, "the answer", out.Text, "finished")
	s.wantRuns(t, 2)
	p.wantCount(2)
	for k := range 2 {
		wantJSON(t, "a response within the cap", mustString(t, p.response(2, k)), `{"v":1}`)
	}
	text, _ := p.response(2, 2)["error"].(string)
	contains(t, "the response beyond the cap", text, "not executed")
}

func TestWallTimeEndsARunWhoseModelIsSilent(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	m := holding()
	f.coordinate(limitedAgent(t, m, llmagent.Limits{WallTime: time.Second}))
	wantProblem(t, f.ask("app", "", "go"), protocol.CodeLimit, "1s")
	close(m.release)
}

func TestWallTimeEndsARunBetweenTurns(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	p := provide(t, again(1000), nil)
	f.coordinate(limitedAgent(t, p.llm, llmagent.Limits{WallTime: time.Second, ModelCalls: 1000}, "slow"))
	f.work(delayed("slow", `{}`, 100*time.Millisecond))
	wantProblem(t, f.ask("app", "", "go"), protocol.CodeLimit, "1s")
}

func TestWhatTheModelGetsWrongIsAnsweredToIt(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(`
turns:
  - parts: [{functionCall: {name: ad, id: a}}, {functionCall: {name: add, id: b, args: {a: one, b: 2}}}, {functionCall: {name: add, id: c, args: {a: 1, b: 2, B: 3}}}, {functionCall: {name: add, id: d, args: {a: 1, b: 2}}}]
    finishReason: STOP
  - {parts: [{text: finished}], finishReason: STOP}
`), nil)
	f.coordinate(newAgent(t, "app", p.llm, "add"))
	add := &stub{name: "add", do: sumOf,
		schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}`)}
	f.work(add)
	out := f.ask("app", "", "go")
	contains(t, "the answer", out.Text, "finished")
	add.wantRuns(t, 1)
	p.wantCount(2)
	for k, want := range []string{"Did you mean add?", "/a", "B"} {
		text, _ := p.response(2, k)["error"].(string)
		contains(t, fmt.Sprintf("response %d", k), text, want)
	}
	wantJSON(t, "the response to the good call", mustString(t, p.response(2, 3)), `{"result":3}`)
}

func TestLargeResultGoesByReference(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(twoSteps), nil)
	f.coordinate(newAgent(t, "app", p.llm, "slow"))
	value := `{"text":"` + strings.Repeat("0123456789abcdef", 400<<10/16) + `"}`
	f.work(answering("slow", value, tool.Read))
	out := f.ask("app", "", "go")
	contains(t, "the answer", out.Text, "finished")
	a := firstAnswer(f.log("app", out.Session), 0)
	if a.Body == nil || a.Body.Size != int64(len(value)) || len(a.Value) > protocol.MaxModelResult+1024 {
		t.Fatalf("the log holds %d bytes and the reference %+v", len(a.Value), a.Body)
	}
	whole, err := f.client.Body(t.Context(), *a.Body)
	if err != nil || string(whole) != value {
		t.Errorf("the body has %d bytes, %v; want the %d of the result", len(whole), err, len(value))
	}
	response := p.response(2, 0)
	contains(t, "the response", mustString(t, response), a.Body.Name)
	contains(t, "its head", response["head"].(string), `{"text":"0123`)
	contains(t, "its tail", response["tail"].(string), `cdef"}`)
}

func TestFullQueueIsAClearError(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	if err := natswire.Provision(t.Context(), f.conn, natswire.ProvisionConfig{QueueLimit: 1}); err != nil {
		t.Fatal(err)
	}
	f.coordinate()
	busy, other := answering("busy", `{}`, tool.AtMostOnce), answering("other", `{}`, tool.AtMostOnce)
	busy.settings.QueueTimeout = time.Second
	f.work(other)
	f.work(busy).stop() // known, but nobody serves it: what is queued stays
	if _, err := f.conn.Publish(t.Context(), natswire.Msg{Subject: f.conn.Names().CallSubject("busy"), Data: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	r, err := f.call("busy", `{}`)
	if err != nil || r.Outcome != protocol.OutcomeFailed || r.Code != protocol.CodeStorageFull {
		t.Errorf("the call beyond the limit ended with %s %s %s, %v", r.Outcome, r.Code, r.Value, err)
	}
	contains(t, "its text", string(r.Value), "not executed")
	contains(t, "its text", string(r.Value), "queue")
	if r, err := f.call("other", `{}`); err != nil || r.Outcome != protocol.OutcomeCompleted {
		t.Errorf("another tool's call ended with %+v, %v", r, err)
	}
	busy.wantRuns(t, 0)
}

func TestRunningCallIsNotTakenForOneThatNobodyTook(t *testing.T) {
	for _, effect := range []tool.Effect{tool.AtMostOnce, tool.Idempotent} {
		t.Run(string(effect), func(t *testing.T) {
			t.Parallel()
			f := newFabric(t)
			f.coordinate()
			g := gated("busy", `{"v":1}`, tool.Settings{Effect: effect, QueueTimeout: 5 * time.Second, MaxActive: 1})
			f.work(g)
			running := f.called("busy", `{}`)
			receive(t, "start of the call", g.started)
			waiting, err := f.call("busy", `{}`) // its queue timeout ends after that of the other
			if err != nil || waiting.Code != protocol.CodeNoWorker {
				t.Errorf("the waiting call ended with %s %s, %v; want no_worker", waiting.Outcome, waiting.Value, err)
			}
			g.open()
			if end := receive(t, "end of the running call", running); end.err != nil || end.Outcome != protocol.OutcomeCompleted {
				t.Errorf("the running call ended with %s %s, %v", end.Outcome, end.Value, end.err)
			}
			g.wantRuns(t, 1)
		})
	}
}
