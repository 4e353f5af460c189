package fold

import (
	"fmt"
	"slices"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
)

// question finds the call that an open confirmation asks about.
func (s *State) question(confirmation string) (*protocol.Call, *Round) {
	for c := range s.open {
		if r := s.round(c.ID); r != nil && r.Asks != nil && r.Asks.ID == confirmation {
			return c, r
		}
	}
	return nil, nil
}

// Question returns what is asked under an open confirmation's id.
func (s *State) Question(confirmation string) (protocol.Call, protocol.Confirmation, bool) {
	c, r := s.question(confirmation)
	if c == nil {
		return protocol.Call{}, protocol.Confirmation{}, false
	}
	return *c, *r.Asks, true
}

// JudgeDecision says why a decision does not count; nil accepts it. What it refuses stays refused whatever the log says
// later. known is false when this state knows nothing of the confirmation: another session's, none, or one that a newer
// log asks.
func (s *State) JudgeDecision(in protocol.FoldedInput) (refused *protocol.Problem, known bool) {
	refuse := func(code protocol.Code, format string, args ...any) (*protocol.Problem, bool) {
		return &protocol.Problem{Code: code, Message: fmt.Sprintf(format, args...)}, true
	}
	d := in.Decision
	if p := s.Closed(); p != nil {
		return p, true
	}
	if c, r := s.question(d.Confirmation); c != nil {
		switch q := r.Asks; {
		case d.Confirmed && s.ambiguous(c, r):
			return refuse(protocol.CodeDigestMismatch, "the session's log does not say with one voice what %s is about: it was changed, and nothing runs; cancel the call", d.Confirmation)
		case in.Sent > q.Expires && !fault.Mutant("decision-after-expiry"):
			return refuse(protocol.CodeExpired, "the decision was stored after the confirmation had expired")
		case s.cancelled(r) && !fault.Mutant("cancelled-still-asked"):
			return refuse(protocol.CodeCancelled, "the call was cancelled")
		case d.Digest != "" && d.Digest != q.Digest && !fault.Mutant("decision-without-digest"):
			return refuse(protocol.CodeDigestMismatch, "the digest is not the confirmation's: the decision is about other arguments; see approvals show")
		case q.NotRequester && in.Client == s.User && !fault.Mutant("requester-decides"):
			return refuse(protocol.CodeForbidden, "%s asked for this call and may not decide it", in.Client)
		case fault.Mutant("approver-counts-twice"):
		case slices.Contains(r.Agreed, in.Client) && d.Confirmed:
			return refuse(protocol.CodeDecided, "%s has agreed before; %d of %d have", in.Client, len(r.Agreed), q.Quorum())
		case slices.Contains(r.Agreed, in.Client):
			return refuse(protocol.CodeConflict, "%s has agreed before: the first word of an approver stands", in.Client)
		}
		return nil, true
	}
	e, ok := s.Past.Find(d.Confirmation)
	switch {
	case !ok:
		if q := s.askedAbout(d.Confirmation); q != "" {
			return refuse(protocol.CodeUnknownConfirm, "%s is a call and no confirmation: what is asked about it is %s", d.Confirmation, q)
		}
		return nil, false
	case e.Code == protocol.CodeExpired:
		return refuse(protocol.CodeExpired, "the confirmation expired before anybody decided it")
	case e.Code == protocol.CodeCancelled:
		return refuse(protocol.CodeCancelled, "the call was cancelled")
	case slices.Contains(e.Approvers, in.Client) && e.Confirmed != d.Confirmed:
		return refuse(protocol.CodeConflict, "%s decided otherwise before: the first decision stands", in.Client)
	}
	return refuse(protocol.CodeDecided, "the confirmation was decided before: %s", e.word())
}

// Decides reports whether an accepted decision settles its question: it denies, or it is the last agreement that is needed.
// Edited arguments make another question.
func (s *State) Decides(in protocol.FoldedInput) bool {
	_, r := s.question(in.Decision.Confirmation)
	return r != nil && len(in.Decision.Args) == 0 && (!in.Decision.Confirmed || len(r.Agreed)+1 >= r.Asks.Quorum())
}

