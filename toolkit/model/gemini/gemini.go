package gemini

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/model/internal/assemble"
)

// Config is what New needs.
type Config struct {
	Model      string       // such as "gemini-2.5-flash"; required
	APIKey     string       // empty: GOOGLE_API_KEY, else GEMINI_API_KEY
	BaseURL    string       // empty: GOOGLE_GEMINI_BASE_URL, else Google's
	HTTPClient *http.Client // nil: http.DefaultTransport; its Transport is wrapped, the client itself is not changed
	Retry      Retry
	Logger     *slog.Logger // hears of tools that are left out; nil: slog.Default

	options genai.HTTPOptions // what NewModel was given beside
}

// Retry bounds how often one question is asked. Only a question of which no byte has been answered is asked again, after
// 408, 429, 5xx or a network failure, with the delay the server asks for or a growing one with jitter. The context of the
// request bounds everything.
type Retry struct {
	Attempts     int           // first one included; 0 is 5, 1 is no retry
	InitialDelay time.Duration // 0 is 500 ms
	MaxDelay     time.Duration // of our own choice; 0 is 15 s
	MaxElapsed   time.Duration // all attempts and waits; a server's delay beyond it ends the retries; 0 is 2 minutes
}

func (c *Config) validate() error {
	if c.Model == "" {
		return protocol.Errorf(protocol.CodeUsage, "gemini: no model is named")
	}
	for _, name := range []string{"GOOGLE_API_KEY", "GEMINI_API_KEY"} {
		if c.APIKey == "" {
			c.APIKey = os.Getenv(name)
		}
	}
	if c.APIKey == "" {
		return protocol.Errorf(protocol.CodeUsage, "gemini: there is no API key: set GOOGLE_API_KEY or GEMINI_API_KEY")
	}
	if c.HTTPClient == nil {
		c.HTTPClient = &http.Client{}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	r := &c.Retry
	if r.Attempts < 0 || r.InitialDelay < 0 || r.MaxDelay < 0 || r.MaxElapsed < 0 {
		return protocol.Errorf(protocol.CodeUsage, "gemini: the retry settings are not negative")
	}
	r.Attempts = orDefault(r.Attempts, 5)
	r.InitialDelay = orDefault(r.InitialDelay, 500*time.Millisecond)
	r.MaxDelay = orDefault(r.MaxDelay, 15*time.Second)
	r.MaxElapsed = orDefault(r.MaxElapsed, 2*time.Minute)
	return nil
}

func orDefault[T int | time.Duration](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

// New makes a model. It asks nothing yet. It returns an *Error of code usage when the configuration is incomplete.
func New(ctx context.Context, cfg Config) (model.LLM, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	hc := *cfg.HTTPClient
	hc.Transport = &transport{base: hc.Transport}
	options := cfg.options
	options.BaseURL, options.RetryOptions = cfg.BaseURL, nil
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: cfg.APIKey, Backend: genai.BackendGeminiAPI, HTTPClient: &hc, HTTPOptions: options,
	})
	if err != nil {
		// The SDK prints its whole configuration, the key included.
		return nil, protocol.Errorf(protocol.CodeUsage, "gemini: %s", redact(err.Error(), cfg.APIKey))
	}
	return &llm{cfg: cfg, client: client}, nil
}

type llm struct {
	cfg    Config
	client *genai.Client
}

func (m *llm) Name() string { return m.cfg.Model }

// Provider implements model.Provided.
func (m *llm) Provider() string { return "gcp.gemini" }

// GenerateContent implements model.LLM.
func (m *llm) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		q, err := m.prepare(req)
		if err != nil {
			yield(nil, err)
			return
		}
		final, err := m.retry(ctx, func(ctx context.Context, a *attempt) (*model.LLMResponse, error) {
			return m.ask(ctx, a, q, stream, func(r *model.LLMResponse) bool { return yield(r, nil) })
		})
		switch {
		case errors.Is(err, errStopped):
		case err != nil:
			yield(nil, err)
		default:
			yield(final, nil)
		}
	}
}

// errStopped says that whoever reads the answer has stopped.
var errStopped = errors.New("the reader stopped")

// ask is one attempt. Errors are as they came; retry gives the verdict on them.
func (m *llm) ask(ctx context.Context, a *attempt, q *question, stream bool, show func(*model.LLMResponse) bool) (final *model.LLMResponse, err error) {
	// The SDK asserts types of what the server sent without looking.
	defer func() {
		if p := recover(); p != nil {
			if a.showing {
				panic(p) // the reader's own
			}
			err = fmt.Errorf("the answer has an unknown form: %v", p)
		}
	}()
	var answer assemble.Assembler
	take := func(r *genai.GenerateContentResponse) error {
		partial, err := answer.Add(r)
		if err != nil {
			return err
		}
		a.answered = true
		if !stream || partial == nil {
			return nil
		}
		q.restore(partial)
		a.showing = true
		goOn := show(partial)
		a.showing = false
		if !goOn {
			return errStopped
		}
		return nil
	}
	if stream {
		for r, err := range m.client.Models.GenerateContentStream(ctx, q.model, q.contents, q.config) {
			if err == nil {
				err = take(r)
			}
			if err != nil {
				return nil, err
			}
		}
	} else {
		r, err := m.client.Models.GenerateContent(ctx, q.model, q.contents, q.config)
		if err == nil {
			err = take(r)
		}
		if err != nil {
			return nil, err
		}
	}
	if a.broken != nil {
		return nil, a.broken
	}
	if final, err = answer.Final(); err != nil {
		return nil, err
	}
	q.restore(final)
	return final, nil
}
