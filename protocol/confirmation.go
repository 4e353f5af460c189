package protocol

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strconv"
)

// ConfirmationFunction is the function call that ADK asks a person with, and the name its answer carries.
const ConfirmationFunction = "adk_request_confirmation"

// Confirmation is a question to people: may this call run? It is part of the log from the event that asked it.
type Confirmation struct {
	ID      string          `json:"id"` // ours, unguessable
	Hint    string          `json:"hint,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"` // what the asker shows, or wants to be filled in
	Origin  string          `json:"origin"`            // who asks: flag, provider, tool, callback, or the name of a policy
	Digest  string          `json:"digest"`            // of what is agreed to: see ConfirmationDigest
	Expires int64           `json:"expires"`           // Unix milliseconds, the broker's clock; a decision stored later is refused

	// Need is how many distinct approvers must agree, 0 is one. One who denies is enough to deny.
	Need int `json:"need,omitempty"`
	// NotRequester refuses the decision of whoever the session belongs to.
	NotRequester bool `json:"not_requester,omitempty"`
	// ToolDecides hands a denial to the tool, which asked by itself; otherwise a denied call never reaches a worker.
	ToolDecides bool `json:"tool_decides,omitempty"`
}

// Origins of a confirmation besides the names of policies, which are never one of these.
const (
	OriginFlag     = "flag"     // the tool is declared so
	OriginProvider = "provider" // the tool's function of the arguments
	OriginTool     = "tool"     // the tool, while it ran
	OriginCallback = "callback" // a callback of the agent, before the tool ran
)

// Quorum is how many distinct approvers must agree.
func (c *Confirmation) Quorum() int { return max(c.Need, 1) }

