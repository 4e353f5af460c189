package httptool

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// maxRedirects is how many redirects of one call are followed.
const maxRedirects = 3

// client sends requests, each of them at most once. It may be used by many goroutines.
type client struct {
	guard *guard
	kept  *http.Transport // keeps connections
	fresh *http.Transport // opens one for each request
}

func newClient(n *Network) (*client, error) {
	g, err := newGuard(n.Allow)
	if err != nil {
		return nil, err
	}
	c := &client{guard: g, kept: n.transport(g), fresh: n.transport(g)}
	c.fresh.DisableKeepAlives = true
	return c, nil
}

func (c *client) close() { c.kept.CloseIdleConnections() }

// request is one request of a call, before it is sent.
type request struct {
	method string
	url    *url.URL
	header http.Header
	body   []byte
	once   bool // never twice: see client.once
}

// transportError is a request that got no response. Sent is false when it is certain that nothing of it was sent.
type transportError struct {
	sent      bool
	permanent bool // another attempt would fail the same way
	text      string
}

func (e *transportError) Error() string { return e.text }

// send follows redirects within their bounds. Whoever gets the response closes its body.
func (c *client) send(ctx context.Context, r request) (*http.Response, error) {
	for followed := 0; ; followed++ {
		if err := c.guard.checkHost(r.url.Hostname()); err != nil {
			return nil, &transportError{sent: followed > 0, permanent: true, text: err.Error()}
		}
		resp, err := c.once(ctx, r)
		if err != nil {
			if e, ok := errors.AsType[*transportError](err); ok {
				e.sent = e.sent || followed > 0
			}
			return nil, err
		}
		next, err := redirected(r, resp)
		if next == nil && err == nil {
			return resp, nil
		}
		drop(resp)
		if err == nil && followed == maxRedirects {
			err = fmt.Errorf("more than %d redirects", maxRedirects)
		}
		if err != nil {
			return nil, &transportError{sent: true, permanent: true, text: fmt.Sprintf("HTTP %d: the redirect is not followed: %s", resp.StatusCode, err)}
		}
		r = *next
	}
}

// drop reads a little of a body that nobody wants, so that its connection can be kept, and closes it.
func drop(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	resp.Body.Close()
}

// once sends one request. net/http repeats requests on its own when a kept connection breaks under one that it takes for
// idempotent: by a method that reads, or by a header spelled Idempotency-Key. Ours is spelled in lower case, as HTTP/2 does,
// and a reading method that must not be repeated gets a connection of its own.
func (c *client) once(ctx context.Context, r request) (*http.Response, error) {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req := (&http.Request{
		Method: r.method, URL: r.url, Host: r.url.Host, Header: r.header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if len(r.body) > 0 {
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(string(r.body))), int64(len(r.body))
	}
	via := c.kept
	if r.once && effectOf(r.method) == tool.Read {
		via = c.fresh
	}
	resp, err := via.RoundTrip(req)
	if err == nil {
		return resp, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, explain(r.url.Host, err, connected.Load())
}

// explain says what went wrong without what net/http adds to its errors: the whole URL, and the address of the resolver.
func explain(host string, err error, sent bool) error {
	e := &transportError{sent: sent}
	if blocked, ok := errors.AsType[*blockedError](err); ok {
		e.permanent, e.text = true, blocked.Error()
		return e
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		e.permanent, e.text = dns.IsNotFound, fmt.Sprintf("%s cannot be looked up: %s", host, dns.Err)
		return e
	}
	if isCertificate(err) {
		e.permanent, e.text = true, fmt.Sprintf("%s has no certificate that is trusted: %s", host, innermost(err))
		return e
	}
	if !sent {
		e.text = fmt.Sprintf("%s cannot be reached, and nothing was sent: %s", host, innermost(err))
		return e
	}
	e.text = fmt.Sprintf("the connection to %s broke: %s", host, innermost(err))
	return e
}

func isCertificate(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	_, ok := errors.AsType[x509.UnknownAuthorityError](err)
	return ok
}

// innermost is the cause, without addresses and URLs that were put around it.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
