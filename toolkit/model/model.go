// Package model is what a language model is to the toolkit: requests and responses in genai's vocabulary, whatever the
// vendor. Adapters live in the packages below it.
package model

import (
	"context"
	"iter"

	"google.golang.org/genai"
)

// LLM is a language model. It may be used by many sessions at once.
type LLM interface {
	// Name is the model's name, as in a request.
	Name() string
	// GenerateContent asks once. Without stream it yields one response. With stream it yields any number of responses with
	// Partial set, then exactly one without, which holds everything: text joined, calls complete and in the order they came,
	// every thought signature on its own part, and the usage. A partial response's calls are the start of a prefix of the
	// final one's calls: nothing is executed from it. An error ends the sequence; after an error or a cut stream there is
	// no final response. Errors are *protocol.Error: model_failed (worth asking again later), model_refused (not).
	GenerateContent(ctx context.Context, req *LLMRequest, stream bool) iter.Seq2[*LLMResponse, error]
}

// Provided is a model that tells who serves it, in OpenTelemetry's words for gen_ai.provider.name: "gcp.gemini", "openai".
type Provided interface {
	LLM
	Provider() string
}

// LLMRequest is one question to a model.
type LLMRequest struct {
	Model    string
	Contents []*genai.Content
	Config   *genai.GenerateContentConfig
	// Tools holds what ProcessRequest packed, by declared name. It is not sent.
	Tools map[string]any `json:"-"`
}

// LLMResponse is one answer, or a piece of one.
type LLMResponse struct {
	Content           *genai.Content                              `json:"content,omitempty"`
	CitationMetadata  *genai.CitationMetadata                     `json:"citationMetadata,omitempty"`
	GroundingMetadata *genai.GroundingMetadata                    `json:"groundingMetadata,omitempty"`
	UsageMetadata     *genai.GenerateContentResponseUsageMetadata `json:"usageMetadata,omitempty"`
	CustomMetadata    map[string]any                              `json:"customMetadata,omitempty"`
	LogprobsResult    *genai.LogprobsResult                       `json:"logprobsResult,omitempty"`
	ModelVersion      string                                      `json:"modelVersion,omitempty"`
	Partial           bool                                        `json:"partial,omitempty"`
	TurnComplete      bool                                        `json:"turnComplete,omitempty"`
	Interrupted       bool                                        `json:"interrupted,omitempty"`
	ErrorCode         string                                      `json:"errorCode,omitempty"`
	ErrorMessage      string                                      `json:"errorMessage,omitempty"`
	FinishReason      genai.FinishReason                          `json:"finishReason,omitempty"`
	AvgLogprobs       float64                                     `json:"avgLogprobs,omitempty"`
}
