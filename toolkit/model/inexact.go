package model

import "encoding/json"

// InexactArgs is the key of LLMResponse.CustomMetadata under which an adapter lists the arguments whose digits it could
// not vouch for. Read it with Inexact.
const InexactArgs = "inexact_args"

// InexactArg names one number that may have been rounded on its way from the provider: its magnitude is 2^53 or more and
// the transport decodes numbers as float64. Such a call must be refused with an answer that asks for the digits as text,
// never run.
type InexactArg struct {
	Call    int    `json:"call"`    // index among the answer's calls, from 0
	Pointer string `json:"pointer"` // JSON pointer into the call's args
}

// Inexact lists the arguments of r's calls that may have been rounded; nil when there are none. It also reads a response
// that went through JSON.
func (r *LLMResponse) Inexact() []InexactArg {
	v, ok := r.CustomMetadata[InexactArgs]
	if !ok {
		return nil
	}
	if args, ok := v.([]InexactArg); ok {
		return args
	}
	var args []InexactArg
	if b, err := json.Marshal(v); err == nil {
		_ = json.Unmarshal(b, &args) // somebody else's key of that name has another form
	}
	return args
}
