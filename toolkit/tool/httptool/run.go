package httptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/telemetry"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// idempotencyKey is spelled in lower case on purpose: see client.once.
const idempotencyKey = "idempotency-key"

// Run takes arguments as ADK passes them, a map[string]any, and checks them first.
func (e *endpoint) Run(ctx tool.Context, args any) (map[string]any, error) {
	m, ok := args.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("unexpected args type, got: %T", args)
	}
	raw, err := invoke.Encode(m)
	if err != nil {
		return nil, err
	}
	if raw, err = e.compiled.Normalize(raw); err != nil {
		return nil, errors.New(protocol.ProblemOf(err).Message)
	}
	out, err := e.RunJSON(ctx, raw)
	if err != nil {
		return nil, err
	}
	return invoke.Map(out)
}

// RunJSON sends one request, and those that its redirects ask for.
func (e *endpoint) RunJSON(ctx tool.Context, args json.RawMessage) (json.RawMessage, error) {
	secrets, err := e.secrets.open()
	if err != nil {
		return nil, err
	}
	r, err := e.request(ctx, args, secrets)
	if err != nil {
		return nil, errors.New(secrets.scrubber().text(err.Error()))
	}
	scrub := secrets.scrubber()
	out, err := e.exchange(ctx, r, scrub)
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, e.failure(err, scrub)
}

func (e *endpoint) request(ctx tool.Context, args json.RawMessage, secrets *opened) (request, error) {
	r := request{method: e.method, once: e.settings.Effect == tool.AtMostOnce}
	v, err := readValues(args, secrets)
	if err != nil {
		return r, err
	}
	if r.url, err = e.url.fill(v); err != nil {
		return r, err
	}
	if r.body, err = e.body.make(args, v); err != nil {
		return r, err
	}
	r.header = http.Header{
		"Accept":     {"application/json, text/plain;q=0.9, */*;q=0.1"},
		"User-Agent": {"toolfabric"},
	}
	if r.body != nil {
		r.header["Content-Type"] = []string{e.body.mime}
	}
	if e.settings.Effect != tool.Read {
		r.header[idempotencyKey] = []string{ctx.FunctionCallID()}
	}
	telemetry.Inject(ctx, propagation.HeaderCarrier(r.header))
	for i := range e.headers {
		if err := e.headers[i].set(r.header, v); err != nil {
			return r, err
		}
	}
	return r, setCookies(r.header, e.cookies, v)
}

func (e *endpoint) exchange(ctx tool.Context, r request, scrub scrubber) (json.RawMessage, error) {
	resp, err := e.client.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 400 {
		return nil, refusal(resp, time.Now(), scrub)
	}
	return e.answering.read(resp, scrub)
}

// failure is what the model is told. A call is tried again when that can help, and cannot do anything twice.
func (e *endpoint) failure(err error, scrub scrubber) error {
	text := errors.New(scrub.text(err.Error()))
	repeatable := e.settings.Effect != tool.AtMostOnce
	if broken, ok := errors.AsType[*transportError](err); ok {
		switch {
		case broken.permanent:
			return text
		case repeatable || !broken.sent:
			return tool.Retryable(text)
		}
		return fmt.Errorf("%w: the request was sent, and what it asks for may have been done", text)
	}
	if refused, ok := errors.AsType[*statusError](err); ok && repeatable && refused.again() {
		return tool.RetryableAfter(text, refused.after)
	}
	if errors.Is(err, errBody) && repeatable {
		return tool.Retryable(text)
	}
	return text
}
