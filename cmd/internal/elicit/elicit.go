// Package elicit asks people what MCP servers before the protocol 2026-07-28 ask in the middle of a call. The question becomes a
// durable call of a tool that does nothing but ask: it is listed, answered and recorded like any other confirmation.
package elicit

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/toolkit/tool/mcptoolset"
)

// cancelLimit is how long a question that nobody answered in time is tried to be taken back.
const cancelLimit = 10 * time.Second

// question is what the tool is called with.
type question struct {
	Server  string         `json:"server" jsonschema:"the MCP server that asks"`
	Message string         `json:"message"`
	Mode    string         `json:"mode,omitempty"`
	URL     string         `json:"url,omitempty"`
	Schema  map[string]any `json:"requested_schema,omitempty" jsonschema:"JSON Schema of the answer"`
	About   *about         `json:"about,omitempty" jsonschema:"the call that led to it"`
}

// about is the call that led to a question.
type about struct {
	Tool    string `json:"tool"`
	Call    string `json:"call"`
	Session string `json:"session"`
}

func (q *question) params() *mcp.ElicitParams {
	p := &mcp.ElicitParams{Message: q.Message, Mode: q.Mode, URL: q.URL}
	if q.Schema != nil {
		p.RequestedSchema = q.Schema
	}
	return p
}

// Tool asks a person what a server wants to know. An answer that does not fit the requested schema is asked for again. park
// is how long it may take.
func Tool(name string, park time.Duration) (tool.Tool, error) {
	return functiontool.New(functiontool.Config{
		Name:        name,
		Description: "Asks a person what an MCP server wants to know in the middle of a call. For the worker of that server only.",
		Effect:      tool.Read, ParkTimeout: park,
	}, func(ctx tool.Context, q question) (*mcp.ElicitResult, error) {
		complaint := ""
		if word := ctx.ToolConfirmation(); word != nil {
			res, err := mcptoolset.Answer(q.params(), word)
			if err == nil {
				return res, nil
			}
			complaint = protocol.ProblemOf(err).Message
		}
		of := ""
		if q.About != nil {
			of = q.About.Tool
		}
		hint, shown, err := mcptoolset.Show(q.Server, of, q.params(), complaint)
		if err != nil {
			return nil, err
		}
		return nil, ctx.RequestConfirmation(hint, shown)
	})
}

// By is a mcptoolset.Config.Elicit that calls the tool of that name. When its context ends first the question is cancelled.
func By(c *client.Client, name, server string, log *slog.Logger) func(context.Context, mcptoolset.Question) (*mcp.ElicitResult, error) {
	return func(ctx context.Context, q mcptoolset.Question) (*mcp.ElicitResult, error) {
		args, err := arguments(server, q)
		if err != nil {
			return nil, err
		}
		receipt, err := c.SendCall(ctx, name, args)
		if err != nil {
			return nil, err
		}
		out, err := wait(ctx, c, receipt, q.Asked)
		if err != nil {
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelLimit)
			defer cancel()
			if err := c.Cancel(late, receipt.App, receipt.Session, ""); err != nil {
				log.Warn("a question that nobody answered in time could not be taken back", "session", receipt.Session, "error", err)
			}
			return nil, err
		}
		r, err := client.CallResult(out)
		if err != nil {
			return nil, err
		}
		if r.Outcome != protocol.OutcomeCompleted {
			return nil, fmt.Errorf("the question ended as %s: %s", r.Outcome, r.Value)
		}
		var res mcp.ElicitResult
		return &res, json.Unmarshal(r.Value, &res)
	}
}

// wait is WaitEnd that tells of the call each time people are asked.
func wait(ctx context.Context, c *client.Client, r client.Receipt, asked func(call string)) (client.Outcome, error) {
	for u, err := range c.Follow(ctx, r.App, r.Session, r.InputID) {
		switch {
		case err != nil && protocol.CodeOf(err) != protocol.CodeUnreachable:
			return client.Outcome{}, err
		case u.Outcome != nil:
			return *u.Outcome, nil
		case u.Waiting != nil:
			for _, call := range u.Waiting.Calls {
				asked(call.Call)
			}
		}
	}
	return client.Outcome{}, protocol.ContextError(ctx)
}

func arguments(server string, q mcptoolset.Question) (json.RawMessage, error) {
	in := question{Server: server, Message: q.Message, Mode: q.Mode, URL: q.URL}
	if q.RequestedSchema != nil {
		raw, err := json.Marshal(q.RequestedSchema)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &in.Schema); err != nil {
			return nil, fmt.Errorf("the schema of the question: %w", err)
		}
	}
	if q.Call != "" {
		in.About = &about{q.Tool, q.Call, q.Session}
	}
	return json.Marshal(in)
}
