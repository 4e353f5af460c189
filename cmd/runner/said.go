package runner

import (
	"encoding/json"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
)

// said is a message of a program, by what becomes of its parts.
type said struct {
	decisions []*genai.FunctionResponse
	results   []*genai.FunctionResponse
	message   *genai.Content // nil when nothing else is said
}

// answers reports whether it answers anything, so that all that a session asked has to be known.
func (s *said) answers() bool { return len(s.decisions)+len(s.results) > 0 }

// listen takes a message apart.
func listen(msg *genai.Content) (said, error) {
	var s said
	if msg == nil {
		return s, protocol.Errorf(protocol.CodeBadMessage, "a run needs a message")
	}
	rest := &genai.Content{Role: genai.RoleUser}
	for _, p := range msg.Parts {
		switch {
		case p == nil:
		case p.FunctionResponse == nil:
			rest.Parts = append(rest.Parts, p)
		case p.FunctionResponse.ID == "":
			return s, protocol.Errorf(protocol.CodeBadMessage, "the function response for %.80q has no id: give it the id of the function call", p.FunctionResponse.Name)
		case p.FunctionResponse.Name == protocol.ConfirmationFunction:
			s.decisions = append(s.decisions, p.FunctionResponse)
		default:
			s.results = append(s.results, p.FunctionResponse)
		}
	}
	if len(rest.Parts) > 0 {
		s.message = rest
	}
	if s.message == nil && !s.answers() {
		return s, protocol.Errorf(protocol.CodeBadMessage, "the message has no parts")
	}
	return s, nil
}

// decisionOf reads a person's word from a function response.
func decisionOf(r *genai.FunctionResponse) (protocol.Decision, error) {
	data, err := json.Marshal(map[string]any{"id": r.ID, "name": r.Name, "response": r.Response})
	if err != nil {
		return protocol.Decision{}, protocol.Wrap(err, protocol.CodeBadMessage, "the response for confirmation %s cannot be encoded", r.ID)
	}
	return protocol.DecodeDecision(data, r.ID)
}

// resultOf reads a result from a function response. One that will be continued is interim.
func resultOf(r *genai.FunctionResponse) (protocol.Result, error) {
	value, err := json.Marshal(r.Response)
	if err != nil {
		return protocol.Result{}, protocol.Wrap(err, protocol.CodeBadMessage, "the response for call %s cannot be encoded", r.ID)
	}
	out := protocol.Result{Outcome: protocol.OutcomeCompleted, Value: value}
	if r.WillContinue != nil && *r.WillContinue {
		out.Outcome = protocol.OutcomePending
	}
	return out, nil
}
