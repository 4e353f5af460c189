package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

// readonly is the agent.ReadonlyContext of a request.
type readonly struct {
	context.Context
	agent   string
	run     Run
	message *genai.Content
}

func (r readonly) UserContent() *genai.Content          { return r.message }
func (r readonly) InvocationID() string                 { return r.run.Invocation }
func (r readonly) AgentName() string                    { return r.agent }
func (r readonly) ReadonlyState() session.ReadonlyState { return state(r.run.State) }
func (r readonly) UserID() string                       { return protocol.UserName(r.run.User) }
func (r readonly) AppName() string                      { return r.run.App }
func (r readonly) SessionID() string                    { return protocol.SessionName(r.UserID(), r.run.Session) }
func (r readonly) Branch() string                       { return "" }

// state reads raw state values. Numbers are json.Number.
type state map[string]json.RawMessage

func (s state) Get(key string) (any, error) {
	raw, ok := s[key]
	if !ok {
		return nil, session.ErrStateKeyNotExist
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("its value is not JSON: %w", err)
	}
	return v, nil
}

// All yields the keys that can be read, in no order.
func (s state) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for key := range s {
			if v, err := s.Get(key); err == nil && !yield(key, v) {
				return
			}
		}
	}
}
