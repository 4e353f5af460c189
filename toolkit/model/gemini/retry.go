package gemini

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

// retry asks until an answer, a failure that stays, or the bounds of Retry. Its errors are *protocol.Error or errStopped.
func (m *llm) retry(ctx context.Context, ask func(context.Context, *attempt) (*model.LLMResponse, error)) (*model.LLMResponse, error) {
	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval, delays.MaxInterval, delays.Multiplier = m.cfg.Retry.InitialDelay, m.cfg.Retry.MaxDelay, 2
	var last *failure
	tries := 0
	final, err := backoff.Retry(ctx, func() (*model.LLMResponse, error) {
		tries++
		a := &attempt{}
		final, err := ask(withAttempt(ctx, a), a)
		if err == nil || errors.Is(err, errStopped) {
			return final, backoff.Permanent(err)
		}
		last = m.judge(err, a)
		if !last.again {
			return nil, backoff.Permanent(err)
		}
		if last.delay > 0 {
			// Everybody who was refused was told the same delay: come back a little later than that, each in turn.
			return nil, &backoff.RetryAfterError{Duration: last.delay + rand.N(last.delay/10+1)}
		}
		return nil, err
	}, backoff.WithBackOff(delays), backoff.WithMaxTries(uint(m.cfg.Retry.Attempts)), backoff.WithMaxElapsedTime(m.cfg.Retry.MaxElapsed))
	switch {
	case err == nil, errors.Is(err, errStopped):
		return final, err
	case ctx.Err() != nil:
		return nil, protocol.ContextError(ctx)
	case last.again && tries > 1:
		last.err.Public += fmt.Sprintf(" (after %d attempts)", tries)
	}
	return nil, last.err
}

// failure is the verdict on a failed attempt.
type failure struct {
	err   *protocol.Error
	again bool          // another attempt may help and cannot repeat anything
	delay time.Duration // the server's wish; 0 when it has none
}
