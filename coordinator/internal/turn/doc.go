// Package turn is one model turn: what a model is asked, read from a session's log, and what becomes of its answer. It
// waits for nothing and keeps nothing: clock, ids, state and declarations are given.
//
// It guards one invariant: in every request, each model content with n function calls is followed by exactly one user
// content with their n responses in call order, whatever the log's order. Providers refuse every later request of a
// session once that is broken.
package turn

import (
	"encoding/json"

	"github.com/toolfabric/toolfabric/protocol"
)

// Offer is a tool as a model may call it now.
type Offer struct {
	protocol.Declaration
	Pinned string // the declaration's digest
	Schema Schema // of Declaration.Parameters

	Instruction string // what the model is told about it beside the declaration; empty is nothing
	// Answer answers a call of a tool that needs no worker, from nothing but its arguments. Nil sends the call to its pool.
	Answer func(args json.RawMessage) protocol.Result
}

// Schema is a compiled schema of arguments.
type Schema interface {
	// Normalize checks args, a JSON object, and returns what the tool is to get: the same value, numbers exact. Its error
	// names the place of the fault.
	Normalize(args json.RawMessage) (json.RawMessage, error)
}
