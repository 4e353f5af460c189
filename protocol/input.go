package protocol

import "encoding/json"

// InputKind is what an input wants of its session.
type InputKind string

// The kinds of inputs.
const (
	InputMessage InputKind = "message" // a message to the agent: Content
	InputCall    InputKind = "call"    // one durable call without a model: Call; only for the app CallsApp
	InputDelete  InputKind = "delete"  // end the session and drop its log
	InputCancel  InputKind = "cancel"  // end the run, or the one call that Target names

	// InputDecision is a person's word on a confirmation. It is never published to INPUT: it comes by the approval subject.
	InputDecision InputKind = "decision"
)

// CallsApp is the reserved app whose sessions make one call each and need no agent.
const CallsApp = "calls"

// Input is what is said to a session, published to INPUT. It is accepted once the broker has acknowledged it. Who said
// it is not in it: the client is a token of the subject, so that credentials decide it.
type Input struct {
	V    int       `json:"v"`
	ID   string    `json:"id"` // chosen by the sender, one token; the same id again is the same input
	Kind InputKind `json:"kind"`

	Content    json.RawMessage            `json:"content,omitempty"`     // genai.Content of role user, for InputMessage
	Call       *ClientCall                `json:"call,omitempty"`        // for InputCall
	Target     string                     `json:"target,omitempty"`      // id of the call to cancel; empty is the whole run
	StateDelta map[string]json.RawMessage `json:"state_delta,omitempty"` // applied before the run; app: and user: keys are refused
}

// ClientCall is a tool call that a person or program asks for, not a model.
type ClientCall struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"` // a JSON object
}

// DecodeInput reads an input strictly. It returns an *Error of code bad_message, unsupported_version or bad_id.
func DecodeInput(data []byte) (Input, error) {
	var in Input
	if err := Decode(data, &in, MessageLimits); err != nil {
		return Input{}, err
	}
	return in, in.check()
}

func (in *Input) check() error {
	if err := CheckVersion(in.V); err != nil {
		return err
	}
	if err := CheckID(in.ID); err != nil {
		return err
	}
	switch in.Kind {
	case InputMessage:
		if len(in.Content) == 0 || in.Call != nil {
			return Errorf(CodeBadMessage, "an input of kind message has content and no call")
		}
	case InputCall:
		if in.Call == nil || len(in.Content) > 0 {
			return Errorf(CodeBadMessage, "an input of kind call has a call and no content")
		}
		if len(in.Call.Args) == 0 {
			return Errorf(CodeBadMessage, "args is missing at /call: send {} for none")
		}
		return CheckName(in.Call.Tool)
	case InputDelete:
	case InputCancel:
		if in.Target != "" {
			return CheckID(in.Target)
		}
	default:
		return Errorf(CodeBadMessage, "unknown kind %.40q at /kind: it is message, call, cancel or delete", in.Kind)
	}
	return nil
}
