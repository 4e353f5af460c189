package integration

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/exitlooptool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
)

// V20, V21, V24 and V27: several agents, and what tools ask of a run.

// newTeam makes an agent with others below it.
func newTeam(t *testing.T, cfg llmagent.Config, subs ...agent.Agent) agent.Agent {
	t.Helper()
	cfg.SubAgents = subs
	a, err := llmagent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func described(name, description string, llm model.LLM, tools ...string) llmagent.Config {
	cfg := llmagent.Config{Name: name, Description: description, Model: llm, Instruction: "You are " + name + "."}
	for _, tl := range tools {
		cfg.Tools = append(cfg.Tools, tool.Pool(tl))
	}
	return cfg
}

// handing is a script of a transfer to the agents, a turn each, and a last word.
func handing(to ...string) []byte {
	var turns []string
	for _, name := range to {
		turns = append(turns, `{"parts":[{"functionCall":{"name":"transfer_to_agent","args":{"agent_name":"`+name+`"}}}],"finishReason":"STOP"}`)
	}
	return []byte(`{"turns":[` + strings.Join(append(turns, `{"parts":[{"text":"here again"}],"finishReason":"STOP"}`), ",") + `]}`)
}

func TestVectorV20ATransferAndAQuestionBelow(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	root := provide(t, handing("sub"), nil)
	sub := provide(t, []byte(`{"turns":[
		{"parts":[{"functionCall":{"name":"gated","id":"g"}}],"finishReason":"STOP"},
		{"parts":[{"text":"paid"}],"finishReason":"STOP"},
		{"parts":[{"text":"still me"}],"finishReason":"STOP"}]}`), nil)
	team := newTeam(t, described("root", "", root.llm), newTeam(t, described("sub", "Pays.", sub.llm, "gated")))
	m := f.coordinate(team)
	var runs atomic.Int32
	f.work(mapped(t, functiontool.Config{Name: "gated", RequireConfirmation: true}, payloadOf(&runs)))

	r := f.send(t.Context(), "root", "", "pay")
	f.untilParked("root", r.Session)
	m.stop() // whoever adopts goes on with the agent that asked
	f.coordinate(team)
	f.wantReceipt("root", r.Session, f.open("root", r.Session, 1)[0].Confirmation.ID, "ann", yes, "", "")
	contains(t, "the answer", f.wait(r).Text, "paid")
	first := []string{
		"user: T(pay)",
		"root: FC(transfer_to_agent)", "root: FR(transfer_to_agent: {}) transfer:sub",
		"sub: FC(gated)", "sub: " + asks("gated") + " asks:1 skip", "sub: W(gated) long:1",
		`user: D({"confirmed":true})`, `sub: FR(gated: {"got":null})`, "sub: T(paid)",
	}
	f.wantStream("root", r.Session, first...)
	contains(t, "the next answer", f.ask("root", r.Session, "and now?").Text, "still me")
	f.wantStream("root", r.Session, append(first, "user: T(and now?)", "sub: T(still me)")...)
	root.wantCount(1)
	sub.wantCount(3)
	sub.wantContents(3, `[
		{"role":"user","parts":[{"text":"pay"}]},
		{"role":"user","parts":[{"text":"For context:"},{"text":"[root] called tool `+"`transfer_to_agent`"+` with parameters: {\"agent_name\":\"sub\"}"}]},
		{"role":"user","parts":[{"text":"For context:"},{"text":"[root] `+"`transfer_to_agent`"+` tool returned result: {}"}]},
		{"role":"model","parts":[{"functionCall":{"name":"gated","id":"g"}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"gated","id":"g","response":{"got":null}}}]},
		{"role":"model","parts":[{"text":"paid"}]},
		{"role":"user","parts":[{"text":"and now?"}]}]`)
	if runs.Load() != 1 {
		t.Errorf("gated ran %d times", runs.Load())
	}
}

func TestVectorV21ATransferToNobody(t *testing.T) { // ours: an error that the model reads
	t.Parallel()
	f := newFabric(t)
	root := provide(t, handing("nobody", "root", "biling"), nil)
	billing := provide(t, []byte(`{"turns":[{"parts":[{"text":"billing here"}],"finishReason":"STOP"}]}`), nil)
	f.coordinate(newTeam(t, described("root", "", root.llm), newTeam(t, described("billing", "Writes bills.", billing.llm))))
	out := f.ask("root", "", "go")
	contains(t, "the answer", out.Text, "here again")
	for k, want := range []string{
		`there is no agent "nobody" to transfer to. agent_name is one of: billing`,
		`there is no agent "root" to transfer to. agent_name is one of: billing`,
		`there is no agent "biling" to transfer to. Did you mean billing? agent_name is one of: billing`,
	} {
		told, _ := root.response(k+2, 0)["error"].(string)
		contains(t, "what the model reads", told, want)
	}
	root.wantCount(4)
	billing.wantCount(0)
	if c := f.untilTurn("root", out.Session).Calls[0]; c.Verdict != protocol.VerdictRefuse || c.Refusal.Code != protocol.CodeSchemaViolation {
		t.Errorf("the call is recorded as %+v", c)
	}
	var body struct {
		SystemInstruction struct{ Parts []struct{ Text string } }
		Tools             []struct{ FunctionDeclarations []struct{ Name string } }
	}
	root.body(1, &body)
	instruction := body.SystemInstruction.Parts[0].Text
	contains(t, "the instruction", instruction, "Agent name: billing\nAgent description: Writes bills.")
	if len(body.Tools) != 1 || body.Tools[0].FunctionDeclarations[0].Name != llmagent.TransferTool {
		t.Errorf("the tools are %+v", body.Tools)
	}
}

func TestVectorV24ExitLoopEndsTheRunWithoutTheModel(t *testing.T) { // without a loop above it
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(`{"turns":[
		{"parts":[{"functionCall":{"name":"exit_loop"}}],"finishReason":"STOP"},
		{"parts":[{"functionCall":{"name":"plain"}},{"functionCall":{"name":"exit_loop"}}],"finishReason":"STOP"},
		{"parts":[{"text":"fresh"}],"finishReason":"STOP"}]}`), nil)
	exit, err := exitlooptool.New()
	if err != nil {
		t.Fatal(err)
	}
	cfg := described("v", "", p.llm, "plain")
	cfg.Tools = append(cfg.Tools, exit)
	f.coordinate(newTeam(t, cfg))
	out := f.ask("v", "", "go") // nobody serves a pool yet: exit_loop needs none
	if out.Problem != nil || out.Text != "" || len(out.Results) != 0 {
		t.Errorf("the run ended as %+v", out)
	}
	p.wantCount(1)
	first := []string{"user: T(go)", "v: FC(exit_loop)", "v: FR(exit_loop: {}) skip escalate"}
	f.wantStream("v", out.Session, first...)
	log := f.log("v", out.Session)
	if last := log[len(log)-1].Event; last.Turn == nil || last.Stop == nil || last.Stop.Kind != protocol.StopDone {
		t.Errorf("the turn and the stop are not one event: %+v", last)
	}

	f.work(answering("plain", `{"n":7}`, tool.Read))
	out = f.ask("v", out.Session, "again") // its siblings run to their end first
	if out.Problem != nil || len(out.Results) != 1 || string(out.Results[0].Value) != `{"n":7}` {
		t.Errorf("the run ended as %+v", out)
	}
	p.wantCount(2)
	second := append(first, "user: T(again)", "v: FC(plain) FC(exit_loop)", `v: FR(plain: {"n":7}) FR(exit_loop: {}) skip escalate`)
	f.wantStream("v", out.Session, second...)

	contains(t, "the next answer", f.ask("v", out.Session, "more").Text, "fresh")
	f.wantStream("v", out.Session, append(second, "user: T(more)", "v: T(fresh)")...)
	p.wantContents(3, `[
		{"role":"user","parts":[{"text":"go"}]},
		{"role":"model","parts":[{"functionCall":{"name":"exit_loop"}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"exit_loop","response":{"result":{}}}}]},
		{"role":"user","parts":[{"text":"again"}]},
		{"role":"model","parts":[{"functionCall":{"name":"plain"}},{"functionCall":{"name":"exit_loop"}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"plain","response":{"n":7}}},{"functionResponse":{"name":"exit_loop","response":{"result":{}}}}]},
		{"role":"user","parts":[{"text":"more"}]}]`)
}

