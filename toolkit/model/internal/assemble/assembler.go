package assemble

import (
	"maps"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

// Assembler collects one answer. The zero value is ready; it serves one goroutine and one answer.
type Assembler struct {
	parts  []*genai.Part
	calls  []*genai.Part // those of parts that are calls, complete and in order
	open   *openCall
	finish genai.FinishReason
	detail string // the provider's words about the finish
	final  model.LLMResponse
}

// Add takes the next piece. It returns what the piece adds, as a partial response, or nil when there is nothing to show:
// text is what this piece brought; calls, if it completed one, are all complete calls so far, which is a prefix of the
// final answer's. It returns an *Error of code model_refused when the provider blocked the question and model_failed when
// the pieces do not fit together; the answer is then lost.
func (a *Assembler) Add(r *genai.GenerateContentResponse) (*model.LLMResponse, error) {
	if f := r.PromptFeedback; f != nil && f.BlockReason != "" && f.BlockReason != genai.BlockedReasonUnspecified {
		return nil, protocol.Errorf(protocol.CodeModelRefused, "the provider blocked the prompt: %s%s", f.BlockReason, colon(f.BlockReasonMessage))
	}
	if r.UsageMetadata != nil {
		a.final.UsageMetadata = r.UsageMetadata
	}
	if r.ModelVersion != "" {
		a.final.ModelVersion = r.ModelVersion
	}
	if len(r.Candidates) == 0 || r.Candidates[0] == nil {
		return nil, nil
	}
	c := r.Candidates[0]
	a.note(c)
	if c.Content == nil {
		return nil, nil
	}
	calls := len(a.calls)
	var shown []*genai.Part
	for _, p := range c.Content.Parts {
		text, err := a.part(p)
		if err != nil {
			return nil, err
		}
		if text != nil {
			shown = append(shown, text)
		}
	}
	if len(a.calls) > calls {
		for _, p := range a.calls {
			shown = append(shown, copyCall(p))
		}
	}
	if len(shown) == 0 {
		return nil, nil
	}
	return &model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: shown}, Partial: true}, nil
}

// note keeps what a candidate says about the answer as a whole. The last word on each matter counts.
func (a *Assembler) note(c *genai.Candidate) {
	if c.FinishReason != "" {
		a.finish, a.detail = c.FinishReason, c.FinishMessage
	}
	if c.CitationMetadata != nil {
		a.final.CitationMetadata = c.CitationMetadata
	}
	if c.GroundingMetadata != nil {
		a.final.GroundingMetadata = c.GroundingMetadata
	}
	if c.LogprobsResult != nil {
		a.final.LogprobsResult = c.LogprobsResult
	}
	if c.AvgLogprobs != 0 {
		a.final.AvgLogprobs = c.AvgLogprobs
	}
}

// part files one part. It returns a copy to show at once, or nil for a call, which is shown when it is complete.
func (a *Assembler) part(p *genai.Part) (*genai.Part, error) {
	switch {
	case p == nil:
		return nil, nil
	case p.FunctionCall != nil:
		return nil, a.call(p)
	case !isText(p):
		shown := *p
		a.parts = append(a.parts, p)
		return &shown, nil
	case p.Text == "" && len(p.ThoughtSignature) == 0:
		return nil, nil
	}
	shown := *p
	if n := len(a.parts); n > 0 && joins(a.parts[n-1], p) {
		a.parts[n-1].Text += p.Text
		return &shown, nil
	}
	kept := *p
	a.parts = append(a.parts, &kept)
	return &shown, nil
}

// joins reports whether text part b continues a. A signature belongs to exactly one part, so a signed part never joins.
func joins(a, b *genai.Part) bool {
	return isText(a) && a.Thought == b.Thought && len(a.ThoughtSignature) == 0 && len(b.ThoughtSignature) == 0
}

// isText reports whether p holds text and nothing else but a thought mark and a signature.
func isText(p *genai.Part) bool {
	return p.MediaResolution == nil && p.CodeExecutionResult == nil && p.ExecutableCode == nil && p.FileData == nil &&
		p.FunctionCall == nil && p.FunctionResponse == nil && p.InlineData == nil && p.VideoMetadata == nil &&
		p.ToolCall == nil && p.ToolResponse == nil && len(p.PartMetadata) == 0 && p.AudioTranscription == nil &&
		p.MediaProcessing == "" && p.SpeechMetadata == nil
}

// Final is the whole answer. It returns an *Error of code model_failed when the answer is not complete: no finish reason
// came, a call lacks its end, or the provider gave up on it; and model_refused when the provider withheld it.
func (a *Assembler) Final() (*model.LLMResponse, error) {
	switch a.finish {
	case "", genai.FinishReasonUnspecified:
		return nil, protocol.Errorf(protocol.CodeModelFailed, "the model's answer broke off before its end")
	case genai.FinishReasonStop, genai.FinishReasonMaxTokens:
	case genai.FinishReasonMalformedFunctionCall, genai.FinishReasonUnexpectedToolCall, genai.FinishReasonTooManyToolCalls,
		genai.FinishReasonOther, genai.FinishReasonContinuation:
		return nil, protocol.Errorf(protocol.CodeModelFailed, "the model gave no usable answer: %s%s", a.finish, colon(a.detail))
	default:
		return nil, protocol.Errorf(protocol.CodeModelRefused, "the provider withheld the answer: %s%s", a.finish, colon(a.detail))
	}
	if a.open != nil {
		return nil, protocol.Errorf(protocol.CodeModelFailed, "the model's answer ended inside its call of %q", a.open.name())
	}
	r := a.final
	r.Content = &genai.Content{Role: genai.RoleModel, Parts: a.parts}
	r.FinishReason = a.finish
	r.TurnComplete = true
	return &r, nil
}

// copyCall copies a call part so far that its reader may set the call's id without reaching the final answer.
func copyCall(p *genai.Part) *genai.Part {
	part, call := *p, *p.FunctionCall
	call.Args = maps.Clone(call.Args)
	part.FunctionCall = &call
	return &part
}

func colon(detail string) string {
	if detail == "" {
		return ""
	}
	return ": " + detail
}
