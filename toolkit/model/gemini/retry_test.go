package gemini

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

// line is a network that gives the answers of a list, one a request, and notes when it was asked.
type line struct {
	answers []answer
	asked   []time.Time
}

type answer struct {
	status int // 0: the connection is refused
	body   string
	header http.Header
	cut    bool // the body breaks after body
}

func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	l.asked = append(l.asked, time.Now())
	a := l.answers[min(len(l.asked), len(l.answers))-1]
	if a.status == 0 {
		return nil, errors.New("connection refused")
	}
	var body io.Reader = strings.NewReader(a.body)
	if a.cut {
		body = io.MultiReader(body, broken{})
	}
	h := a.header
	if h == nil {
		h = http.Header{}
	}
	return &http.Response{StatusCode: a.status, Status: http.StatusText(a.status), Header: h, Body: io.NopCloser(body), Request: req}, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

const (
	fine  = "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"fine\"}]},\"finishReason\":\"STOP\"}]}\n\n"
	begun = "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"begun\"}]}}]}\n\n"
)

func over(t *testing.T, l *line, r Retry) *llm {
	t.Helper()
	m, err := New(t.Context(), Config{Model: "m", APIKey: "s3cret-key", BaseURL: "http://gemini.invalid", HTTPClient: &http.Client{Transport: l}, Retry: r})
	if err != nil {
		t.Fatal(err)
	}
	return m.(*llm)
}

func (l *line) waits() []time.Duration {
	var out []time.Duration
	for i := 1; i < len(l.asked); i++ {
		out = append(out, l.asked[i].Sub(l.asked[i-1]))
	}
	return out
}

func hello() *model.LLMRequest {
	return &model.LLMRequest{Contents: []*genai.Content{userSays("hello")}}
}

func TestServerNamesTheDelay(t *testing.T) {
	info := `{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7.5s"}]}}`
	for _, c := range []struct {
		name  string
		first answer
		least time.Duration
	}{
		{"RetryInfo", answer{status: 429, body: info}, 7500 * time.Millisecond},
		{"RetryInfo wins over the header", answer{status: 429, body: info, header: http.Header{"Retry-After": {"30"}}}, 7500 * time.Millisecond},
		{"Retry-After", answer{status: 503, body: "busy", header: http.Header{"Retry-After": {"11"}}}, 11 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &line{answers: []answer{c.first, {status: 200, body: fine}}}
				final(t, over(t, l, Retry{}), hello(), true)
				if w := l.waits(); len(w) != 1 || w[0] < c.least || w[0] > c.least+c.least/10+time.Millisecond {
					t.Errorf("waited %v, want %v and a little", w, c.least)
				}
			})
		})
	}
}

func TestOwnDelaysGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{answers: []answer{{}, {status: 500}, {status: 503, body: `{"error":{"code":503}}`}, {status: 200, body: fine}}}
		final(t, over(t, l, Retry{InitialDelay: time.Second}), hello(), true)
		for i, w := range l.waits() {
			mid := time.Second << i
			if w < mid/2 || w > mid*3/2+time.Millisecond {
				t.Errorf("wait %d is %v, want %v give or take a half", i, w, mid)
			}
		}
		if len(l.asked) != 4 {
			t.Errorf("asked %d times, want 4", len(l.asked))
		}
	})
}

func TestWhatIsAskedAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer answer
		code   protocol.Code
		asked  int
	}{
		{"refused connection", answer{}, protocol.CodeModelFailed, 3},
		{"429", answer{status: 429}, protocol.CodeModelFailed, 3},
		{"500", answer{status: 500}, protocol.CodeModelFailed, 3},
		{"error as the first event", answer{status: 200, body: "data: {\"error\":{\"code\":503,\"message\":\"busy\"}}\n\n"}, protocol.CodeModelFailed, 3},
		{"broken before the first event", answer{status: 200, cut: true}, protocol.CodeModelFailed, 3},
		{"broken after the first event", answer{status: 200, body: begun, cut: true}, protocol.CodeModelFailed, 1},
		{"error after the first event", answer{status: 200, body: begun + "data: {\"error\":{\"code\":503,\"message\":\"busy\"}}\n\n"}, protocol.CodeModelFailed, 1},
		{"no finish", answer{status: 200, body: begun}, protocol.CodeModelFailed, 1},
		{"no JSON", answer{status: 200, body: "data: {\n\n"}, protocol.CodeModelFailed, 1},
		{"unknown form", answer{status: 200, body: "data: {\"candidates\":7}\n\n"}, protocol.CodeModelFailed, 1},
		{"400", answer{status: 400}, protocol.CodeModelRefused, 1},
		{"403", answer{status: 403}, protocol.CodeModelRefused, 1},
		{"blocked prompt", answer{status: 200, body: "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n"}, protocol.CodeModelRefused, 1},
		{"withheld answer", answer{status: 200, body: "data: {\"candidates\":[{\"finishReason\":\"PROHIBITED_CONTENT\"}]}\n\n"}, protocol.CodeModelRefused, 1},
		{"malformed call", answer{status: 200, body: "data: {\"candidates\":[{\"finishReason\":\"MALFORMED_FUNCTION_CALL\"}]}\n\n"}, protocol.CodeModelFailed, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &line{answers: []answer{c.answer}}
				err := fails(t, over(t, l, Retry{Attempts: 3}), hello(), true)
				if protocol.CodeOf(err) != c.code || len(l.asked) != c.asked {
					t.Errorf("got %v after %d requests, want %s after %d", err, len(l.asked), c.code, c.asked)
				}
			})
		})
	}
}