// Word is what people said of a call in the round that it is in; nil when they were not asked, or have not decided.
func (s *State) Word(call string) *protocol.Confirmed {
	if r := s.round(call); r != nil {
		return r.Given
	}
	return nil
}

// ambiguous reports whether a log that no coordinator wrote asks about c under an id that stands for something else too, or
// with a digest of something else.
func (s *State) ambiguous(c *protocol.Call, r *Round) bool {
	q := r.Asks
	for other := range s.open {
		if o := s.round(other.ID); other != c && o != nil && o.Asks != nil && o.Asks.ID == q.ID {
			return true
		}
	}
	args := c.Args
	if r.Args != nil {
		args = r.Args
	}
	_, before := s.Past.Find(q.ID)
	return before || q.Digest != protocol.ConfirmationDigest(s.Session, c, args, q.Expires, q.ID)
}

// askedAbout is the confirmation that is open about a call, by the call's id or the model's name for it; empty for none.
func (s *State) askedAbout(call string) string {
	for c := range s.open {
		if r := s.round(c.ID); (c.ID == call || c.ProviderID == call) && r != nil && r.Asks != nil {
			return r.Asks.ID
		}
	}
	return ""
}

// word says what was decided, and when.
func (e *Ended) word() string {
	word := "denied"
	if e.Confirmed {
		word = "approved"
	}
	if e.At > 0 {
		word += " at " + time.UnixMilli(e.At).UTC().Format(time.RFC3339)
	}
	return word
}

// foldDecision counts a decision that was accepted.
func foldDecision(s *State, at int64, in protocol.FoldedInput) {
	d := in.Decision
	c, r := s.question(d.Confirmation)
	if c == nil {
		return // in no log of ours, but a log must always be readable
	}
	past := Ended{ID: d.Confirmation, Code: protocol.CodeDecided, Confirmed: d.Confirmed, At: at}
	switch {
	case !d.Confirmed:
		past.Approvers = append(slices.Clone(r.Agreed), in.Client)
		if r.Asks.ToolDecides {
			r.Given = &protocol.Confirmed{ID: d.Confirmation, Hint: d.Hint, Payload: d.Payload}
			r.Asks, r.Agreed, r.At = nil, nil, at
		} // else the denied answer is in the same event
	case d.Asks != nil: // edited arguments need a decision of their own
		past.Approvers = append(slices.Clone(r.Agreed), in.Client)
		r.Asks, r.Args, r.Agreed = d.Asks, d.Args, nil
		if fault.Mutant("edit-inherits-approval") {
			r.Given = &protocol.Confirmed{ID: d.Confirmation, Confirmed: true}
			r.Asks, r.At = nil, at
		}
	default:
		r.Agreed = append(slices.Clip(r.Agreed), in.Client)
		if len(r.Agreed) < r.Asks.Quorum() {
			return
		}
		past.Approvers = r.Agreed
		r.Given = &protocol.Confirmed{ID: d.Confirmation, Confirmed: true, Hint: d.Hint, Payload: d.Payload}
		r.Asks, r.Agreed, r.At = nil, nil, at
	}
	s.Past.add(past)
}

// denied is how a call ends that people refused. Nothing of it reaches a worker.
func denied(c *protocol.Call) protocol.Result {
	return protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeDenied, Code: protocol.CodeDenied,
		Value: protocol.ErrorValue(fmt.Sprintf("error tool %q call is rejected", c.Tool))}
}

// unasked is how a call ends that was cancelled while it waited.
func unasked(r *Round) protocol.Result {
	text := "cancelled before anybody decided; it was not executed"
	if r.Outside {
		text = "cancelled while its result was awaited from outside; what it began may go on there"
	}
	return protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeCancelled, Code: protocol.CodeCancelled, Value: protocol.ErrorValue(text)}
}
