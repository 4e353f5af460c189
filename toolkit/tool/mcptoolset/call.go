package mcptoolset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/propagation"

	"github.com/toolfabric/toolfabric/protocol/telemetry"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// maxErrorText is how much of a server's error a model is shown, in bytes.
const maxErrorText = 16 << 10

// callKey is the key of a request's _meta that holds the call's id in the fabric, its idempotency key.
const callKey = "toolfabric/call"

// call calls the server's tool. The answer is nil when a person was asked and the call parks.
func (s *set) call(ctx tool.Context, r *remote, args json.RawMessage) (*mcp.CallToolResult, error) {
	params := &mcp.CallToolParams{Name: r.own, Arguments: args}
	parked, err := s.resume(ctx, params)
	if parked || err != nil {
		return nil, err
	}
	res, err := s.send(ctx, r, params)
	switch {
	case err != nil:
		return nil, err
	case res.NeedsInput():
		return nil, s.park(ctx, r, res)
	case params.InputResponses != nil:
		err = ctx.State().Set(stateKey(ctx), nil)
	}
	return res, err
}

// send sends the request until its answer is there, and again where that is safe: see the package's documentation.
func (s *set) send(ctx tool.Context, r *remote, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	repeatable := r.settings.Effect == tool.Read || r.settings.Effect == tool.Idempotent
	for try := 0; ; try++ {
		session, err := s.link.get(ctx)
		if err != nil {
			if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
				return nil, err
			}
			return nil, tool.Retryable(fmt.Errorf("not executed: %w", err))
		}
		res, fate, err := s.once(ctx, session, r, params)
		switch {
		case err == nil:
			return res, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case try == 0 && (fate == unsent || fate == unknown && repeatable):
			continue
		}
		return nil, fate.outcome(s.explain(fate, err))
	}
}

func (s *set) once(ctx tool.Context, session *mcp.ClientSession, r *remote, params *mcp.CallToolParams) (*mcp.CallToolResult, fate, error) {
	f := &flight{}
	f.watched.Store(s.watched)
	limited, a := s.flights.begin(ctx, r.Name())
	defer s.flights.end(a)
	p := *params
	p.Meta = mcp.Meta{callKey: ctx.FunctionCallID()}
	carrier := propagation.MapCarrier{}
	telemetry.Inject(ctx, carrier)
	for key, value := range carrier {
		p.Meta[key] = value
	}
	p.SetProgressToken(a.token)
	res, err := session.CallTool(withFlight(limited, f), &p)
	s.link.release(session, err == nil || answered(err))
	if err == nil {
		return res, told, nil
	}
	if context.Cause(limited) == errIdle && ctx.Err() == nil {
		return nil, unknown, fmt.Errorf("%w: %s without an answer or progress; it was told to stop", errIdle, s.cfg.Idle)
	}
	if f.over.Load() {
		err = fmt.Errorf("it ran, but its answer is over the limit of %d bytes, or of %d objects and lists", s.cfg.MaxResult, maxParts)
	}
	fate := f.fate(err)
	if ctx.Err() == nil && (fate == unsent || fate == unknown && f.status.Load() < http.StatusInternalServerError) {
		s.link.drop(session)
	}
	return nil, fate, err
}

// explain words a failure for the model. Of the server's own errors it is their text.
func (s *set) explain(f fate, err error) error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && answered(err) {
		return errors.New("the MCP server answers: " + clip(seen(e.Message), maxErrorText))
	}
	text := clip(seen(strings.ReplaceAll(err.Error(), `calling "tools/call": `, "")), maxErrorText)
	switch f {
	case unsent, refused:
		return fmt.Errorf("not executed: the MCP server could not be reached: %s", text)
	case unknown:
		return fmt.Errorf("the connection to the MCP server was lost while the tool ran, so its effect may have happened; check before you repeat it: %s", text)
	}
	return errors.New(text)
}