func TestDelayBeyondTheBoundsEndsTheRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{answers: []answer{{status: 429, header: http.Header{"Retry-After": {"3600"}}}}}
		from := time.Now()
		err := fails(t, over(t, l, Retry{MaxElapsed: time.Minute}), hello(), false)
		if protocol.CodeOf(err) != protocol.CodeModelFailed || len(l.asked) != 1 || time.Since(from) != 0 {
			t.Errorf("got %v after %d requests and %v", err, len(l.asked), time.Since(from))
		}
	})
}

func TestDeadlineEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		l := &line{answers: []answer{{status: 429, header: http.Header{"Retry-After": {"60"}}}}}
		for r, err := range over(t, l, Retry{}).GenerateContent(ctx, hello(), true) {
			if r != nil || protocol.CodeOf(err) != protocol.CodeExpired {
				t.Errorf("got %v, %v, want %s", r, err, protocol.CodeExpired)
			}
		}
	})
}

func TestKeyIsInNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, a := range []answer{
			{status: 400, body: `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"API key not valid: s3cret-key"}}`},
			{status: 500, body: "s3cret-key"},
			{status: 200, body: "s3cret-key: is no event\n\n"},
		} {
			err := fails(t, over(t, &line{answers: []answer{a}}, Retry{Attempts: 1}), hello(), true)
			for e := err; e != nil; e = errors.Unwrap(e) {
				if strings.Contains(e.Error(), "s3cret") {
					t.Errorf("the key is in %q", e)
				}
			}
		}
	})
}

func TestConfigurationIsChecked(t *testing.T) {
	t.Setenv("GOOGLE_API_KEY", "")
	t.Setenv("GEMINI_API_KEY", "")
	for _, cfg := range []Config{{APIKey: "k"}, {Model: "m"}, {Model: "m", APIKey: "k", Retry: Retry{Attempts: -1}}} {
		if _, err := New(t.Context(), cfg); protocol.CodeOf(err) != protocol.CodeUsage {
			t.Errorf("%+v: got %v, want %s", cfg, err, protocol.CodeUsage)
		}
	}
	t.Setenv("GEMINI_API_KEY", "k")
	if _, err := New(t.Context(), Config{Model: "m"}); err != nil {
		t.Errorf("with GEMINI_API_KEY: %v", err)
	}
}

// FuzzStream checks that whatever a server sends, the answer ends in exactly one of a final response and an error.
func FuzzStream(f *testing.F) {
	f.Add([]byte(fine))
	f.Add([]byte(begun))
	f.Add([]byte("data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"a\",\"willContinue\":true}},{\"functionCall\":{\"partialArgs\":[{\"jsonPath\":\"$.x[0]\",\"stringValue\":\"s\"}]}}]},\"finishReason\":\"STOP\"}]}\r\n\r\n"))
	f.Add([]byte("data: {\"candidates\":[null]}\n\n: comment\n\nevent: x\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		m := over(t, &line{answers: []answer{{status: 200, body: string(body)}}}, Retry{Attempts: 1})
		finals, failures := 0, 0
		for r, err := range m.GenerateContent(t.Context(), hello(), true) {
			switch {
			case err != nil:
				failures++
				if c := protocol.CodeOf(err); c != protocol.CodeModelFailed && c != protocol.CodeModelRefused {
					t.Errorf("code %s", c)
				}
			case !r.Partial:
				finals++
			}
		}
		if finals+failures != 1 {
			t.Errorf("%d finals and %d errors", finals, failures)
		}
	})
}
