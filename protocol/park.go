package protocol

import "encoding/json"

// Parked is one call that waits, as the PARK bucket lists it: an index of the logs, rebuilt from them when it is lost.
type Parked struct {
	V       int             `json:"v"`
	App     string          `json:"app"`
	Session string          `json:"session"`
	User    string          `json:"user"`
	Agent   string          `json:"agent,omitempty"`
	Call    string          `json:"call"`
	Round   int             `json:"round"`
	Tool    string          `json:"tool"`
	Digest  string          `json:"digest"`
	Effect  Effect          `json:"effect"`
	Args    json.RawMessage `json:"args"` // what would run, edited arguments included

	// Confirmation is the question that is open; nil for a call that waits for its result.
	Confirmation *Confirmation `json:"confirmation,omitempty"`
	Approvers    []string      `json:"approvers,omitempty"` // who has agreed so far
	Reply        string        `json:"reply"`               // the subject to publish the decision or result on; "*" stands for the approver

	Since int64  `json:"since"`           // Unix milliseconds
	Until int64  `json:"until"`           // Unix milliseconds; the call ends then without an answer
	Seq   uint64 `json:"seq"`             // log sequence of the turn that asked for the call
	Trace string `json:"trace,omitempty"` // traceparent of the run's root span
}

// Waits says in a word what a parked call waits for.
func (p *Parked) Waits() string {
	if p.Confirmation != nil {
		return "confirmation"
	}
	return "result"
}