func TestVectorV27TempStateLivesAsLongAsTheRun(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	root := provide(t, []byte(`{"turns":[
		{"parts":[{"functionCall":{"name":"set"}}],"finishReason":"STOP"},
		{"parts":[{"functionCall":{"name":"transfer_to_agent","args":{"agent_name":"sub"}}}],"finishReason":"STOP"}]}`), nil)
	sub := provide(t, []byte(`{"turns":[
		{"parts":[{"functionCall":{"name":"get"}}],"finishReason":"STOP"},
		{"parts":[{"text":"first"}],"finishReason":"STOP"},
		{"parts":[{"functionCall":{"name":"get"}}],"finishReason":"STOP"},
		{"parts":[{"text":"second"}],"finishReason":"STOP"}]}`), nil)
	f.coordinate(newTeam(t, described("root", "", root.llm, "set"), newTeam(t, described("sub", "", sub.llm, "get"))))
	seen := func(ctx tool.Context) map[string]any {
		all := map[string]any{}
		for key, v := range ctx.State().All() {
			all[key] = v
		}
		return all
	}
	f.work(
		mapped(t, functiontool.Config{Name: "set"}, func(ctx tool.Context, _ map[string]any) (map[string]any, error) {
			if err := ctx.State().Set("temp:note", "mine"); err != nil {
				return nil, err
			}
			return map[string]any{"ok": true}, ctx.State().Set("kept", "yours")
		}),
		mapped(t, functiontool.Config{Name: "get"}, func(ctx tool.Context, _ map[string]any) (map[string]any, error) {
			return map[string]any{"state": seen(ctx)}, nil
		}))
	out := f.ask("root", "", "go")
	f.ask("root", out.Session, "again")
	for n, want := range map[int]string{2: `{"state":{"kept":"yours","temp:note":"mine"}}`, 4: `{"state":{"kept":"yours"}}`} {
		got, err := json.Marshal(sub.response(n, 0))
		if err != nil || string(got) != want {
			t.Errorf("request %d reads %s, want %s", n, got, want)
		}
	}
}

