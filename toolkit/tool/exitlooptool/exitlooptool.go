// Package exitlooptool makes the tool with which a model says that its work is done.
package exitlooptool

import (
	"encoding/json"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// Name is what models call the tool.
const Name = "exit_loop"

const description = "Ends the loop you work in. Call it only when your instruction says that the work is done: nobody asks you anything after it."

// New makes the tool exit_loop. It takes no arguments, sets the actions Escalate and SkipSummarization and answers {}: the
// turn that calls it is the run's last, and the loop agent above it ends. Its error is always nil, as in ADK.
//
// It needs no worker: whoever judges a call of it records the answer in the same event. In a wrapper, or as tool.Pool(Name),
// it is a tool like others, which a worker runs.
func New() (tool.Tool, error) { return exitLoop{}, nil }

// Is reports whether t was made by New, and is in no wrapper.
func Is(t tool.Tool) bool {
	_, ok := t.(exitLoop)
	return ok
}

type exitLoop struct{}

func (exitLoop) Name() string            { return Name }
func (exitLoop) Description() string     { return description }
func (exitLoop) IsLongRunning() bool     { return false }
func (exitLoop) Settings() tool.Settings { return tool.Settings{Effect: tool.Read} }

func (exitLoop) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: Name, Description: description,
		ParametersJsonSchema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)}
}

// Run sets the actions.
func (t exitLoop) Run(ctx tool.Context, _ any) (map[string]any, error) {
	ctx.Actions().Escalate = true
	ctx.Actions().SkipSummarization = true
	return map[string]any{}, nil
}

// RunJSON is Run.
func (t exitLoop) RunJSON(ctx tool.Context, _ json.RawMessage) (json.RawMessage, error) {
	_, err := t.Run(ctx, nil)
	return json.RawMessage(`{}`), err
}
