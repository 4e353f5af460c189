package llmagent

import (
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// Callbacks are code of the agent. They run in its coordinator, beside the session, at least once, and only at the live end
// of the log: what came of them is recorded with the step that they belong to, and replay never asks them. Of several the
// first that says something, a value that is not nil or an error, is the last that is asked. What they are handed is
// theirs alone: a change of a request, a response, arguments or a result counts for this step and is seen by nobody else.
// State set by one is recorded with the step. A panic in one is an error of that step. They must be safe to use concurrently
// and end soon after their context does. In that context artifacts and memory are an error where no such service is connected,
// Attempt is 1, ResultHandle is empty and Progress goes nowhere.
type (
	// BeforeModelCallback may change the request, or answer in the model's place: then neither model nor after-model callbacks
	// are asked. An error ends the run as failed.
	BeforeModelCallback func(ctx agent.Context, req *model.LLMRequest) (*model.LLMResponse, error)

	// AfterModelCallback sees the whole answer, or the error that there is instead of one; a response replaces either, an error
	// ends the run as failed. While an agent has one, watchers are shown no pieces of an answer: it may not stay as it is.
	AfterModelCallback func(ctx agent.Context, resp *model.LLMResponse, respErr error) (*model.LLMResponse, error)

	// OnModelErrorCallback is asked when the model could not be; a response takes the error's place, an error replaces it.
	OnModelErrorCallback func(ctx agent.Context, req *model.LLMRequest, reqErr error) (*model.LLMResponse, error)

	// BeforeToolCallback is asked when the model wants a call, before its arguments are checked. It may change them in place;
	// to return them means something else:
	//
	//   - a result is the call's answer, and the tool does not run;
	//   - an error is the call's answer, unless OnToolErrorCallbacks make something of it;
	//   - after ctx.RequestConfirmation the call waits for a person, and what is returned is shown until then.
	//
	// Once people have agreed it is asked again, about exactly what they agreed to, with their word in ctx.ToolConfirmation:
	// it may answer the call, or ask again; arguments can no more be changed. When people refused it may still say what is
	// shown for that, but nothing runs. It also sees refusals of questions that the fabric, an operator or the tool asked.
	BeforeToolCallback func(ctx agent.Context, t tool.Tool, args map[string]any) (map[string]any, error)

	// AfterToolCallback sees how a call ended before that is recorded: its result, or its error. A result or an error that it
	// returns is recorded instead. While a call waits for a person the error is tool.ErrConfirmationRequired; what is made of
	// it is shown meanwhile, and the question stays. Calls that somebody cancelled are not shown.
	AfterToolCallback func(ctx agent.Context, t tool.Tool, args, result map[string]any, err error) (map[string]any, error)

	// OnToolErrorCallback is asked before AfterToolCallbacks about a call that failed: a result takes the error's place, an
	// error replaces it. It is the only one that sees calls of tools that do not exist.
	OnToolErrorCallback func(ctx agent.Context, t tool.Tool, args map[string]any, err error) (map[string]any, error)
)
