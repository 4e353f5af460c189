// Package tool is what a tool is: its name, its declaration, how it runs and what it may touch while it does. Package
// names and signatures follow Google's ADK, so that tools written for it move by a change of imports; what ADK keeps
// internal (Runnable, RequestProcessor) is exported here.
package tool

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

// Context is what a running tool sees. See agent.Context.
type Context = agent.Context

// Tool is anything an agent can list among its tools.
type Tool interface {
	Name() string
	Description() string
	IsLongRunning() bool
}

// Runnable is a tool the fabric can execute. Run may happen on any worker, perhaps twice for one idempotency key (never
// twice for an at_most_once tool), perhaps beside itself; it returns soon after ctx ends. Its error is an answer that the
// model reads. Our kinds also implement RunnerJSON.
type Runnable interface {
	Tool
	Declaration() *genai.FunctionDeclaration
	Run(ctx Context, args any) (map[string]any, error)
}

// RunnerJSON is a Runnable that decodes and encodes once and keeps every digit. args is a JSON object that the schema
// accepts. The result is any JSON value.
type RunnerJSON interface {
	Runnable
	RunJSON(ctx Context, args json.RawMessage) (json.RawMessage, error)
}

// RequestProcessor is a tool or a toolset that shapes model requests. It runs in the coordinator, at the live end of the log
// only: what it makes of a request is in no event. A tool that is no Runnable beside is not declared to the model.
type RequestProcessor interface {
	ProcessRequest(ctx Context, req *model.LLMRequest) error
}

// LongRunningNote is what the kinds of this module add to what a model reads of a long-running tool.
const LongRunningNote = "NOTE: This is a long-running operation. Do not call this tool again if it has already returned some intermediate or pending status."

// Asker is a Runnable that decides by its arguments, which its schema accepts, whether a person must agree to a call first.
// It is asked on the worker before the tool runs, and not when people have agreed already. It may be asked several times
// about one call, and should say the same each time; an error or a panic fails the call. Settings.Confirm counts beside it.
type Asker interface {
	AsksConfirmation(args json.RawMessage) (bool, error)
}

// Retryable marks a tool's error as one that another attempt may cure. It is an answer only when the last attempt fails.
// An at_most_once tool is not tried again.
func Retryable(err error) error {
	if err == nil {
		return nil
	}
	return &retryableError{err: err}
}

// IsRetryable reports whether err was marked by Retryable and is not the end of ctx.
func IsRetryable(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	_, ok := errors.AsType[*retryableError](err)
	return ok
}

type retryableError struct {
	err   error
	pause time.Duration // at least, before the next attempt
}

func (e *retryableError) Error() string { return e.err.Error() }
func (e *retryableError) Unwrap() error { return e.err }
