package gemini

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
)

// maxMessage bounds what of a provider's message is kept, in bytes.
const maxMessage = 2000

// judge decides what a failed attempt means.
func (m *llm) judge(err error, a *attempt) *failure {
	if e, ok := errors.AsType[*protocol.Error](err); ok { // the answer itself was no good
		return &failure{err: e}
	}
	cause := errors.New(redact(err.Error(), m.cfg.APIKey))
	if e, ok := errors.AsType[genai.APIError](err); ok {
		code := protocol.CodeModelRefused
		if transient(e.Code) {
			code = protocol.CodeModelFailed
		}
		text := redact(fmt.Sprintf("gemini answered %d %s: %s", e.Code, e.Status, e.Message), m.cfg.APIKey)
		delay := retryDelay(e.Details)
		if delay == 0 {
			delay = a.retryAfter
		}
		return &failure{err: protocol.Wrap(cause, code, "%s", text), again: code == protocol.CodeModelFailed && !a.answered, delay: delay}
	}
	switch {
	case !a.sent:
		return &failure{err: protocol.Wrap(cause, protocol.CodeModelRefused, "gemini cannot be asked this: %s", cause)}
	case a.broken != nil:
		cause = errors.New(redact(a.broken.Error(), m.cfg.APIKey))
		return &failure{err: protocol.Wrap(cause, protocol.CodeModelFailed, "the model's answer broke off before its end"), again: !a.answered && !errors.Is(a.broken, errTooLarge)}
	case a.status == 0:
		return &failure{err: protocol.Wrap(cause, protocol.CodeModelFailed, "gemini cannot be reached"), again: true}
	}
	return &failure{err: protocol.Wrap(cause, protocol.CodeModelFailed, "gemini's answer cannot be read")}
}

func transient(status int) bool {
	return status == 0 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= 500 && status != http.StatusNotImplemented
}

// retryDelay is the delay of a google.rpc.RetryInfo among an error's details; 0 when there is none.
func retryDelay(details []map[string]any) time.Duration {
	for _, d := range details {
		if kind, _ := d["@type"].(string); !strings.HasSuffix(kind, "google.rpc.RetryInfo") {
			continue
		}
		text, _ := d["retryDelay"].(string)
		if delay, err := time.ParseDuration(text); err == nil && delay > 0 {
			return delay
		}
	}
	return 0
}

// redact cuts a provider's text to a length and takes the key out of it.
func redact(text, key string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, key, "(the API key)"), "�")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "..."
	}
	return text
}
