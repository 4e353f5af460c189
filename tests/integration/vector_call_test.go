package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/worker"
)

// calling is a script of one turn with these calls, whose provider's ids are their places from 1, and a last word.
func calling(tools ...string) []byte {
	var parts []string
	for i, name := range tools {
		parts = append(parts, fmt.Sprintf(`{"functionCall":{"name":%q,"id":"%d"}}`, name, i+1))
	}
	return []byte(`{"turns":[{"parts":[` + strings.Join(parts, ",") + `],"finishReason":"STOP"},{"parts":[{"text":"ok"}],"finishReason":"STOP"}]}`)
}

func TestVectorV15AnUnknownTool(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	p := provide(t, calling("plane", "plain"), nil)
	f.coordinate(newAgent(t, "v", p.llm, "plain"))
	plain := answering("plain", `{"ok":true}`, tool.AtMostOnce)
	f.work(plain)
	out := f.ask("v", "", "go")
	contains(t, "the answer", out.Text, "ok")
	plain.wantRuns(t, 1)
	ghost := fmt.Sprint(p.response(2, 0)["error"])
	contains(t, "what the model reads of the unknown tool", ghost, "plane")
	contains(t, "the list of what there is", ghost, "plain")
	if got := p.response(2, 1); got["ok"] != true {
		t.Errorf("the other call's response is %v", got)
	}
	p.wantCount(2)
	text, err := json.Marshal(ghost)
	if err != nil {
		t.Fatal(err)
	}
	f.wantStream("v", out.Session, "user: T(go)", "v: FC(plane) FC(plain)", `v: FR(plane: {"error":`+string(text)+`}) FR(plain: {"ok":true})`, "v: T(ok)")
}

func TestVectorV16TwoToolsOfOneName(t *testing.T) { // ours: found when the worker is made; turns of others go on
	t.Parallel()
	f := newFabric(t)
	p := provide(t, calling("plain"), nil)
	f.coordinate(newAgent(t, "v", p.llm, "plain"))
	plain := answering("plain", `{"ok":true}`, tool.AtMostOnce)
	_, err := worker.New(worker.Config{Bus: f.conn, Names: f.conn.Names(), Tools: []tool.Tool{plain, answering("plain", `{}`, tool.AtMostOnce)}})
	if err == nil || !strings.Contains(err.Error(), "plain") {
		t.Errorf("a worker with two tools of one name: %v", err)
	}
	f.work(plain)
	out := f.ask("v", "", "go")
	plain.wantRuns(t, 1)
	p.wantCount(2)
	f.wantStream("v", out.Session, "user: T(go)", "v: FC(plain)", `v: FR(plain: {"ok":true})`, "v: T(ok)")
}

// pair is a toolset of fixed tools.
type pair struct {
	name  string
	tools []tool.Tool
}

func (p pair) Name() string                                     { return p.name }
func (p pair) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { return p.tools, nil }

func TestVectorV16TwoToolsOfOneNameInToolsets(t *testing.T) { // ours: the second is left out, and the turn goes on
	t.Parallel()
	f := newFabric(t)
	p := provide(t, calling("plain"), nil)
	f.coordinate(withCallbacks(t, "v", p.llm, func(cfg *llmagent.Config) {
		cfg.Toolsets = []tool.Toolset{pair{"twins", []tool.Tool{tool.Pool("plain"), tool.Pool("plain"), tool.Pool("other")}}}
	}, "plain"))
	plain, other := answering("plain", `{"ok":true}`, tool.AtMostOnce), answering("other", `{}`, tool.AtMostOnce)
	f.work(plain, other)
	out := f.ask("v", "", "go")
	contains(t, "the answer", out.Text, "ok")
	plain.wantRuns(t, 1)
	p.wantCount(2)
	f.wantStream("v", out.Session, "user: T(go)", "v: FC(plain)", `v: FR(plain: {"ok":true})`, "v: T(ok)")
}

func TestVectorV17AToolPanics(t *testing.T) { // ours: the stack is in the worker's log only
	t.Parallel()
	f := newFabric(t)
	p := provide(t, calling("bomb"), nil)
	f.coordinate(newAgent(t, "v", p.llm, "bomb"))
	bomb := &stub{name: "bomb", do: func(tool.Context, json.RawMessage) (json.RawMessage, error) { panic("tick") }}
	plain := answering("plain", `{"ok":true}`, tool.AtMostOnce)
	f.work(bomb, plain)
	out := f.ask("v", "", "go")
	contains(t, "the answer", out.Text, "ok")
	bomb.wantRuns(t, 1)
	told := fmt.Sprint(p.response(2, 0)["error"])
	contains(t, "what the model reads", told, "panic")
	if strings.Contains(told, ".go:") || strings.Contains(told, "goroutine") {
		t.Errorf("the model reads a stack: %s", told)
	}
	p.wantCount(2)
	if r, err := f.call("plain", `{}`); err != nil || string(r.Value) != `{"ok":true}` {
		t.Errorf("the worker after the panic: %+v, %v", r, err)
	}
}

