package mcptoolset

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// flight is how far one request to the server got. The transports below fill it in by the request's context; where they
// cannot, watched is false, and everything counts as sent.
type flight struct {
	watched atomic.Bool  // a transport filled it in
	sent    atomic.Bool  // some of it may have reached the server
	status  atomic.Int64 // of the HTTP response; 0 is none
	named   atomic.Bool  // the HTTP request named a session
	over    atomic.Bool  // the answer was over the limit
}

type flightKey struct{}

func withFlight(ctx context.Context, f *flight) context.Context {
	return context.WithValue(ctx, flightKey{}, f)
}

// flightOf is the flight of a request; a new one, which nobody looks at, for what is no call of a tool.
func flightOf(ctx context.Context) *flight {
	if f, ok := ctx.Value(flightKey{}).(*flight); ok {
		return f
	}
	return new(flight)
}

// fate is what is known of a request whose answer did not come.
type fate int

const (
	told    fate = iota // the server answered with an error, or refused: the error is the tool's answer
	unsent              // it never reached the server's tool, and the session is lost: repeat it in another one
	refused             // it never reached the server's tool: another time it may
	unknown             // it may have run
)

// fate judges the error of a request. It does not tell of one that ended with its context.
func (f *flight) fate(err error) fate {
	status := int(f.status.Load())
	switch {
	case status == http.StatusNotFound && f.named.Load():
		return unsent // the session is gone: modelcontextprotocol.io/specification/2025-11-25/basic/transports, session management
	case f.watched.Load() && !f.sent.Load():
		return unsent
	case f.over.Load():
		return told
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return refused
	case answered(err), status >= 400 && status < 500:
		return told
	}
	return unknown
}

// answered reports whether err is the server's own. The SDK's marks of its own errors have the same type, and codes that no
// server has a reason to use.
func answered(err error) bool {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && (e.Code < sdkFirst || e.Code > sdkLast)
}

// The codes of the SDK's own marks: rejected by the transport, and closing on either side.
const (
	sdkFirst = -32005
	sdkLast  = -32003
)

// outcome is what a tool returns for a request that failed for good.
func (f fate) outcome(err error) error {
	switch f {
	case unsent, refused:
		return tool.Retryable(err)
	case unknown:
		return tool.OutcomeUnknown(err)
	}
	return err
}

// tap sees what goes through a transport that is no HTTP: requests as they are written, results as they are read.
type tap struct{ mcp.Transport }

func (t tap) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return tapped{c}, nil
}

type tapped struct{ mcp.Connection }

func (t tapped) Write(ctx context.Context, m jsonrpc.Message) error {
	flightOf(ctx).sent.Store(true)
	return t.Connection.Write(ctx, m)
}

func (t tapped) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := t.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Response); ok && err == nil {
		r.Result = exact(r.Result)
	}
	return m, err
}
