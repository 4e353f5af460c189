package httptool

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/toolfabric/toolfabric/protocol"
)

const (
	maxErrorBody = 2 << 10 // how much of the body of a refusal is shown, in bytes
	maxHead      = 512     // how much of a body that cannot be answered is shown
)

// maxRetryAfter is the longest pause that is waited for; the model is told of a longer one.
const maxRetryAfter = time.Minute

// statusError is a response that says no.
type statusError struct {
	status int
	after  time.Duration // what Retry-After asks for; 0 when it is not there
	text   string
}

func (e *statusError) Error() string { return e.text }

// again reports whether the same request may be answered otherwise soon.
func (e *statusError) again() bool {
	switch e.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return e.after <= maxRetryAfter
	}
	return false
}

// refusal reads a response whose status is 400 or more.
func refusal(resp *http.Response, now time.Time, scrub scrubber) *statusError {
	e := &statusError{status: resp.StatusCode, after: retryAfter(resp.Header.Get("Retry-After"), now)}
	e.text = fmt.Sprintf("HTTP %d", resp.StatusCode)
	if name := http.StatusText(resp.StatusCode); name != "" {
		e.text += " " + name
	}
	if e.after > 0 {
		e.text += fmt.Sprintf(", try again in %s", e.after)
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody+1))
	kind, charset := mediaType(resp.Header)
	if isText(kind) || isJSON(kind) || kind == "" && utf8.Valid(whole(body)) {
		text, cut := decode(whole(body[:min(len(body), maxErrorBody)]), charset), len(body) > maxErrorBody
		if cut {
			text = scrub.cut(text)
		}
		text = strings.TrimSpace(scrub.text(text))
		if text != "" {
			e.text += ": " + text
		}
		if cut {
			e.text += " ..."
		}
	}
	return e
}

// retryAfter reads seconds or a date.
func retryAfter(text string, now time.Time) time.Duration {
	if s, err := strconv.Atoi(text); err == nil && s >= 0 && s < 1<<31 {
		return time.Duration(s) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now).Round(time.Second)
	}
	return 0
}

// answering says what of a response is answered.
type answering struct {
	limit  int
	binary []string // media types that are answered as data: URIs
}

var errBody = errors.New("the response broke off")

// read makes the answer of a response: JSON as it is, text as a string, what has no body as its status and the headers that
// matter. Decompressed bytes count.
func (a answering) read(resp *http.Response, scrub scrubber) (json.RawMessage, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(a.limit)+1))
	if err != nil {
		return nil, errBody
	}
	if len(body) == 0 {
		return empty(resp, scrub)
	}
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, fmt.Errorf("HTTP %d, and the response is coded as %.40q, which was not asked for", resp.StatusCode, coding)
	}
	kind, charset := mediaType(resp.Header)
	over := len(body) > a.limit
	body = body[:min(len(body), a.limit)]
	switch {
	case isJSON(kind) || kind == "" && !over && protocol.Check(body, protocol.MessageLimits) == nil:
		if over {
			return nil, fmt.Errorf("HTTP %d, and the response is JSON of more than %d bytes: ask for less; it begins with: %s", resp.StatusCode, a.limit, head([]byte(scrub.cut(string(body)))))
		}
		if text := scrub.json(bytes.TrimPrefix(body, []byte("\ufeff"))); protocol.Check(text, protocol.MessageLimits) == nil {
			return bytes.TrimSpace(text), nil
		}
	case isText(kind) || kind == "" && utf8.Valid(whole(body)):
	case a.answers(kind):
		if over {
			return nil, fmt.Errorf("HTTP %d, and the response is %s of more than %d bytes", resp.StatusCode, kind, a.limit)
		}
		return json.Marshal("data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(body))
	default:
		if kind == "" {
			kind = "bytes of no declared type"
		}
		return nil, fmt.Errorf("HTTP %d, and the response is %s, which this tool does not answer: it answers JSON and text", resp.StatusCode, kind)
	}
	if over {
		return json.Marshal(scrub.cut(decode(whole(body), charset)) + fmt.Sprintf("\n[cut after %d bytes; the response goes on]", a.limit))
	}
	return json.Marshal(scrub.text(decode(body, charset)))
}

func (a answering) answers(kind string) bool {
	return slices.ContainsFunc(a.binary, func(want string) bool {
		family, ok := strings.CutSuffix(want, "/*")
		return want == kind || ok && strings.HasPrefix(kind, family+"/")
	})
}

// empty is the answer of a response without a body.
func empty(resp *http.Response, scrub scrubber) (json.RawMessage, error) {
	answer := map[string]any{"status": resp.StatusCode}
	for _, name := range []string{"Content-Type", "Content-Length", "Etag", "Last-Modified", "Location"} {
		if v := resp.Header.Get(name); v != "" && (resp.ContentLength != 0 || name != "Content-Length") {
			answer[strings.ToLower(strings.ReplaceAll(name, "-", "_"))] = scrub.text(strings.ToValidUTF8(v, "\uFFFD"))
		}
	}
	return json.Marshal(answer)
}

func head(b []byte) string {
	return strings.ToValidUTF8(string(b[:min(len(b), maxHead)]), "\uFFFD")
}

// mediaType is the type and the charset that a response declares, in lower case; empty when it declares none that can be
// read.
func mediaType(h http.Header) (kind, charset string) {
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || len(kind) > 100 {
		return "", ""
	}
	return kind, strings.ToLower(params["charset"])
}

func isJSON(kind string) bool {
	return kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json")
}

func isText(kind string) bool {
	switch kind {
	case "application/xml", "application/yaml", "application/x-yaml", "application/javascript", "application/x-www-form-urlencoded",
		"application/x-ndjson", "application/jsonl", "application/toml", "application/sql", "application/graphql":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "+yaml")
}

// whole is b without a character at its end that was cut.
func whole(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if at := len(b) - i; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return b[:at]
			}
			break
		}
	}
	return b
}

// decode reads text of a charset as UTF-8.
func decode(b []byte, charset string) string {
	if charset != "" && charset != "utf-8" && charset != "utf8" {
		if e, err := htmlindex.Get(charset); err == nil {
			if plain, err := e.NewDecoder().Bytes(b); err == nil {
				b = plain
			}
		}
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
