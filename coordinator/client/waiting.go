package client

import (
	"strings"

	"github.com/toolfabric/toolfabric/coordinator/internal/view"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// Waiting is what a parked run waits for outside: decisions and results. Calls that workers run are not in it.
type Waiting struct {
	Seq    uint64   `json:"seq"`              // of the log event that parked it
	Queued bool     `json:"queued,omitempty"` // the input came while calls waited: it is taken up when they have ended
	Calls  []Parked `json:"calls"`            // in call order
}

// Outcome is that the run of an input waits.
func (w *Waiting) Outcome(app, session, inputID string) Outcome {
	return Outcome{App: app, Session: session, InputID: inputID, Seq: w.Seq, Waiting: w}
}

// String says in a sentence what the session waits for: "the session waits for a decision on transfer".
func (w *Waiting) String() string {
	var b strings.Builder
	if w.Queued {
		b.WriteString("the message is queued; ")
	}
	b.WriteString("the session waits for ")
	for i, p := range w.Calls {
		if i > 0 {
			b.WriteString(", ")
		}
		if p.Confirmation != nil {
			b.WriteString("a decision on ")
		} else {
			b.WriteString("the result of ")
		}
		b.WriteString(p.Tool)
	}
	return b.String()
}

// waiting tells of a park once, when the log holds nothing after it. nil is nothing to tell. A parked session whose calls
// are all with workers waits for nobody.
func (r *run) waiting(n natswire.Names) *Waiting {
	s := &r.state
	if !r.begun || s.Stopped != protocol.StopParked || s.Seq == r.told {
		return nil
	}
	r.told = s.Seq
	w := &Waiting{Seq: s.Seq, Queued: r.queued}
	for _, wait := range s.Waiting() {
		if !wait.Told {
			w.Calls = append(w.Calls, Parked{Parked: view.Parked(n, s, wait)})
		}
	}
	if len(w.Calls) == 0 {
		return nil
	}
	return w
}
