package protocol

import (
	"context"
	"errors"
	"fmt"
)

// Error is a failure of the fabric with its verdict attached. Code decides what happens next; Public may reach a model
// or a user, says what, which thing and the next step, and holds no secret; Err is the cause, for logs and errors.Is, and
// never leaves the process.
type Error struct {
	Code   Code
	Public string
	Err    error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return string(e.Code) + ": " + e.Public + ": " + e.Err.Error()
	}
	return string(e.Code) + ": " + e.Public
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an *Error without a cause.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Public: fmt.Sprintf(format, args...)}
}

// Wrap makes an *Error with a cause.
func Wrap(err error, code Code, format string, args ...any) *Error {
	return &Error{Code: code, Public: fmt.Sprintf(format, args...), Err: err}
}

// CodeOf is the code of the first *Error in err's chain, CodeInternal when there is none, and empty for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// ContextError turns the end of ctx into an *Error: its cause if that is one, cancelled or expired otherwise. It returns
// nil while ctx lives.
func ContextError(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if e, ok := errors.AsType[*Error](cause); ok {
		return e
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		return Wrap(cause, CodeExpired, "the time ran out")
	}
	return Wrap(cause, CodeCancelled, "it was stopped")
}

// Problem is an Error as it stands on the wire and in the log.
type Problem struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// ProblemOf makes a Problem that may be shown to anybody: of an error that is no *Error only the code internal is told.
func ProblemOf(err error) *Problem {
	if e, ok := errors.AsType[*Error](err); ok {
		return &Problem{Code: e.Code, Message: e.Public}
	}
	return &Problem{Code: CodeInternal, Message: "an unexpected failure; the process's log has it"}
}
