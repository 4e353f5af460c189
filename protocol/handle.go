package protocol

import (
	"strconv"
	"strings"
)

// Handle names the round of a call that a result from outside answers: what a long-running tool hands to whoever finishes
// its work. It is the tail of a mailbox that wakes the session: the result is a publish on <namespace>.wake.<handle>.
type Handle struct {
	App     string
	Tool    string
	Session string
	Call    string
	Round   int // from 1: round 0 is the tool's own
}

// String is the text to store, <app>.<tool>.<session>.<call>.<round>: at most 280 bytes of letters, digits, "_", "-" and
// ".". It holds the call's unguessable id; whoever may publish and knows it can answer the call.
func (h Handle) String() string {
	return strings.Join([]string{h.App, h.Tool, h.Session, h.Call, strconv.Itoa(h.Round)}, ".")
}

// Next is the handle of the round that an interim result begins.
func (h Handle) Next() Handle {
	h.Round++
	return h
}

// ParseHandle reads the text of a handle. It returns an *Error of code bad_id for anything else.
func ParseHandle(text string) (Handle, error) {
	bad := func() (Handle, error) {
		return Handle{}, Errorf(CodeBadID, "%.80q is no handle of a call: it is <app>.<tool>.<session>.<call>.<round>, as the tool's context gave it", text)
	}
	t := strings.Split(text, ".")
	if len(t) != 5 {
		return bad()
	}
	h := Handle{App: t[0], Tool: t[1], Session: t[2], Call: t[3]}
	var err error
	if h.Round, err = strconv.Atoi(t[4]); err != nil || h.Round < 1 || strconv.Itoa(h.Round) != t[4] {
		return bad()
	}
	if CheckName(h.App) != nil || CheckName(h.Tool) != nil || CheckID(h.Session) != nil || CheckID(h.Call) != nil {
		return bad()
	}
	return h, nil
}
