// Package session holds what agents and tools see of a session: its state, its events and what a step asks of it.
package session

import (
	"errors"
	"iter"
	"time"

	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

// Prefixes of state keys. A key without one belongs to the session.
const (
	KeyPrefixApp  = "app:"  // shared by all sessions of the app
	KeyPrefixUser = "user:" // shared by the user's sessions of the app
	KeyPrefixTemp = "temp:" // seen by the later tools of the same run, never stored beyond it
)

// ErrStateKeyNotExist says that a key has no value.
var ErrStateKeyNotExist = errors.New("state key does not exist")

// ReadonlyState is state that cannot be changed.
type ReadonlyState interface {
	// Get returns a key's value, or ErrStateKeyNotExist. Numbers are float64 or json.Number as the state was read.
	Get(key string) (any, error)
	All() iter.Seq2[string, any]
}

// State is state that a step may change. What is set is seen by the step at once and by others when the step's answer
// is merged into the session.
type State interface {
	ReadonlyState
	// Set changes a key. The value must be JSON-encodable; nil removes the key.
	Set(key string, value any) error
}

// EventActions is what a step asks of its session besides its content. Of the calls of one turn it counts once all of them
// have ended, in call order; what a call asks for that waits for a person counts when it ends.
//
// SkipSummarization ends the run there: no model is told of the turn's results, people are shown them instead.
// TransferToAgent hands the run over to another agent of the tree, which goes before SkipSummarization; of several the last
// one counts, and a name that is not in the tree fails its call. Escalate ends the loop agent above; it is recorded without
// one. A message that came meanwhile is answered in any case.
type EventActions struct {
	StateDelta                 map[string]any                               `json:"stateDelta,omitempty"`
	ArtifactDelta              map[string]int64                             `json:"artifactDelta,omitempty"`
	RequestedToolConfirmations map[string]toolconfirmation.ToolConfirmation `json:"requestedToolConfirmations,omitempty"`
	SkipSummarization          bool                                         `json:"skipSummarization,omitempty"`
	TransferToAgent            string                                       `json:"transferToAgent,omitempty"`
	Escalate                   bool                                         `json:"escalate,omitempty"`
}

// Event is one thing that happened in a session, as people see it: a projection of the log in ADK's shape.
type Event struct {
	model.LLMResponse
	ID                 string       `json:"id"`
	Timestamp          time.Time    `json:"timestamp"`
	InvocationID       string       `json:"invocationId"`
	Branch             string       `json:"branch,omitempty"`
	Author             string       `json:"author"`
	Actions            EventActions `json:"actions"`
	LongRunningToolIDs []string     `json:"longRunningToolIds,omitempty"`
}

// IsFinalResponse reports whether the event ends what its agent has to say for now: a whole text without calls and responses,
// or an event after which a run waits or needs no summary.
func (e *Event) IsFinalResponse() bool {
	if e.Actions.SkipSummarization || len(e.LongRunningToolIDs) > 0 {
		return true
	}
	if e.Partial {
		return false
	}
	if e.Content == nil {
		return true
	}
	for i, p := range e.Content.Parts {
		switch {
		case p == nil:
		case p.FunctionCall != nil || p.FunctionResponse != nil:
			return false
		case p.CodeExecutionResult != nil && i == len(e.Content.Parts)-1:
			return false
		}
	}
	return true
}
