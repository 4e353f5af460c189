package tool_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/toolkit/tool"
)

func TestAPauseIsKeptBelowOtherErrors(t *testing.T) {
	cause := errors.New("busy")
	for name, c := range map[string]struct {
		err   error
		again bool
		want  time.Duration
	}{
		"with a pause":    {tool.RetryableAfter(cause, time.Minute), true, time.Minute},
		"wrapped":         {fmt.Errorf("ask: %w", tool.RetryableAfter(cause, time.Minute)), true, time.Minute},
		"below 0":         {tool.RetryableAfter(cause, -time.Minute), true, 0},
		"without a pause": {tool.Retryable(cause), true, 0},
		"not marked":      {cause, false, 0},
		"nil":             {tool.RetryableAfter(nil, time.Minute), false, 0},
	} {
		if got := tool.RetryPause(c.err); got != c.want || tool.IsRetryable(t.Context(), c.err) != c.again {
			t.Errorf("%s: %s, again %v", name, got, tool.IsRetryable(t.Context(), c.err))
		}
	}
	if !errors.Is(tool.RetryableAfter(cause, time.Second), cause) || tool.RetryableAfter(cause, time.Second).Error() != "busy" {
		t.Error("the mark hides its cause, or shows in the text")
	}
}
