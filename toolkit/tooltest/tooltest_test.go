package tooltest_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
	"github.com/toolfabric/toolfabric/toolkit/tooltest"
)

type order struct {
	Amount int `json:"amount"`
}

func made(t *testing.T, cfg functiontool.Config, f functiontool.Func[order, map[string]any]) func() tool.Tool {
	cfg.Name, cfg.Description = "refund", "Refunds an order."
	return func() tool.Tool {
		made, err := functiontool.New(cfg, f)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
}

func refund(ctx tool.Context, in order) (map[string]any, error) {
	if in.Amount < 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return map[string]any{"refunded": in.Amount}, nil
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }

var no = &protocol.Confirmed{ID: "k"}

const rejected = `{"error":"error tool \"refund\" call is rejected"}`

func TestAGatedTool(t *testing.T) {
	cases := []tooltest.Case{
		{Name: "agreed", Args: `{"amount":5}`, Want: `{"refunded":5}`},
		{Name: "refused", Args: `{"amount":5}`, Confirmation: no, Outcome: protocol.OutcomeDenied, Want: rejected},
		{Name: "slow", Args: `{"amount":-1}`, Blocks: true},
		{Name: "bad arguments", Args: `{"amount":"5"}`, Refused: true},
	}
	t.Run("by flag", func(t *testing.T) {
		tooltest.Run(t, made(t, functiontool.Config{RequireConfirmation: true}, refund), cases...)
	})
	t.Run("by wrapper", func(t *testing.T) {
		mk := made(t, functiontool.Config{}, refund)
		tooltest.Run(t, func() tool.Tool { return tool.ToolWithConfirmation(mk(), true, nil) }, cases...)
	})
}

func TestAToolWithAProvider(t *testing.T) {
	large := func(in order) bool { return in.Amount > 100 }
	tooltest.Run(t, made(t, functiontool.Config{RequireConfirmation: true, RequireConfirmationProvider: large}, refund),
		tooltest.Case{Name: "small", Args: `{"amount":100}`, Want: `{"refunded":100}`},
		tooltest.Case{Name: "large", Args: `{"amount":101}`, Outcome: protocol.OutcomeAsks, Asks: &protocol.Ask{Hint: toolconfirmation.Hint("refund"), Provider: true}},
		tooltest.Case{Name: "agreed", Args: `{"amount":101}`, Round: 1, Confirmation: &protocol.Confirmed{ID: "k", Confirmed: true}, Want: `{"refunded":101}`},
		tooltest.Case{Name: "refused", Args: `{"amount":101}`, Round: 1, Confirmation: no, Outcome: protocol.OutcomeDenied, Want: rejected},
		tooltest.Case{Name: "bad arguments", Args: `{}`, Refused: true},
	)
}

// stages asks for an amount, then for a second person, and keeps the amount in the session's state in between.
func stages(ctx tool.Context, in order) (map[string]any, error) {
	word := ctx.ToolConfirmation()
	if word == nil {
		return map[string]any{"status": "waiting"}, ctx.RequestConfirmation("how much?", order{in.Amount})
	}
	if !word.Confirmed {
		return map[string]any{"status": "refused"}, nil
	}
	if amount, err := ctx.State().Get("refund.amount"); err == nil {
		return map[string]any{"refunded": amount}, nil
	}
	granted, ok := word.Payload.(map[string]any)
	if !ok {
		return nil, errors.New("the approver named no amount")
	}
	if err := ctx.State().Set("refund.amount", granted["amount"]); err != nil {
		return nil, err
	}
	return nil, ctx.RequestConfirmation("a second person?", nil)
}

func TestAToolThatAsksByItselfTwice(t *testing.T) {
	tooltest.Run(t, made(t, functiontool.Config{}, stages),
		tooltest.Case{Name: "asks", Args: `{"amount":9}`, Outcome: protocol.OutcomeAsks, Want: `{"status":"waiting"}`,
			Asks: &protocol.Ask{Hint: "how much?", Payload: raw(`{"amount":9}`)}},
		tooltest.Case{Name: "is told of a refusal", Args: `{"amount":9}`, Round: 1, Confirmation: no, Want: `{"status":"refused"}`},
		tooltest.Case{Name: "gets no amount", Args: `{"amount":9}`, Round: 1, Confirmation: &protocol.Confirmed{ID: "k", Confirmed: true},
			Outcome: protocol.OutcomeFailed, Want: `{"error":"the approver named no amount"}`},
		tooltest.Case{Name: "asks again", Args: `{"amount":9}`, Round: 1, Confirmation: &protocol.Confirmed{ID: "k", Confirmed: true, Payload: raw(`{"amount":5}`)},
			Outcome: protocol.OutcomeAsks, Asks: &protocol.Ask{Hint: "a second person?"}, Sets: map[string]json.RawMessage{"refund.amount": raw(`5`)}},
		tooltest.Case{Name: "ends", Args: `{"amount":9}`, Round: 2, Confirmation: &protocol.Confirmed{ID: "k2", Confirmed: true},
			State: map[string]json.RawMessage{"refund.amount": raw(`5`)}, Want: `{"refunded":5}`},
	)
}

func TestALongRunningTool(t *testing.T) {
	tooltest.Run(t, made(t, functiontool.Config{IsLongRunning: true}, func(ctx tool.Context, in order) (map[string]any, error) {
		switch {
		case in.Amount == 0:
			return nil, nil
		case in.Amount < 0:
			return nil, errors.New("nothing to refund")
		case in.Amount > 100:
			return map[string]any{"status": "asking"}, ctx.RequestConfirmation("so much?", nil)
		}
		return map[string]any{"ticket": ctx.ResultHandle() != ""}, nil
	}),
		tooltest.Case{Name: "silent", Args: `{"amount":0}`},
		tooltest.Case{Name: "with a ticket", Args: `{"amount":1}`, Want: `{"ticket":true}`},
		tooltest.Case{Name: "failed", Args: `{"amount":-1}`, Outcome: protocol.OutcomeFailed, Want: `{"error":"nothing to refund"}`},
		tooltest.Case{Name: "asks first", Args: `{"amount":101}`, Outcome: protocol.OutcomeAsks, Want: `{"status":"asking"}`, Asks: &protocol.Ask{Hint: "so much?"}},
	)
}
