// Package assemble turns the pieces of one model answer into model.LLMResponses: partials while the pieces come, then one
// final that holds everything, or an error and no final. It is a pure state machine and has no goroutines, clock or
// network. Adapters whose provider speaks genai's vocabulary share it, so that an answer means the same whether it came
// in one piece or in a hundred.
package assemble
