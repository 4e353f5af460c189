package protocol

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Declaration is a tool as its workers register it: the contract that a model is shown and arguments are checked against,
// and the settings of its pool.
type Declaration struct {
	V           int             `json:"v"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`         // JSON Schema of the arguments, of type object
	Response    json.RawMessage `json:"response,omitempty"` // JSON Schema of the result
	Effect      Effect          `json:"effect"`
	LongRunning bool            `json:"long_running,omitempty"`
	Confirm     bool            `json:"confirm,omitempty"` // runs only after a person agreed

	QueueTimeout int64 `json:"queue_timeout_ms,omitempty"` // waiting for a worker; 0 is DefaultQueueTimeout
	Timeout      int64 `json:"timeout_ms,omitempty"`       // of one attempt; 0 is DefaultTimeout
	Attempts     int   `json:"attempts,omitempty"`         // retryable failures included; 0 is DefaultAttempts
	MaxActive    int   `json:"max_active,omitempty"`       // calls running at once over the whole pool; 0 is no limit
	ParkTimeout  int64 `json:"park_timeout_ms,omitempty"`  // waiting for a person, or for a result from outside; 0 is DefaultParkTimeout
}

// Defaults of a declaration, and the size limits of its parts in bytes.
const (
	DefaultQueueTimeout = 30 * time.Second
	DefaultTimeout      = 30 * time.Second
	DefaultAttempts     = 3
	DefaultParkTimeout  = 7 * 24 * time.Hour
	MaxDescription      = 4 << 10
	MaxSchema           = 64 << 10
)

// ConfirmationName is the name of the function call by which clients know a question that a person is asked. No tool has it.
const ConfirmationName = "adk_request_confirmation"

// Digest identifies the contract: SHA-256 over name, description, schemas, effect class and policy, in lower-case hex.
// Settings of the pool are not in it.
func (d *Declaration) Digest() string {
	b, _ := json.Marshal([]any{d.V, d.Name, d.Description, orNull(d.Parameters), orNull(d.Response), d.Class(), d.LongRunning, d.Confirm})
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// SameContract reports whether the contract of other is written in the same bytes, so that the digest is the same. Contracts
// that are only written in another way have the same digest too.
func (d *Declaration) SameContract(other *Declaration) bool {
	return d.V == other.V && d.Name == other.Name && d.Description == other.Description && d.Class() == other.Class() && d.LongRunning == other.LongRunning &&
		d.Confirm == other.Confirm && bytes.Equal(d.Parameters, other.Parameters) && bytes.Equal(d.Response, other.Response)
}

// Class is the effect class, AtMostOnce when the declaration leaves it out.
func (d *Declaration) Class() Effect {
	if d.Effect == "" {
		return EffectAtMostOnce
	}
	return d.Effect
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// Registration is a worker's beat for one tool, kept in REG while the worker lives.
type Registration struct {
	V           int         `json:"v"`
	Worker      string      `json:"worker"`
	Declaration Declaration `json:"declaration"`
	Slots       int         `json:"slots"`  // calls it runs at once
	Active      int         `json:"active"` // calls it is running now
	Host        string      `json:"host,omitempty"`
	Started     int64       `json:"started"` // Unix milliseconds, the worker's clock
	Draining    bool        `json:"draining,omitempty"`
	Waiting     bool        `json:"waiting,omitempty"` // the tool's consumer is missing: coordinators make it
}

// DecodeRegistration reads a registration strictly and checks names and sizes; schemas are compiled by whoever uses them.
// It returns an *Error of code bad_message, unsupported_version, bad_name or bad_declaration.
func DecodeRegistration(data []byte) (Registration, error) {
	var r Registration
	if err := Decode(data, &r, MessageLimits); err != nil {
		return Registration{}, err
	}
	if err := CheckVersion(r.V); err != nil {
		return r, err
	}
	if err := CheckID(r.Worker); err != nil {
		return r, err
	}
	return r, r.Declaration.Check()
}

// Check validates what can be seen without compiling a schema. It returns an *Error of code bad_name or bad_declaration.
func (d *Declaration) Check() error {
	if err := CheckName(d.Name); err != nil {
		return err
	}
	if d.Name == ConfirmationName {
		return Errorf(CodeBadName, "%s: by this name clients know the questions that people are asked; give the tool another one", d.Name)
	}
	if len(d.Description) > MaxDescription {
		return Errorf(CodeBadDeclaration, "tool %s: the description has %d bytes, more than %d", d.Name, len(d.Description), MaxDescription)
	}
	if r, ok := HiddenRune(d.Description); ok {
		return Errorf(CodeBadDeclaration, "tool %s: the description holds U+%04X, which hides or turns text: whoever reads it must see what the model is told", d.Name, r)
	}
	if len(d.Parameters)+len(d.Response) > MaxSchema {
		return Errorf(CodeBadDeclaration, "tool %s: the schemas have %d bytes, more than %d", d.Name, len(d.Parameters)+len(d.Response), MaxSchema)
	}
	if len(d.Parameters) == 0 || d.Parameters[0] != '{' {
		return Errorf(CodeBadDeclaration, "tool %s: parameters is not a JSON object: a tool without arguments has {\"type\":\"object\",\"properties\":{}}", d.Name)
	}
	switch d.Class() {
	case EffectRead, EffectIdempotent, EffectAtMostOnce:
	default:
		return Errorf(CodeBadDeclaration, "tool %s: unknown effect %.40q: it is read, idempotent or at_most_once", d.Name, d.Effect)
	}
	if d.QueueTimeout < 0 || d.Timeout < 0 || d.Attempts < 0 || d.MaxActive < 0 || d.ParkTimeout < 0 {
		return Errorf(CodeBadDeclaration, "tool %s: timeouts, attempts and max_active are not negative", d.Name)
	}
	return nil
}
