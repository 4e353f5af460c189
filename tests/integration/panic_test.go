package integration

import (
	"encoding/json"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

func TestPanicOfAnInstructionProviderFailsTheRun(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	m := holding()
	close(m.release)
	a, err := llmagent.New(llmagent.Config{Name: "app", Model: m, InstructionProvider: func(ctx agent.ReadonlyContext) (string, error) {
		if ctx.UserContent().Parts[0].Text == "panic" {
			panic("no instruction")
		}
		return "Answer.", nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	f.coordinate(a)
	out := f.ask("app", "s1", "panic")
	if out.Problem == nil || out.Problem.Code != protocol.CodeModelFailed {
		t.Errorf("the run ended with %+v, want model_failed", out.Problem)
	}
	contains(t, "the next answer", f.ask("app", "s1", "well").Text, "answer to well")
}

func TestPanicOfAToolIsAnsweredToTheModel(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(twoSteps), nil)
	f.coordinate(newAgent(t, "app", p.llm, "slow"))
	s := &stub{name: "slow", do: func(tool.Context, json.RawMessage) (json.RawMessage, error) { panic("broken") }}
	f.work(s)
	out := f.ask("app", "", "go")
	contains(t, "the answer", out.Text, "finished")
	s.wantRuns(t, 1)
	if a := firstAnswer(f.log("app", out.Session), 0); a.Code != protocol.CodeToolPanic {
		t.Errorf("the call ended as %s with code %s, want tool_panic", a.Outcome, a.Code)
	}
	text, _ := p.response(2, 0)["error"].(string)
	contains(t, "the response", text, "panicked")
}