// ConfirmationDigest binds a decision to what it decides: SHA-256, in lower-case hex, over the length-prefixed parts
// "tf-approval-v1", session, call, tool, declaration digest, SHA-256 of the exact argument bytes, expiry and
// confirmation id. Arguments that differ in one byte need another decision.
func ConfirmationDigest(session string, c *Call, args json.RawMessage, expires int64, id string) string {
	sum := sha256.Sum256(args)
	h := sha256.New()
	for _, part := range []string{"tf-approval-v1", session, c.ID, c.Tool, c.Digest, string(sum[:]), strconv.FormatInt(expires, 10), id} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Decision is a person's word on a confirmation: the body of a message on its approval subject.
type Decision struct {
	Confirmed bool            `json:"confirmed"`
	Hint      string          `json:"hint,omitempty"`    // a remark, for the log
	Payload   json.RawMessage `json:"payload,omitempty"` // reaches the tool
	// Digest, when given, must be the confirmation's: a decision about other arguments is refused.
	Digest string `json:"digest,omitempty"`
	// Args are edited arguments. They are not agreed to by this decision: they make another confirmation.
	Args json.RawMessage `json:"args,omitempty"`
}

// FoldedDecision is a decision in the log.
type FoldedDecision struct {
	Confirmation string `json:"confirmation"`
	Decision
	// Asks is the confirmation that edited arguments need; nil without them.
	Asks *Confirmation `json:"asks,omitempty"`
}

// decisionForms is every shape that a decision is accepted in; the fields of FunctionResponse stand beside a decision's own.
type decisionForms struct {
	ID               string          `json:"id"`
	Name             string          `json:"name"`
	Response         json.RawMessage `json:"response"`
	FunctionResponse *struct {
		ID       string          `json:"id"`
		Name     string          `json:"name"`
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
	Confirmed *bool           `json:"confirmed"`
	Hint      string          `json:"hint"`
	Payload   json.RawMessage `json:"payload"`
	Digest    string          `json:"digest"`
	Args      json.RawMessage `json:"args"`
}

// DecodeDecision reads the decision on a confirmation strictly. Accepted are {"confirmed": bool, ...} itself, the whole
// FunctionResponse {"id", "name", "response": ...}, the same under "functionResponse", and for the response also ADK's
// {"response": "<the object as a JSON string>"}. It returns an *Error of code bad_message for anything else, a missing
// "confirmed", and an id or name that is not the confirmation's.
func DecodeDecision(data []byte, confirmation string) (Decision, error) {
	var f decisionForms
	if err := Decode(data, &f, MessageLimits); err != nil {
		return Decision{}, err
	}
	if r := f.FunctionResponse; r != nil {
		if f.ID != "" || f.Name != "" || f.Response != nil || r.Response == nil {
			return Decision{}, Errorf(CodeBadMessage, "/functionResponse has no response, or stands beside another one")
		}
		f.ID, f.Name, f.Response = r.ID, r.Name, r.Response
	}
	if f.ID != "" && f.ID != confirmation {
		return Decision{}, Errorf(CodeBadMessage, "the id %.80q at /id is another confirmation's", f.ID)
	}
	if f.Name != "" && f.Name != ConfirmationFunction {
		return Decision{}, Errorf(CodeBadMessage, "the name %.80q at /name is not %s", f.Name, ConfirmationFunction)
	}
	if f.Response == nil {
		return f.decision()
	}
	if f.Confirmed != nil {
		return Decision{}, Errorf(CodeBadMessage, `"confirmed" stands beside /response: send one of them`)
	}
	return decodeResponse(f.Response)
}

// decodeResponse reads the response of a FunctionResponse.
func decodeResponse(raw json.RawMessage) (Decision, error) {
	var f decisionForms
	if err := Decode(raw, &f, MessageLimits); err != nil {
		return Decision{}, err
	}
	if f.Response == nil {
		return f.decision()
	}
	var text string // ADK's web clients send the object as a string
	if err := json.Unmarshal(f.Response, &text); err != nil || f.Confirmed != nil {
		return Decision{}, Errorf(CodeBadMessage, "/response/response is not the only key, or no JSON object in a string")
	}
	f = decisionForms{}
	if err := Decode([]byte(text), &f, MessageLimits); err != nil {
		return Decision{}, err
	}
	return f.decision()
}

func (f *decisionForms) decision() (Decision, error) {
	if f.Confirmed == nil {
		return Decision{}, Errorf(CodeBadMessage, `"confirmed" is missing: send {"confirmed":true} or {"confirmed":false}`)
	}
	d := Decision{Confirmed: *f.Confirmed, Hint: f.Hint, Payload: f.Payload, Digest: f.Digest, Args: f.Args}
	if bytes.Equal(d.Payload, []byte("null")) {
		d.Payload = nil
	}
	if bytes.Equal(d.Args, []byte("null")) {
		d.Args = nil
	}
	if len(d.Args) > 0 && d.Args[0] != '{' {
		return Decision{}, Errorf(CodeBadMessage, "edited arguments at /args are not a JSON object")
	}
	if len(d.Args) > 0 && !d.Confirmed {
		return Decision{}, Errorf(CodeBadMessage, `edited arguments at /args go with "confirmed":true: a denial runs nothing`)
	}
	return d, nil
}

// Confirmed is the decision as the call's envelope carries it to the tool.
type Confirmed struct {
	ID        string          `json:"id"`
	Confirmed bool            `json:"confirmed"` // false only for a tool that asked by itself
	Hint      string          `json:"hint,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
}

// Receipt tells an approver what became of a decision. It is published on the confirmation's receipt subject, at least
// once for each decision, and stored nowhere.
type Receipt struct {
	V            int    `json:"v"`
	Confirmation string `json:"confirmation"`
	Approver     string `json:"approver"`
	Seq          uint64 `json:"seq"` // of the decision in APPROVAL
	// Code is empty for a decision that counts. Otherwise already_decided, unknown_confirmation, expired, cancelled,
	// bad_message, conflicting_decision or forbidden say why it does not.
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message"`
}
