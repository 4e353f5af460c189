package tool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/toolfabric/toolfabric/toolkit/agent"
)

// ListTime is how long a toolset may take to list its tools.
const ListTime = 10 * time.Second

// Listed is one tool of a toolset's list, under its legal name: see Aliased. Both are zero for a nil in the list.
type Listed struct {
	Name string
	Tool Tool
}

// ListPanic says that a toolset's code panicked while it was listed.
type ListPanic struct{ Value, Stack string }

// LogValue has the stack, for a log.
func (e *ListPanic) LogValue() slog.Value { return slog.StringValue(e.Error() + "\n" + e.Stack) }

func (e *ListPanic) Error() string { return "it panicked while it was listed: " + e.Value }

// List asks a toolset for its tools. A set that panics, or does not answer before ctx ends or ListTime is over, is an error
// like one that fails: a *ListPanic, or what ctx ended with. What does not answer is left behind. ctx may be nil.
func List(ctx agent.ReadonlyContext, set Toolset) ([]Listed, error) {
	type answer struct {
		tools []Listed
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: errors.New("it ended its goroutine while it was listed")}
		defer func() {
			if r := recover(); r != nil {
				a = answer{err: &ListPanic{fmt.Sprint(r), string(debug.Stack())}}
			}
			answers <- a
		}()
		a.tools, a.err = list(ctx, set)
	}()
	limit := time.NewTimer(ListTime)
	defer limit.Stop()
	var ended <-chan struct{}
	if ctx != nil {
		ended = ctx.Done()
	}
	select {
	case a := <-answers:
		return a.tools, a.err
	case <-ended:
		return nil, context.Cause(ctx)
	case <-limit.C:
		return nil, fmt.Errorf("it did not answer within %s", ListTime)
	}
}

func list(ctx agent.ReadonlyContext, set Toolset) ([]Listed, error) {
	tools, err := set.Tools(ctx)
	if err != nil {
		return nil, err
	}
	listed := make([]Listed, len(tools))
	for i, t := range tools {
		if t != nil {
			t = Aliased(t)
			listed[i] = Listed{t.Name(), t}
		}
	}
	return listed, nil
}

// NameOf is a toolset's name, for people to read, whatever the set's code does.
func NameOf(set Toolset) (name string) {
	defer func() {
		if recover() != nil {
			name = "(its name panics)"
		}
	}()
	return set.Name()
}
