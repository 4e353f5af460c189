package functiontool

import (
	"errors"
	"iter"

	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// StreamingFunc is a function that answers piece by piece. When it is told to stop, by a yield that returns false, nobody
// reads on.
type StreamingFunc[TArgs any] func(tool.Context, TArgs) iter.Seq2[string, error]

// NewStreaming makes a tool whose answer is all pieces joined: {"result": text}. Each piece is also told to watchers while
// the function runs. The first error ends it and is the answer. The tool implements what one of New does, and
// tool.RunnerStream. NewStreaming fails as New does.
func NewStreaming[TArgs any](cfg Config, handler StreamingFunc[TArgs]) (tool.Tool, error) {
	if handler == nil {
		return New[TArgs, string](cfg, nil)
	}
	made, err := New(cfg, func(ctx tool.Context, in TArgs) (string, error) {
		pieces := handler(ctx, in)
		if pieces == nil {
			return "", errNoPieces
		}
		return tool.Join(ctx, pieces)
	})
	if err != nil {
		return nil, err
	}
	return &streaming[TArgs]{made.(runner[TArgs]), handler}, nil
}

var errNoPieces = errors.New("the function returned no pieces: a nil iterator")

// streaming is a function tool that can also be read piece by piece. Its other abilities are those of the tool below.
type streaming[TArgs any] struct {
	runner[TArgs]
	handler StreamingFunc[TArgs]
}

// runner is what New makes.
type runner[TArgs any] interface {
	tool.RunnerJSON
	tool.Configured
	take(args any) (TArgs, error)
}

func (s *streaming[TArgs]) Unwrap() tool.Tool { return s.runner }

// RunStream takes arguments as Run does. What is wrong with them is its one error.
func (s *streaming[TArgs]) RunStream(ctx tool.Context, args any) iter.Seq2[string, error] {
	in, err := s.take(args)
	if err != nil {
		return func(yield func(string, error) bool) { yield("", err) }
	}
	pieces := s.handler(ctx, in)
	if pieces == nil {
		return func(yield func(string, error) bool) { yield("", errNoPieces) }
	}
	return pieces
}