func TestVectorV18ThreeToolsAtOnce(t *testing.T) { // together or not at all: one after the other they never end
	t.Parallel()
	f := newFabric(t)
	p := provide(t, calling("meet", "meet", "meet"), nil)
	f.coordinate(newAgent(t, "v", p.llm, "meet"))
	arrived, together := make(chan string, 3), make(chan struct{})
	meet := &stub{name: "meet", do: func(ctx tool.Context, _ json.RawMessage) (json.RawMessage, error) {
		arrived <- ctx.FunctionCallID()
		select {
		case <-together:
			return json.RawMessage(`{"call":"` + ctx.FunctionCallID() + `"}`), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	f.work(meet)
	r := f.send(t.Context(), "v", "", "go")
	for range 3 {
		receive(t, "call that begins", arrived)
	}
	close(together)
	contains(t, "the answer", f.wait(r).Text, "ok")
	meet.wantRuns(t, 3)
	for k, c := range f.untilTurn("v", r.Session).Calls {
		if got := p.response(2, k)["call"]; got != c.ID {
			t.Errorf("response %d is of call %v, want %s", k, got, c.ID)
		}
	}
}

func TestVectorV19TwoToolsSetTheSameState(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	p := provide(t, calling("second", "first"), nil) // call order is not the order of their ends
	f.coordinate(newAgent(t, "v", p.llm, "first", "second"))
	ended := make(chan struct{})
	set := func(ctx tool.Context, who string) (map[string]any, error) {
		if err := ctx.State().Set("shared", who); err != nil {
			return nil, err
		}
		return map[string]any{"ok": true}, ctx.State().Set("nested", map[string]any{who: 1, "last": who})
	}
	f.work(
		mapped(t, functiontool.Config{Name: "first"}, func(ctx tool.Context, _ map[string]any) (map[string]any, error) {
			defer close(ended)
			return set(ctx, "first")
		}),
		mapped(t, functiontool.Config{Name: "second"}, func(ctx tool.Context, _ map[string]any) (map[string]any, error) {
			select {
			case <-ended:
				return set(ctx, "second")
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}))
	out := f.ask("v", "", "go")
	f.wantStream("v", out.Session,
		"user: T(go)", "v: FC(second) FC(first)",
		`v: FR(second: {"ok":true}) FR(first: {"ok":true}) delta:{"nested":{"first":1,"last":"first","second":1},"shared":"first"}`,
		"v: T(ok)")
	p.wantCount(2)
}

func TestVectorV26CancelWhileAToolRuns(t *testing.T) { // ours: the call is answered as cancelled, and the run ends
	t.Parallel()
	f := newFabric(t)
	p := provide(t, calling("slow"), nil)
	f.coordinate(newAgent(t, "v", p.llm, "slow"))
	stopped := make(chan error, 1)
	started := make(chan struct{}, 1)
	f.work(&stub{name: "slow", do: func(ctx tool.Context, _ json.RawMessage) (json.RawMessage, error) {
		started <- struct{}{}
		<-ctx.Done()
		stopped <- ctx.Err()
		return nil, ctx.Err()
	}})
	r := f.send(t.Context(), "v", "", "go")
	receive(t, "start of the call", started)
	if err := f.client.Cancel(t.Context(), "v", r.Session, ""); err != nil {
		t.Fatal(err)
	}
	receive(t, "end of the tool's context", stopped)
	if out := f.wait(r); out.Problem == nil || out.Problem.Code != protocol.CodeCancelled {
		t.Errorf("the run ended as %+v", out)
	}
	p.wantCount(1)
	a := firstAnswer(f.log("v", r.Session), 0)
	if a.Outcome != protocol.OutcomeCancelled {
		t.Errorf("the call ended as %s: %s", a.Outcome, a.Value)
	}
	// The session lives on: the next request has a response to each call.
	contains(t, "the next answer", f.ask("v", r.Session, "again").Text, "ok")
	p.wantContents(2, `[
		{"role":"user","parts":[{"text":"go"}]},
		{"role":"model","parts":[{"functionCall":{"name":"slow","id":"1"}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"slow","id":"1","response":`+string(a.Value)+`}}]},
		{"role":"user","parts":[{"text":"again"}]}]`)
	f.wantStream("v", r.Session, "user: T(go)", "v: FC(slow)", "v: FR(slow: "+string(a.Value)+")", "v: problem:cancelled", "user: T(again)", "v: T(ok)")
}
