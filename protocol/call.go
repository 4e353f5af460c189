package protocol

import "encoding/json"

// Effect is what running a tool does to the world, and so how often it may be started.
type Effect string

// The effect classes. The zero value in a declaration means AtMostOnce.
const (
	EffectRead       Effect = "read"         // no effect: may be repeated
	EffectIdempotent Effect = "idempotent"   // may be repeated with the same idempotency key
	EffectAtMostOnce Effect = "at_most_once" // never started twice for one call and round: needs a claim
)

// Envelope is a call on its way to a worker. The attempt is the broker's delivery count, the idempotency key is Call, and
// trace context is in the message's headers.
type Envelope struct {
	V         int             `json:"v"`
	App       string          `json:"app"`
	User      string          `json:"user"`
	Session   string          `json:"session"`
	Agent     string          `json:"agent,omitempty"`
	Call      string          `json:"call"`
	Round     int             `json:"round"` // folded interim answers so far; never attempts
	Tool      string          `json:"tool"`
	Digest    string          `json:"digest"` // of the declaration the arguments were checked against
	Effect    Effect          `json:"effect"`
	Args      json.RawMessage `json:"args"`
	AnswersTo Mailbox         `json:"answers_to"`
	// StartBy is the instant after which no worker may take the call any more, Deadline the instant after which it must
	// neither start nor go on. Unix milliseconds, UTC, of the broker's clock. An instant survives redelivery where a
	// duration would start over.
	StartBy  int64                      `json:"start_by"`
	Deadline int64                      `json:"deadline"`
	Timeout  int64                      `json:"timeout_ms"`      // of one attempt
	State    map[string]json.RawMessage `json:"state,omitempty"` // the session's state when the call was allowed
	// Confirmation is people's word on this call; nil when nobody was asked. A call that has one needs a claim and the
	// exact declaration digest, whatever its effect class.
	Confirmation *Confirmed `json:"confirmation,omitempty"`
}

// DecodeEnvelope reads a call strictly. It returns an *Error of code bad_message, too_large, unsupported_version, bad_id
// or bad_name.
func DecodeEnvelope(data []byte) (Envelope, error) {
	var env Envelope
	if err := Decode(data, &env, MessageLimits); err != nil {
		return Envelope{}, err
	}
	if err := CheckVersion(env.V); err != nil {
		return env, err
	}
	for _, id := range []string{env.Session, env.Call} {
		if err := CheckID(id); err != nil {
			return env, err
		}
	}
	for _, name := range []string{env.App, env.Tool} {
		if err := CheckName(name); err != nil {
			return env, err
		}
	}
	switch env.Effect {
	case EffectRead, EffectIdempotent, EffectAtMostOnce:
	default:
		return env, Errorf(CodeBadMessage, "unknown effect %.64q at /effect: it is read, idempotent or at_most_once", env.Effect)
	}
	if env.Round < 0 {
		return env, Errorf(CodeBadMessage, "round %d at /round is negative", env.Round)
	}
	return env, nil
}

// Claim is the right to start a call's effect. Whoever stores it first on the call's claim subject decides.
type Claim struct {
	V           int    `json:"v"`
	Worker      string `json:"worker,omitempty"`      // set when a worker claims, to run it
	Coordinator string `json:"coordinator,omitempty"` // set when a coordinator claims, so that it never runs; counts as every coordinator's
	Attempt     int    `json:"attempt,omitempty"`
	Code        Code   `json:"code,omitempty"` // why a coordinator claimed
}
