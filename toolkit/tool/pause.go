package tool

import (
	"errors"
	"time"
)

// RetryableAfter is Retryable(err) for a failure that will not pass before pause has: the next attempt waits at least so
// long, and is not made when the call's deadline comes first. Pauses below 0 are none.
func RetryableAfter(err error, pause time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryableError{err: err, pause: max(pause, 0)}
}

// RetryPause is the pause that err was given by RetryableAfter; 0 when it was given none.
func RetryPause(err error) time.Duration {
	e, ok := errors.AsType[*retryableError](err)
	if !ok {
		return 0
	}
	return e.pause
}
