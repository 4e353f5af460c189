package protocol

import "encoding/json"

// Outcome is how a call ended.
type Outcome string

// The outcomes. Every call ends with exactly one; before that it may have interim ones, one a round.
const (
	OutcomeCompleted Outcome = "completed"
	OutcomeFailed    Outcome = "failed" // the tool's own failure, or a refusal: the model reads it and works around
	OutcomeDenied    Outcome = "denied" // people said no: not executed
	OutcomeCancelled Outcome = "cancelled"
	OutcomeExpired   Outcome = "expired"
	OutcomeUnknown   Outcome = "outcome_unknown" // the effect may have happened

	OutcomeAsks    Outcome = "asks"    // interim: the tool, or its provider, wants a person's word (Ask) and runs again with it
	OutcomePending Outcome = "pending" // interim: a long-running tool's result comes later; Value, if any, is for the model until then
)

// Interim reports whether the call goes on after this outcome.
func (o Outcome) Interim() bool { return o == OutcomeAsks || o == OutcomePending }

// Size limits of results in bytes.
const (
	MaxInlineResult = 768 << 10 // what a worker may answer inline
	MaxLogResult    = 128 << 10 // what the log holds; a larger value goes to the object store by reference
	MaxModelResult  = 32 << 10  // what a model is shown of one value that went by reference: its head and tail
)

// Result is what a call yields: the body of a message in a result mailbox, and a part of an Answer.
type Result struct {
	V       int             `json:"v"`
	Outcome Outcome         `json:"outcome"`
	Value   json.RawMessage `json:"value,omitempty"`   // a JSON object: the tool's own, {"result": v} or {"error": text}; may be missing when interim
	Ask     *Ask            `json:"ask,omitempty"`     // with outcome asks only
	Body    *Ref            `json:"body,omitempty"`    // where the whole value is, when Value is a capped view of it
	Code    Code            `json:"code,omitempty"`    // the fabric's reason; empty when the tool answered
	Actions *Actions        `json:"actions,omitempty"` // what the tool asked of the session
	Worker  string          `json:"worker,omitempty"`  // who ran it; a coordinator's id when nobody did
	Attempt int             `json:"attempt,omitempty"` // the delivery that ran it, from 1
	Started int64           `json:"started,omitempty"` // Unix milliseconds, the runner's clock
	Ended   int64           `json:"ended,omitempty"`   // Unix milliseconds, the runner's clock
	Span    string          `json:"span,omitempty"`    // traceparent of the execution's span
}

// Ask is what a tool wants a person to decide.
type Ask struct {
	Hint     string          `json:"hint,omitempty"`
	Payload  json.RawMessage `json:"payload,omitempty"`
	Provider bool            `json:"provider,omitempty"` // a function of the arguments asked, before the tool ran
}

// Ref names a body in the object store. Its reader verifies size and hash.
type Ref struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // lower-case hex
	Size   int64  `json:"size"`
	Type   string `json:"type"` // media type
}

// Actions is what a tool asks of the session besides its answer. The coordinator merges the actions of one turn in call
// order, when all of its calls have ended: of the agents to transfer to the last one is next, and without any the run ends
// when one call wants no summary.
type Actions struct {
	StateDelta        map[string]json.RawMessage `json:"state_delta,omitempty"` // null removes a key; temp: keys live as long as the run
	SkipSummarization bool                       `json:"skip_summarization,omitempty"`
	Escalate          bool                       `json:"escalate,omitempty"`
	TransferToAgent   string                     `json:"transfer_to_agent,omitempty"`
}

// ErrorValue is the value of a failed call: {"error": text}.
func ErrorValue(text string) json.RawMessage {
	b, _ := json.Marshal(map[string]string{"error": text})
	return b
}

// DecodeResult reads a result strictly. It returns an *Error of code bad_message or unsupported_version.
func DecodeResult(data []byte) (Result, error) {
	var r Result
	if err := Decode(data, &r, MessageLimits); err != nil {
		return Result{}, err
	}
	if err := CheckVersion(r.V); err != nil {
		return r, err
	}
	if r.Worker != "" {
		if err := CheckID(r.Worker); err != nil {
			return r, err
		}
	}
	if len(r.Value) == 0 && !r.Outcome.Interim() || len(r.Value) > 0 && r.Value[0] != '{' {
		return r, Errorf(CodeBadMessage, "value is not a JSON object at /value")
	}
	if (r.Ask != nil) != (r.Outcome == OutcomeAsks) {
		return r, Errorf(CodeBadMessage, "/ask goes with the outcome asks and with no other")
	}
	switch r.Outcome {
	case OutcomeCompleted, OutcomeFailed, OutcomeDenied, OutcomeCancelled, OutcomeExpired, OutcomeUnknown, OutcomeAsks, OutcomePending:
		return r, nil
	}
	return r, Errorf(CodeBadMessage, "unknown outcome %.40q at /outcome", r.Outcome)
}
