package tool

import "errors"

// OutcomeUnknown marks a tool's error as one after which nobody knows whether its effect happened: the connection to the
// system that does the work broke while it worked, say. A read or idempotent tool is tried again, as after Retryable. A call
// that may not be, or whose attempts are used up, ends as outcome_unknown instead of failed, and the model reads err. It
// counts no more once the call's context has ended: how that ends a call is said there.
func OutcomeUnknown(err error) error {
	if err == nil {
		return nil
	}
	return &unknownError{retryableError{err: err}}
}

// IsOutcomeUnknown reports whether err was marked by OutcomeUnknown.
func IsOutcomeUnknown(err error) bool {
	_, ok := errors.AsType[*unknownError](err)
	return ok
}

type unknownError struct{ retryableError }

// Unwrap shows the mark that asks for another attempt.
func (e *unknownError) Unwrap() error { return &e.retryableError }
