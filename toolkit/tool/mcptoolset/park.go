package mcptoolset

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/session"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// maxRequestState is how large the state may be that a server wants back with the answers, in bytes.
const maxRequestState = 32 << 10

// pending is what the next run of a call must know of the one whose answer was a question. It lies in the session's state while the
// call is parked; a person does not see it, and cannot change it.
type pending struct {
	State     string                       `json:"state,omitempty"` // the server's own, sent back as it came
	Requests  map[string]*mcp.ElicitParams `json:"requests"`        // by the server's ids
	Responses map[string]*mcp.ElicitResult `json:"responses,omitempty"`
	Asked     int                          `json:"asked"`
	Now       string                       `json:"now"` // the request that the person is asked about
}

// stateKey is where it lies: state that ends with the run.
func stateKey(ctx tool.Context) string { return session.KeyPrefixTemp + "mcp:" + ctx.FunctionCallID() }

// park asks a person what the server asks. The call then waits, holding nothing.
func (s *set) park(ctx tool.Context, r *remote, res *mcp.CallToolResult) error {
	if len(res.InputRequests) == 0 {
		return tool.Retryable(errors.New("not executed: the MCP server is busy and wants to be asked later"))
	}
	if len(res.RequestState) > maxRequestState {
		return fmt.Errorf("the MCP server wants %d bytes of state kept while a person is asked, more than %d", len(res.RequestState), maxRequestState)
	}
	before, _ := s.load(ctx)
	p := &pending{State: res.RequestState, Requests: map[string]*mcp.ElicitParams{}, Asked: before.Asked}
	for id, request := range res.InputRequests {
		q, ok := request.(*mcp.ElicitParams)
		if !ok {
			return fmt.Errorf("the MCP server wants something that it may not have of a model's client (%T): only questions to people are passed on", request)
		}
		p.Requests[id] = q
	}
	return s.next(ctx, r.Name(), p, "")
}

// next asks the first question that has no answer yet. complaint says what was wrong with the answer before.
func (s *set) next(ctx tool.Context, name string, p *pending, complaint string) error {
	if p.Asked++; p.Asked > maxQuestions {
		return fmt.Errorf("the MCP server asked a person more than %d times in one call: it is not asked any more", maxQuestions)
	}
	for _, id := range slices.Sorted(maps.Keys(p.Requests)) {
		if p.Responses[id] == nil {
			p.Now = id
			break
		}
	}
	hint, shown, err := Show(s.cfg.place(), name, p.Requests[p.Now], complaint)
	if err != nil {
		return err
	}
	if err := ctx.State().Set(stateKey(ctx), p); err != nil {
		return err
	}
	return ctx.RequestConfirmation(hint, shown)
}

// load is what the run before left; false when this is the first one.
func (s *set) load(ctx tool.Context) (pending, bool) {
	var p pending
	v, err := ctx.State().Get(stateKey(ctx))
	if err != nil || v == nil || ctx.ToolConfirmation() == nil {
		return p, false
	}
	raw, err := json.Marshal(v)
	if err != nil || json.Unmarshal(raw, &p) != nil || p.Requests[p.Now] == nil {
		return pending{}, false
	}
	return p, true
}

// resume adds to params what a person answered since the run before. It returns true when there is more to ask first.
func (s *set) resume(ctx tool.Context, params *mcp.CallToolParams) (parked bool, err error) {
	p, ok := s.load(ctx)
	if !ok {
		return false, nil
	}
	answer, err := Answer(p.Requests[p.Now], ctx.ToolConfirmation())
	if err != nil {
		return true, s.next(ctx, params.Name, &p, protocol.ProblemOf(err).Message)
	}
	if p.Responses == nil {
		p.Responses = map[string]*mcp.ElicitResult{}
	}
	p.Responses[p.Now] = answer
	if len(p.Responses) < len(p.Requests) {
		return true, s.next(ctx, params.Name, &p, "")
	}
	params.RequestState, params.InputResponses = p.State, mcp.InputResponseMap{}
	for id, r := range p.Responses {
		params.InputResponses[id] = r
	}
	return false, nil
}
