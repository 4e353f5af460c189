package tooltest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/memory"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
	"github.com/toolfabric/toolfabric/toolkit/tooltest"
)

// One context under each name that ADK has had for it.
var (
	_ func(tool.Context, order) (map[string]any, error)      = refund
	_ func(agent.ToolContext, order) (map[string]any, error) = refund
	_ func(agent.Context, order) (map[string]any, error)     = refund
	_ agent.CallbackContext                                  = tool.Context(nil)
)

func TestAContextForTestsIsThatOfAWorker(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	ctx := tooltest.NewContext(t, ended, tooltest.ContextConfig{State: map[string]any{"n": 1, "big": int64(9007199254740993)}, UserContent: genai.NewContentFromText("hi", genai.RoleUser)})
	if ctx.AppName() != "app" || ctx.UserID() != "user" || ctx.SessionID() != "session" || ctx.AgentName() != "agent" || ctx.FunctionCallID() != "call" || ctx.Attempt() != 1 {
		t.Error("a name is missing")
	}
	if n, err := ctx.State().Get("n"); err != nil || n != 1.0 {
		t.Errorf("%v, %v", n, err)
	}
	if err := ctx.State().Set("m", "x"); err != nil || ctx.Actions().StateDelta["m"] != "x" {
		t.Errorf("%v, %v", ctx.Actions(), err)
	}
	if err := ctx.RequestConfirmation(strings.Repeat("x", 5000), nil); err == nil || ctx.Asked() != nil {
		t.Error("a hint that is too long is taken")
	}
	if err := ctx.RequestConfirmation("sure?", order{5}); err != nil || ctx.Asked().Hint != "sure?" || string(ctx.Asked().Payload) != `{"amount":5}` {
		t.Errorf("%+v, %v", ctx.Asked(), err)
	}
	ctx.Progress(50, "half")
	if told := ctx.Told(); len(told) != 1 || told[0].Percent != 50 || told[0].Message != "half" {
		t.Errorf("%+v", told)
	}
	ctx.Logger().Info("here")
	if ctx.ToolConfirmation() != nil || ctx.ResultHandle() == "" || ctx.UserContent().Parts[0].Text != "hi" {
		t.Error("confirmation, handle or message")
	}
	if _, err := ctx.SearchMemory(t.Context(), "x"); err == nil {
		t.Error("there is a memory")
	}
	if _, err := ctx.Artifacts().List(t.Context()); err == nil {
		t.Error("there are artifacts")
	}
	cause := errors.New("enough")
	if cancel(cause); ctx.Err() == nil || context.Cause(ctx) != cause {
		t.Error("it does not end")
	}
}

func TestAContextForTestsTellsWhatItIsGiven(t *testing.T) {
	found := &memory.SearchResponse{}
	ctx := tooltest.NewContext(t, t.Context(), tooltest.ContextConfig{
		App: "shop", Call: "c1", Attempt: 3, Confirmation: &toolconfirmation.ToolConfirmation{Hint: "sure?", Confirmed: true, Payload: map[string]any{"amount": 4}},
		Memory: func(context.Context, string) (*memory.SearchResponse, error) { return found, nil },
	})
	word := ctx.ToolConfirmation()
	if ctx.AppName() != "shop" || ctx.FunctionCallID() != "c1" || ctx.Attempt() != 3 || !word.Confirmed || word.Hint != "sure?" || word.Payload.(map[string]any)["amount"] != 4.0 {
		t.Errorf("%s, %s, %+v", ctx.AppName(), ctx.FunctionCallID(), word)
	}
	if got, err := ctx.SearchMemory(t.Context(), "x"); got != found || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if out, err := refund(ctx, order{5}); err != nil || out["refunded"] != 5 {
		t.Errorf("%v, %v", out, err)
	}
}
