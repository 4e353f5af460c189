package gemini

import (
	"context"
	"os"
	"slices"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

// NewModel is New under the name and with the arguments of ADK. A nil cfg takes everything from the environment, as Config
// says. Retries are those of Config; cfg.HTTPOptions.RetryOptions is left aside. It returns code unsupported for Vertex AI,
// also when GOOGLE_GENAI_USE_VERTEXAI asks for it: this version does not speak it.
func NewModel(ctx context.Context, modelName string, cfg *genai.ClientConfig) (model.LLM, error) {
	if cfg == nil {
		cfg = &genai.ClientConfig{}
	}
	if asksVertex(cfg) {
		return nil, protocol.Errorf(protocol.CodeUnsupported, "gemini: model %s is asked for over Vertex AI, which is not part of this version; use an API key (GOOGLE_API_KEY) and no Vertex settings", modelName)
	}
	return New(ctx, Config{
		Model: modelName, APIKey: cfg.APIKey, HTTPClient: cfg.HTTPClient, BaseURL: cfg.HTTPOptions.BaseURL, options: cfg.HTTPOptions,
	})
}

func asksVertex(cfg *genai.ClientConfig) bool {
	if cfg.Backend != genai.BackendUnspecified {
		return cfg.Backend != genai.BackendGeminiAPI
	}
	wanted := func(name string) bool { return slices.Contains([]string{"1", "true", "TRUE", "True"}, os.Getenv(name)) }
	return cfg.Credentials != nil || cfg.Project != "" || wanted("GOOGLE_GENAI_USE_VERTEXAI") || wanted("GOOGLE_GENAI_USE_ENTERPRISE")
}