// A worker's tool may hand over as well, also after people were asked, and its turn's other calls end first.
func TestAToolHandsOver(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	root := provide(t, []byte(`{"turns":[
		{"parts":[{"functionCall":{"name":"lost"}}],"finishReason":"STOP"},
		{"parts":[{"functionCall":{"name":"hand","id":"h"}},{"functionCall":{"name":"exit_loop"}}],"finishReason":"STOP"}]}`), nil)
	sub := provide(t, []byte(`{"turns":[{"parts":[{"text":"taken over"}],"finishReason":"STOP"}]}`), nil)
	exit, _ := exitlooptool.New()
	cfg := described("root", "", root.llm, "hand", "lost")
	cfg.Tools = append(cfg.Tools, exit)
	f.coordinate(newTeam(t, cfg, newTeam(t, described("sub", "", sub.llm))))
	to := func(name string) functiontool.Func[map[string]any, map[string]any] {
		return func(ctx tool.Context, _ map[string]any) (map[string]any, error) {
			ctx.Actions().TransferToAgent = name
			return map[string]any{"to": name}, nil
		}
	}
	f.work(
		mapped(t, functiontool.Config{Name: "hand", RequireConfirmation: true}, to("sub")),
		mapped(t, functiontool.Config{Name: "lost"}, to("nobody")))
	r := f.send(t.Context(), "root", "", "go")
	f.untilParked("root", r.Session)
	told, _ := root.response(2, 0)["error"].(string)
	contains(t, "what the model reads of a transfer to nobody", told, `nobody is named "nobody" to transfer to`)
	contains(t, "what the model reads of a transfer to nobody", told, "root, sub")
	f.wantReceipt("root", r.Session, f.open("root", r.Session, 1)[0].Confirmation.ID, "ann", yes, "", "")
	contains(t, "the answer", f.wait(r).Text, "taken over") // handing over goes before ending
	root.wantCount(2)
	sub.wantCount(1)
}

func TestTheRootSpeaksForAnAgentThatIsGone(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	root := provide(t, handing("sub"), nil)
	sub := provide(t, []byte(`{"turns":[{"parts":[{"text":"from below"}],"finishReason":"STOP"}]}`), nil)
	m := f.coordinate(newTeam(t, described("root", "", root.llm), newTeam(t, described("sub", "", sub.llm))))
	out := f.ask("root", "", "go")
	contains(t, "the answer", out.Text, "from below")
	m.stop()
	f.coordinate(newTeam(t, described("root", "", root.llm)))
	contains(t, "the next answer", f.ask("root", out.Session, "again").Text, "here again")
	sub.wantCount(1)
	root.wantContents(2, `[
		{"role":"user","parts":[{"text":"go"}]},
		{"role":"model","parts":[{"functionCall":{"name":"transfer_to_agent","args":{"agent_name":"sub"}}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"transfer_to_agent","response":{"result":{}}}}]},
		{"role":"user","parts":[{"text":"For context:"},{"text":"[sub] said: from below"}]},
		{"role":"user","parts":[{"text":"again"}]}]`)
}

func TestAnAgentThatMayNotPassOnIsNotAskedFirst(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	root := provide(t, handing("sub"), nil)
	sub := provide(t, []byte(`{"turns":[{"parts":[{"text":"from below"}],"finishReason":"STOP"}]}`), nil)
	below := described("sub", "", sub.llm)
	below.DisallowTransferToParent = true
	f.coordinate(newTeam(t, described("root", "", root.llm), newTeam(t, below)))
	out := f.ask("root", "", "go")
	contains(t, "the answer", out.Text, "from below")
	contains(t, "the next answer", f.ask("root", out.Session, "again").Text, "here again")
	sub.wantCount(1)
	var body struct{ Tools []any }
	if sub.body(1, &body); len(body.Tools) != 0 {
		t.Errorf("it is offered %v", body.Tools)
	}
}
