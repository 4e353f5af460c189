package invoke_test

import (
	"context"
	"errors"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

func TestAnUnknownOutcomeIsNoFailure(t *testing.T) {
	lost := tool.OutcomeUnknown(errors.New("the connection broke"))
	for name, c := range map[string]struct {
		effect  tool.Effect
		err     error
		outcome protocol.Outcome
		code    protocol.Code
	}{
		"at most once": {tool.AtMostOnce, lost, protocol.OutcomeUnknown, protocol.CodeOutcomeUnknown},
		"idempotent":   {tool.Idempotent, lost, protocol.OutcomeUnknown, protocol.CodeOutcomeUnknown},
		"read":         {tool.Read, lost, protocol.OutcomeFailed, ""},
		"retryable":    {tool.AtMostOnce, tool.Retryable(errors.New("the connection broke")), protocol.OutcomeFailed, ""},
	} {
		it := mustNew(t, &stub{name: "x", set: tool.Settings{Effect: c.effect}, run: func(tool.Context, any) (map[string]any, error) { return nil, c.err }})
		r, err := it.Run(t.Context(), call(`{}`))
		if r.Outcome != c.outcome || r.Code != c.code || string(r.Value) != `{"error":"the connection broke"}` || err == nil {
			t.Errorf("%s: got %s, %q, %s, another attempt: %v", name, r.Outcome, r.Code, r.Value, err)
		}
		taken(t, r)
	}
}

func TestAToolKeepsBytesOutOfItsResult(t *testing.T) {
	var kept []byte
	it := ready(t, func(ctx tool.Context, _ any) (map[string]any, error) {
		ref, err := ctx.(tool.Keeper).Keep([]byte("png"), "image/png")
		return map[string]any{"image": ref.Name}, err
	})
	c := call(`{}`)
	if r, _ := it.Run(t.Context(), c); r.Outcome != protocol.OutcomeFailed {
		t.Errorf("without a store: got %s %s", r.Outcome, r.Value)
	}
	c.Keep = func(_ context.Context, data []byte, mediaType string) (protocol.Ref, error) {
		kept = data
		return protocol.Ref{Name: "n", Type: mediaType}, nil
	}
	if r, _ := it.Run(t.Context(), c); string(r.Value) != `{"image":"n"}` || string(kept) != "png" {
		t.Errorf("got %s, kept %q", r.Value, kept)
	}
}
