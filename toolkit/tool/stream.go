package tool

import (
	"context"
	"iter"
	"strings"

	"google.golang.org/genai"
)

// RunnerStream is a tool that answers piece by piece. The fabric runs it to its end, tells each piece to watchers as
// progress, and answers the model with all of them joined: {"result": text}. The first error ends it and is the answer.
// args is a map[string]any. It needs no Run: AsRunnable gives it one.
type RunnerStream interface {
	Tool
	Declaration() *genai.FunctionDeclaration
	RunStream(ctx Context, args any) iter.Seq2[string, error]
}

// Join reads pieces to their end, or to the end of ctx, telling each as progress. It returns them in one text, or the first
// error.
func Join(ctx Context, pieces iter.Seq2[string, error]) (string, error) {
	var all strings.Builder
	for piece, err := range pieces {
		if err != nil {
			return "", err
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		all.WriteString(piece)
		tell(ctx, piece)
	}
	return all.String(), nil
}

// tell marks a piece as one where the context of the fabric is at hand, so that watchers can put pieces together.
func tell(ctx Context, piece string) {
	if c, ok := ctx.(interface{ Piece(text string) }); ok {
		c.Piece(piece)
		return
	}
	ctx.Progress(0, piece)
}

// joined runs a tool that only streams.
type joined struct{ RunnerStream }

func (j *joined) Unwrap() Tool { return j.RunnerStream }

func (j *joined) Run(ctx Context, args any) (map[string]any, error) {
	text, err := Join(ctx, j.RunStream(ctx, args))
	if err != nil {
		return nil, err
	}
	return map[string]any{"result": text}, nil
}
