// Package toolconfirmation holds the vocabulary of calls that wait for a person's word, as Google's ADK spells it.
package toolconfirmation

import "github.com/toolfabric/toolfabric/protocol"

// FunctionCallName is the name of the function call that carries a confirmation request outward.
const FunctionCallName = protocol.ConfirmationName

// Hint is the question about a call of a tool that does not word its own.
func Hint(tool string) string {
	return "Please approve or reject the tool call " + tool + "() by responding with a FunctionResponse with an expected ToolConfirmation payload."
}

// ToolConfirmation is a question to a person, and with Confirmed set by them its answer. All keys are always written.
type ToolConfirmation struct {
	Hint      string `json:"hint"`
	Confirmed bool   `json:"confirmed"`
	Payload   any    `json:"payload"`
}
