package view

import (
	"encoding/json"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/session"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

// question is one wrapper call: a person is asked whether a call may run.
func question(c *calling) *genai.Part {
	call := &genai.FunctionCall{ID: c.call.ID, Name: c.call.Tool, Args: object(c.args)}
	return &genai.Part{
		ThoughtSignature: c.signature,
		FunctionCall: &genai.FunctionCall{ID: c.asks.ID, Name: toolconfirmation.FunctionCallName, Args: map[string]any{
			"originalFunctionCall": call, "toolConfirmation": toolConfirmation(c.asks),
		}},
	}
}

func toolConfirmation(q *protocol.Confirmation) toolconfirmation.ToolConfirmation {
	return toolconfirmation.ToolConfirmation{Hint: q.Hint, Payload: value(q.Payload)}
}

// terms is what ADK's protocol has no room for.
func terms(q *protocol.Confirmation, reply func(confirmation string) string) session.Terms {
	t := session.Terms{
		Origin: q.Origin, Digest: q.Digest, Expires: millis(q.Expires), Need: q.Quorum(), NotRequester: q.NotRequester,
	}
	if reply != nil {
		t.Reply = reply(q.ID)
	}
	return t
}

// decided is a person's decision as ADK's clients send it.
func decided(d *protocol.FoldedDecision) *genai.Part {
	response := map[string]any{"confirmed": d.Confirmed}
	if d.Hint != "" {
		response["hint"] = d.Hint
	}
	for key, raw := range map[string]json.RawMessage{"payload": d.Payload, "args": d.Args} {
		if len(raw) > 0 {
			response[key] = value(raw)
		}
	}
	return &genai.Part{FunctionResponse: &genai.FunctionResponse{
		ID: d.Confirmation, Name: toolconfirmation.FunctionCallName, Response: response,
	}}
}

// placeholder is what ADK shows in the place of a response while people are asked.
func placeholder(tool string) map[string]any {
	return map[string]any{"error": `error tool "` + tool + `" requires confirmation, please approve or reject`}
}
