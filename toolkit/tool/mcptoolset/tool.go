package mcptoolset

import (
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// remote is one tool of the server. It is immutable once listed; the session belongs to the set.
type remote struct {
	set      *set
	name     string // with the prefix; may not be legal, and then an alias stands before it
	own      string // the server's
	decl     *genai.FunctionDeclaration
	settings tool.Settings
	schema   *invoke.Schema
}

func (r *remote) Name() string                            { return r.name }
func (r *remote) Description() string                     { return r.decl.Description }
func (*remote) IsLongRunning() bool                       { return false }
func (r *remote) Settings() tool.Settings                 { return r.settings }
func (r *remote) Declaration() *genai.FunctionDeclaration { return r.decl }

// Run takes arguments as ADK passes them, a map[string]any, and checks them first.
func (r *remote) Run(ctx tool.Context, args any) (map[string]any, error) {
	m, ok := args.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("unexpected args type, got: %T", args)
	}
	raw, err := invoke.Encode(m)
	if err != nil {
		return nil, err
	}
	if raw, err = r.schema.Normalize(raw); err != nil {
		return nil, errors.New(protocol.ProblemOf(err).Message)
	}
	out, err := r.RunJSON(ctx, raw)
	if err != nil {
		return nil, err
	}
	return invoke.Map(out)
}

// RunJSON calls the server's tool, and answers {"output": v}. v is the structured content, or all text in one where there is
// none. When the server said more than one of these, v holds all of it: "structured", "text" where it says something else,
// and "content", every other block in the server's order. (Beside "output" it would be lost: Gemini's API drops what stands
// there.) Bytes of images, audio and resources are kept in the fabric's object store and named.
func (r *remote) RunJSON(ctx tool.Context, args json.RawMessage) (json.RawMessage, error) {
	res, err := r.set.call(ctx, r, args)
	if err != nil || res == nil { // nil after a question to a person
		return nil, err
	}
	return r.set.answer(ctx, res)
}
