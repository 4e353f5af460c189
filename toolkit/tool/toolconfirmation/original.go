package toolconfirmation

import (
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/genai"
)

// originalCallKey is the argument of a confirmation request that holds the call it asks about.
const originalCallKey = "originalFunctionCall"

// OriginalCallFrom returns the call that a confirmation request asks about. In memory it is a *genai.FunctionCall, after
// a round through JSON a map: both are taken. Other values, a missing key and nil are errors.
func OriginalCallFrom(call *genai.FunctionCall) (*genai.FunctionCall, error) {
	if call == nil {
		return nil, errors.New("the confirmation request is nil")
	}
	if call.Args == nil {
		return nil, errors.New("the confirmation request has no arguments")
	}
	v, ok := call.Args[originalCallKey]
	if !ok {
		return nil, fmt.Errorf("the confirmation request lacks the argument %q", originalCallKey)
	}
	switch v := v.(type) {
	case *genai.FunctionCall:
		if v == nil {
			return nil, fmt.Errorf("the argument %q is nil", originalCallKey)
		}
		return v, nil
	case map[string]any:
		b, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("the argument %q cannot be read: %w", originalCallKey, err)
		}
		var original genai.FunctionCall
		if err := json.Unmarshal(b, &original); err != nil {
			return nil, fmt.Errorf("the argument %q is no function call: %w", originalCallKey, err)
		}
		return &original, nil
	default:
		return nil, fmt.Errorf("the argument %q is a %T, want a function call", originalCallKey, v)
	}
}
