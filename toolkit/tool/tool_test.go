package tool_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

type set struct {
	tools []tool.Tool
	err   error
}

func (set) Name() string                                       { return "inner" }
func (s set) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { return s.tools, s.err }

func TestFilterToolsetKeepsNameOrderAndErrors(t *testing.T) {
	inner := set{tools: []tool.Tool{tool.Pool("a"), tool.Pool("b"), tool.Pool("c")}}
	allowed := []string{"c", "a"}
	ts := tool.FilterToolset(inner, tool.StringPredicate(allowed))
	allowed[0] = "b" // the predicate holds its own copy
	got, err := ts.Tools(nil)
	if err != nil || ts.Name() != "inner" || len(got) != 2 || got[0].Name() != "a" || got[1].Name() != "c" {
		t.Errorf("got %v, %v of %s", got, err, ts.Name())
	}
	broken := errors.New("no connection")
	if _, err := tool.FilterToolset(set{err: broken}, tool.AllowedToolsPredicate(nil)).Tools(nil); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestFilterToolsetPanicsOnNil(t *testing.T) {
	for name, f := range map[string]func(){
		"toolset":   func() { tool.FilterToolset(nil, tool.AllowedToolsPredicate(nil)) },
		"predicate": func() { tool.FilterToolset(set{}, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("nil %s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestAPoolIsOnlyAName(t *testing.T) {
	p := tool.Pool("lookup")
	if _, ok := p.(tool.Runnable); ok || !tool.IsPool(p) || p.Name() != "lookup" {
		t.Errorf("got %#v", p)
	}
}

func TestRetryable(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	cause := errors.New("busy")
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want bool
	}{
		{"marked", t.Context(), tool.Retryable(cause), true},
		{"wrapped", t.Context(), fmt.Errorf("ask: %w", tool.Retryable(cause)), true},
		{"joined", t.Context(), errors.Join(cause, tool.Retryable(cause)), true},
		{"not marked", t.Context(), cause, false},
		{"nil", t.Context(), tool.Retryable(nil), false},
		{"context ended", ended, tool.Retryable(cause), false},
	} {
		if got := tool.IsRetryable(c.ctx, c.err); got != c.want {
			t.Errorf("%s: got %t", c.name, got)
		}
	}
	if tool.Retryable(cause).Error() != "busy" {
		t.Error("the mark shows in the text")
	}
}
