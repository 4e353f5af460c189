package tool_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// coded is a toolset made of code.
type coded func() ([]tool.Tool, error)

func (coded) Name() string                                       { panic("no name") }
func (c coded) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { return c() }

// silent is a tool whose name panics.
type silent struct{ tool.Tool }

func (silent) Name() string { panic("no name") }

func TestASetThatDoesNotAnswerIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		for what, set := range map[string]coded{
			"it panicked while it was listed: no tools":  func() ([]tool.Tool, error) { panic("no tools") },
			"it panicked while it was listed: no name":   func() ([]tool.Tool, error) { return []tool.Tool{silent{}}, nil },
			"it ended its goroutine while it was listed": func() ([]tool.Tool, error) { runtime.Goexit(); return nil, nil },
			"it did not answer within " + "10s":          func() ([]tool.Tool, error) { <-release; return nil, nil },
			"no connection":                              func() ([]tool.Tool, error) { return nil, errors.New("no connection") },
		} {
			began := time.Now()
			tools, err := tool.List(nil, set)
			if err == nil || err.Error() != what || tools != nil || time.Since(began) > tool.ListTime {
				t.Errorf("%v, %v after %s, want %q", tools, err, time.Since(began), what)
			}
		}
		close(release)
		if name := tool.NameOf(coded(nil)); name != "(its name panics)" {
			t.Errorf("the set is named %q", name)
		}
	})
}

func TestAListEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		gone := errors.New("nobody asks any more")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		_, err := tool.List(reader{Context: ctx}, coded(func() ([]tool.Tool, error) { <-release; return nil, nil }))
		if !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
	})
}

// reader is an agent.ReadonlyContext of which only the context is asked.
type reader struct {
	context.Context
	agent.ReadonlyContext
}

func (r reader) Deadline() (time.Time, bool) { return r.Context.Deadline() }
func (r reader) Done() <-chan struct{}       { return r.Context.Done() }
func (r reader) Err() error                  { return r.Context.Err() }
func (r reader) Value(key any) any           { return r.Context.Value(key) }
