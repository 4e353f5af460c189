package turn

import (
	"errors"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

// blocked are the reasons, of a prompt or of a finished answer, that mean the provider's policy said no: asking again
// changes nothing.
var blocked = map[string]bool{
	string(genai.FinishReasonSafety): true, string(genai.FinishReasonRecitation): true, string(genai.FinishReasonLanguage): true,
	string(genai.FinishReasonBlocklist): true, string(genai.FinishReasonProhibitedContent): true, string(genai.FinishReasonSPII): true,
	string(genai.FinishReasonImageSafety): true, string(genai.FinishReasonImageProhibitedContent): true,
	string(genai.FinishReasonImageRecitation): true, string(genai.BlockedReasonJailbreak): true, string(genai.BlockedReasonModelArmor): true,
}

// checkResponse tells an answer from what is none.
func checkResponse(r *model.LLMResponse) error {
	if r == nil {
		return protocol.Errorf(protocol.CodeModelFailed, "the model gave no answer")
	}
	if r.Partial || r.Interrupted {
		return protocol.Errorf(protocol.CodeModelFailed, "the model's answer was cut off: nothing of it was executed")
	}
	reason := r.ErrorCode
	if reason == "" && blocked[string(r.FinishReason)] {
		reason = string(r.FinishReason)
	}
	if blocked[reason] {
		return protocol.Errorf(protocol.CodeModelRefused, "the provider blocked the request or its answer (%s)%s", reason, tail(r.ErrorMessage))
	}
	if reason != "" {
		return protocol.Errorf(protocol.CodeModelFailed, "the model failed (%s)%s", reason, tail(r.ErrorMessage))
	}
	switch r.FinishReason {
	case genai.FinishReasonMalformedFunctionCall, genai.FinishReasonUnexpectedToolCall, genai.FinishReasonTooManyToolCalls:
		return protocol.Errorf(protocol.CodeModelFailed, "the model made a call that its provider cannot read (%s)%s", r.FinishReason, tail(r.ErrorMessage))
	}
	if r.Content == nil || !answers(r.Content) {
		return protocol.Errorf(protocol.CodeModelFailed, "the model answered with nothing (finish reason %q)%s", r.FinishReason, tail(r.ErrorMessage))
	}
	for _, f := range functionCalls(r.Content) {
		if f.Name == "" {
			return protocol.Errorf(protocol.CodeModelFailed, "the model made a call without a name")
		}
		if len(f.PartialArgs) > 0 || f.WillContinue != nil && *f.WillContinue {
			return protocol.Errorf(protocol.CodeModelFailed, "the model's call to %s was cut off: nothing was executed", f.Name)
		}
	}
	return nil
}

// answers reports whether a content says or asks for anything. Thoughts alone do not.
func answers(c *genai.Content) bool {
	for _, p := range full(c.Parts) {
		if !p.Thought && p.FunctionResponse == nil && (p.Text != "" || p.FunctionCall != nil || p.InlineData != nil || p.FileData != nil ||
			p.ExecutableCode != nil || p.CodeExecutionResult != nil || p.ToolCall != nil) {
			return true
		}
	}
	return false
}

func tail(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

// public is what of err may be shown.
func public(err error) string {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e.Public
	}
	return err.Error()
}
