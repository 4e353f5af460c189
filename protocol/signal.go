package protocol

import (
	"encoding/json"
	"fmt"
)

// Guard is the body of the timer that notices that a coordinator died: one per adoption, set before its append.
type Guard struct {
	V           int    `json:"v"`
	Coordinator string `json:"coordinator"`
	Adoption    string `json:"adoption"`
	Expected    uint64 `json:"expected"` // last sequence of the session's log when the guard was set
	// Park marks the timer of a parked session instead: it fires at the first instant at which a call that waits ends.
	Park bool `json:"park,omitempty"`
}

// OwnRequest asks a coordinator about a session it may be driving, and hands it an input that reached another one.
type OwnRequest struct {
	V       int          `json:"v"`
	App     string       `json:"app"`
	Session string       `json:"session"`
	Input   *FoldedInput `json:"input,omitempty"`  // to be folded
	Answer  *Answer      `json:"answer,omitempty"` // to be folded: a call's result that was delivered; neither only asks
	Tool    string       `json:"tool,omitempty"`   // whose mailbox Answer is from
}

// OwnReply answers an OwnRequest.
type OwnReply struct {
	V      int  `json:"v"`
	Mine   bool `json:"mine"`             // the coordinator drives the session now
	Folded bool `json:"folded,omitempty"` // the log holds the input
}

// Token is a piece of an answer on its way to whoever watches: lossy, never truth, superseded by the recorded turn.
type Token struct {
	Turn  int         `json:"turn"` // number of the model request in this run, from 1
	Text  string      `json:"text,omitempty"`
	Calls []TokenCall `json:"calls,omitempty"` // calls seen so far; ids are those of the recorded turn
}

// TokenCall names a call that the model is asking for.
type TokenCall struct {
	ID   string `json:"id"`
	Tool string `json:"tool"`
}

// Progress is a running call's word on how far it is: lossy, never truth.
type Progress struct {
	Worker  string          `json:"worker"`
	Attempt int             `json:"attempt"`
	Percent float64         `json:"percent,omitempty"` // 0 to 100; 0 is unknown
	Message string          `json:"message,omitempty"`
	Piece   bool            `json:"piece,omitempty"` // Message is the next piece of a streamed answer, to be shown after the one before
	Asks    string          `json:"asks,omitempty"`  // call, of a session of its own, that asks people what this one waits for
	Data    json.RawMessage `json:"data,omitempty"`
}

// DeadLetter is a message or call that was given up, with its reason and bytes.
type DeadLetter struct {
	V       int    `json:"v"`
	Code    Code   `json:"code"`
	Reason  string `json:"reason"`
	Stream  string `json:"stream"`
	Subject string `json:"subject"`
	Seq     uint64 `json:"seq"`
	App     string `json:"app,omitempty"`
	Session string `json:"session,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Call    string `json:"call,omitempty"`
	Data    []byte `json:"data"` // the message as it was, its first MaxLetterData bytes if it was longer
}

// MaxLetterData is how much of a message a dead-letter record holds, in bytes: the record of any message must itself be one
// that the broker takes.
const MaxLetterData = 512 << 10

// Encode writes the record. It cuts Data to MaxLetterData and says so in Reason.
func (l DeadLetter) Encode() ([]byte, error) {
	l.V = Version
	if n := len(l.Data); n > MaxLetterData {
		l.Data = l.Data[:MaxLetterData]
		l.Reason += fmt.Sprintf(" (only the first %d of its %d bytes are kept)", MaxLetterData, n)
	}
	return Encode(l)
}
