package invoke_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

func TestAnErrorMayHaveAWordOfItsTool(t *testing.T) {
	gone := errors.New("no skill \"x\"")
	for name, c := range map[string]struct {
		err  error
		want string
		more bool
	}{
		"none":      {gone, `{"error":"no skill \"x\""}`, false},
		"its own":   {tool.WithErrorCode("SKILL_NOT_FOUND", gone), `{"error":"no skill \"x\"","error_code":"SKILL_NOT_FOUND"}`, false},
		"wrapped":   {fmt.Errorf("load: %w", tool.WithErrorCode("A", gone)), `{"error":"load: no skill \"x\"","error_code":"A"}`, false},
		"retryable": {tool.Retryable(tool.WithErrorCode("A", gone)), `{"error":"no skill \"x\"","error_code":"A"}`, true},
		"the outer": {tool.WithErrorCode("B", tool.WithErrorCode("A", gone)), `{"error":"no skill \"x\"","error_code":"B"}`, false},
	} {
		r, err := ready(t, func(tool.Context, any) (map[string]any, error) { return nil, c.err }).Run(t.Context(), call(`{}`))
		if r.Outcome != protocol.OutcomeFailed || r.Code != "" || string(r.Value) != c.want || (err != nil) != c.more {
			t.Errorf("%s: got %s, code %q, %s, %v", name, r.Outcome, r.Code, r.Value, err)
		}
		taken(t, r)
		if !errors.Is(c.err, gone) {
			t.Errorf("%s: the cause is lost", name)
		}
	}
	if tool.WithErrorCode("A", nil) != nil {
		t.Error("an error out of nothing")
	}
}
