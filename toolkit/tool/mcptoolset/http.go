package mcptoolset

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessionHeader names the session that an HTTP request belongs to.
const sessionHeader = "Mcp-Session-Id"

var errOver = errors.New("the server's answer is over the limit")

// web is the transport of one HTTP server: credentials go to its origin and nowhere else, each request's flight is filled in,
// and answers are bounded and kept exact.
type web struct {
	next   http.RoundTripper
	origin string
	header http.Header
	token  func(context.Context) (string, error)
	limit  int
}

// client is an HTTP client through a web. It follows redirects within the origin only: another one would be told what the
// model says.
func (c *Config) client(under *http.Client, endpoint string) (*http.Client, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	client := http.Client{}
	if under != nil {
		client = *under
	}
	w := &web{next: client.Transport, origin: origin(u), header: c.Header, token: c.Token, limit: c.MaxResult}
	if w.next == nil {
		w.next = http.DefaultTransport
	}
	client.Transport = w
	follow := client.CheckRedirect
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if to := origin(req.URL); to != w.origin {
			return fmt.Errorf("the server redirects to %s, which is not followed", to)
		}
		if follow != nil {
			return follow(req, via)
		}
		if len(via) >= 5 {
			return errors.New("the server redirects in circles")
		}
		return nil
	}
	return &client, nil
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// RoundTrip implements http.RoundTripper.
func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	f := flightOf(ctx)
	req = req.Clone(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { f.sent.Store(true) },
	}))
	if origin(req.URL) != w.origin {
		return nil, fmt.Errorf("the server %s sends to another one, %s, which is not followed", w.origin, origin(req.URL))
	}
	for name, values := range w.header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if w.token != nil {
		token, err := w.token(ctx)
		if err != nil {
			return nil, fmt.Errorf("no bearer token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	f.named.Store(req.Header.Get(sessionHeader) != "")
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	f.status.Store(int64(resp.StatusCode))
	f.sent.Store(true)
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "text/event-stream":
		resp.Body = &events{in: bufio.NewReaderSize(resp.Body, 32<<10), body: resp.Body, limit: w.limit, flight: f}
	default:
		return w.whole(resp, f)
	}
	return resp, nil
}

// whole reads an answer that is one message, or a refusal.
func (w *web) whole(resp *http.Response, f *flight) (*http.Response, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(w.limit)+1))
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	if len(body) > w.limit || parts(body) > maxParts {
		f.over.Store(true)
		return nil, errOver
	}
	body = exactMessage(body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// events is a stream of server-sent events whose messages are exact.
type events struct {
	in     *bufio.Reader
	body   io.Closer
	limit  int
	flight *flight
	line   []byte
}

func (e *events) Close() error { return e.body.Close() }

func (e *events) Read(p []byte) (int, error) {
	for len(e.line) == 0 {
		if err := e.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, e.line)
	e.line = e.line[n:]
	return n, nil
}

func (e *events) next() error {
	var line []byte
	for {
		part, err := e.in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > e.limit {
			e.flight.over.Store(true)
			return errOver
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && len(line) == 0 {
			return err
		}
		break
	}
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		text := bytes.TrimSpace(data)
		if parts(text) > maxParts {
			e.flight.over.Store(true)
			return errOver
		}
		if mended := exactMessage(text); len(mended) > 0 && &mended[0] != &text[0] {
			line = append(append([]byte("data: "), mended...), '\n')
		}
	}
	e.line = line
	return nil
}

// transport is how the server is reached: each Connect of it makes a new session. watched tells whether it fills in flights.
func (c *Config) transport() (t mcp.Transport, watched bool, err error) {
	limit := c.MaxResult + frameSlack
	switch {
	case len(c.Command) > 0:
		return tap{c.command()}, true, nil
	case c.Endpoint != "" && c.SSE:
		client, err := c.client(nil, c.Endpoint)
		return &mcp.SSEClientTransport{Endpoint: c.Endpoint, HTTPClient: client, MaxEventSize: limit}, true, err
	case c.Endpoint != "":
		client, err := c.client(nil, c.Endpoint)
		return &mcp.StreamableClientTransport{Endpoint: c.Endpoint, HTTPClient: client, OAuthHandler: c.OAuth, MaxEventSize: limit}, true, err
	}
	switch t := c.Transport.(type) {
	case *mcp.CommandTransport:
		return tap{again(t, c.MaxResult, c.Logger)}, true, nil
	case *mcp.StreamableClientTransport:
		own := *t
		own.MaxEventSize = limit
		own.HTTPClient, err = c.client(t.HTTPClient, t.Endpoint)
		return &own, true, err
	case *mcp.SSEClientTransport:
		own := *t
		own.MaxEventSize = limit
		own.HTTPClient, err = c.client(t.HTTPClient, t.Endpoint)
		return &own, true, err
	case *mcp.InMemoryTransport, *mcp.IOTransport:
		return tap{t}, true, nil
	}
	return c.Transport, false, nil
}
