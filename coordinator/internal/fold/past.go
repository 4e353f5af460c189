package fold

import "github.com/toolfabric/toolfabric/protocol"

// MaxPast is how many ended waits a state remembers: what comes for older ones is told that nothing waits.
const MaxPast = 256

// Ended is a confirmation that was decided, or a call that waited or might have, after its end.
type Ended struct {
	ID        string        `json:"id"`            // of the confirmation or call
	Code      protocol.Code `json:"code"`          // already_decided, expired or cancelled; already_answered for a call
	Approvers []string      `json:"by,omitempty"`  // who decided it
	Confirmed bool          `json:"yes,omitempty"` // what they decided
	At        int64         `json:"at,omitempty"`  // of the event that holds the decision, Unix milliseconds; 0 is none or unknown
}

// Past remembers the newest MaxPast ends, oldest first.
type Past []Ended

func (p *Past) add(e Ended) {
	if len(*p) >= MaxPast {
		*p = append((*p)[:0:0], (*p)[1:]...)
	}
	*p = append(*p, e)
}

// Find returns what is known of an id's end.
func (p Past) Find(id string) (Ended, bool) {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i].ID == id {
			return p[i], true
		}
	}
	return Ended{}, false
}
