package gemini

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxAnswer bounds one answer, in bytes.
const maxAnswer = 64 << 20

var errTooLarge = errors.New("the answer is larger than 64 MiB")

// attempt is what one attempt learns on the way. One goroutine writes it.
type attempt struct {
	sent       bool          // the request left the SDK
	status     int           // of the response; 0 before it
	retryAfter time.Duration // the response's header
	broken     error         // what ended the body before its end
	answered   bool          // a piece of the answer came
	showing    bool          // the reader has control
}

type attemptKey struct{}

func withAttempt(ctx context.Context, a *attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

// transport notes what the SDK does not hand on: the Retry-After header, and whether a body came to its end.
type transport struct{ base http.RoundTripper }

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	base := t.base
	if base == nil {
		base = http.DefaultTransport
	}
	a, ok := req.Context().Value(attemptKey{}).(*attempt)
	if !ok {
		return base.RoundTrip(req)
	}
	a.sent = true
	resp, err := base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	a.status = resp.StatusCode
	a.retryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	resp.Body = &body{ReadCloser: resp.Body, attempt: a, left: maxAnswer}
	return resp, nil
}

// body ends in io.EOF whatever happens and notes the truth in the attempt: the SDK would print it to the standard log.
type body struct {
	io.ReadCloser
	attempt *attempt
	left    int
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 && err == nil {
		err = errTooLarge
	}
	if err != nil && err != io.EOF {
		b.attempt.broken = err
		return n, io.EOF
	}
	return n, err
}

// retryAfter reads the header's two forms: seconds, or a date. Anything else is 0.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil {
		return max(0, time.Duration(min(seconds, 1<<30))*time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
