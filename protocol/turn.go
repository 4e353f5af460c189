package protocol

import "encoding/json"

// Turn is one model request with what it answered and the verdict on each call it asked for. A turn made by a client's
// call has no Content. Nothing of a turn is acted on before its event is in the log; replay reads the verdicts and never
// judges again. One with an Agent and without Content is a run's entry into that agent, with what its callbacks set.
type Turn struct {
	Agent       string                     `json:"agent,omitempty"`        // who spoke
	AgentDigest string                     `json:"agent_digest,omitempty"` // of the agent's definition when it was asked
	Model       string                     `json:"model,omitempty"`
	RequestSeq  uint64                     `json:"request_seq"`           // log sequence the request was built from
	Content     json.RawMessage            `json:"content,omitempty"`     // genai.Content of role model, as the provider gave it
	Finish      string                     `json:"finish,omitempty"`      // provider's finish reason
	Usage       *Usage                     `json:"usage,omitempty"`       // nil: the provider did not say
	By          Speaker                    `json:"by,omitempty"`          // in whose words Content is
	StateDelta  map[string]json.RawMessage `json:"state_delta,omitempty"` // of the agent itself: its output key, and what its callbacks set
	After       json.RawMessage            `json:"after,omitempty"`       // genai.Content that the agent's after-callback said behind its last answer
	Calls       []Call                     `json:"calls,omitempty"`       // in the order of the function calls in Content
	Started     int64                      `json:"started,omitempty"`     // Unix milliseconds
	Ended       int64                      `json:"ended,omitempty"`       // Unix milliseconds
	Span        string                     `json:"span,omitempty"`        // traceparent of the model call's span
}

// Speaker is who gave a turn's content.
type Speaker string

// The speakers.
const (
	SpeakerModel       Speaker = ""             // the model
	SpeakerBeforeModel Speaker = "before_model" // a callback, in the model's place
	SpeakerBeforeAgent Speaker = "before_agent" // a callback that ended the run before its agent began
	SpeakerAfterAgent  Speaker = "after_agent"  // a callback, behind calls that ended the run
)

// Usage counts tokens of one model request. Fields are the provider's; 0 is a count, a missing Usage is unknown.
type Usage struct {
	Prompt     int `json:"prompt"`
	Candidates int `json:"candidates"`
	Thoughts   int `json:"thoughts,omitempty"`
	Cached     int `json:"cached,omitempty"`
	Total      int `json:"total"`
}

// Verdict is policy's word on a call.
type Verdict string

// The verdicts.
const (
	VerdictRun    Verdict = "run"
	VerdictAsk    Verdict = "ask"    // Confirmation is the question; it runs when people agreed
	VerdictRefuse Verdict = "refuse" // Refusal is its answer
	VerdictAnswer Verdict = "answer" // Answer is its answer: it follows from the arguments, or a callback gave it; nothing runs
)

// Mailbox is where a call's result is stored.
type Mailbox string

// The mailboxes.
const (
	MailboxResults Mailbox = "results" // waited for by the session's owner
	MailboxWake    Mailbox = "wake"    // its delivery wakes a parked session
)

// Call is one requested tool execution with its verdict, as recorded in the turn.
type Call struct {
	ID         string          `json:"id"`                    // ours, unguessable; the idempotency key
	ProviderID string          `json:"provider_id,omitempty"` // the model's, only echoed back; may repeat in a session
	Tool       string          `json:"tool"`                  // name the model used
	Args       json.RawMessage `json:"args"`                  // exact bytes, a JSON object
	Digest     string          `json:"digest,omitempty"`      // of the declaration the arguments were checked against
	Effect     Effect          `json:"effect,omitempty"`
	Verdict    Verdict         `json:"verdict"`
	Refusal    *Result         `json:"refusal,omitempty"`    // the answer of a refused call
	Answer     *Result         `json:"answer,omitempty"`     // the answer of a call with verdict answer
	AnswersTo  Mailbox         `json:"answers_to,omitempty"` // of the first round; later rounds answer to wake
	Queue      int64           `json:"queue_ms,omitempty"`   // how long it may wait for a worker
	Timeout    int64           `json:"timeout_ms,omitempty"` // how long one attempt may run
	Budget     int64           `json:"budget_ms,omitempty"`  // from the At that allowed it to the end of its round, all attempts in
	Park       int64           `json:"park_ms,omitempty"`    // how long it may wait for a person or for a result from outside
	Span       string          `json:"span,omitempty"`       // traceparent of the dispatching span

	LongRunning  bool          `json:"long_running,omitempty"` // its first answer may be interim
	Confirmation *Confirmation `json:"confirmation,omitempty"` // the question of a call with verdict ask

	// Shown is what people see in the place of a response while they are asked Confirmation, a JSON object; nil is ADK's
	// placeholder. A callback made it.
	Shown json.RawMessage `json:"shown,omitempty"`
}

// Recorded is the answer that the turn itself holds: of a refused call, or of one that needs no worker; nil for the others.
func (c *Call) Recorded() *Result {
	switch c.Verdict {
	case VerdictRefuse:
		return c.Refusal
	case VerdictAnswer:
		return c.Answer
	}
	return nil
}

// Answer is how a call ended, or what it waits for: an interim answer begins the call's next round.
type Answer struct {
	Call  string `json:"call"`
	Round int    `json:"round"`
	Seq   uint64 `json:"seq,omitempty"` // stream sequence of the stored result
	Result
	// Confirmation is the question that an answer with outcome asks entails.
	Confirmation *Confirmation `json:"confirmation,omitempty"`
}
