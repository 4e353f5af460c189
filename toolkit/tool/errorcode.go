package tool

import "errors"

// WithErrorCode gives a tool's error a word of the tool's own, such as SKILL_NOT_FOUND, which the model reads beside the text:
// {"error": text, "error_code": code}. It is no code of the fabric, and nothing is decided by it.
func WithErrorCode(code string, err error) error {
	if err == nil {
		return nil
	}
	return &codedError{code: code, err: err}
}

// ErrorCode is the word that WithErrorCode gave err, the outermost of several; empty when there is none.
func ErrorCode(err error) string {
	if e, ok := errors.AsType[*codedError](err); ok {
		return e.code
	}
	return ""
}

type codedError struct {
	code string
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }
