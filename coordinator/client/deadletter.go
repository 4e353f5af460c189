package client

import (
	"context"
	"strconv"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// Kinds of dead letters.
const (
	LetterInput    = "input"    // said to a session, and not readable
	LetterCall     = "call"     // a call that was no call, or that killed its worker each time
	LetterSession  = "session"  // a session whose runs died again and again
	LetterAdvisory = "advisory" // the broker's word on a call that no coordinator has settled yet
)

// DeadLetter is something that was given up, with its reason and bytes.
type DeadLetter struct {
	Number uint64    `json:"number"` // stream sequence in DLQ; names it
	Kind   string    `json:"kind"`   // one of the above, or the coordinators' word for the stream it came from
	ID     string    `json:"id"`     // of the record: a call's, a session's, or its own
	Time   time.Time `json:"time"`   // JetStream timestamp
	protocol.DeadLetter
}

// LetterPage is a piece of the list of dead letters, oldest first.
type LetterPage struct {
	Letters []DeadLetter `json:"letters"`
	Next    uint64       `json:"next,omitempty"` // where the next page begins; 0 is the end
}

// DeadLetters lists up to limit dead letters (0 is 100) from number from on, 0 is the beginning. The broker's advisories
// are in it only while no record says the same.
func (c *Client) DeadLetters(ctx context.Context, from uint64, limit int) (LetterPage, error) {
	if limit <= 0 {
		limit = parkedLimit
	}
	page := LetterPage{Letters: []DeadLetter{}}
	from = max(from, 1)
	for {
		stored, err := c.cfg.Bus.Read(ctx, c.cfg.Names.DeadLetters(), everything, from, limit)
		if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
			return page, err
		}
		for _, s := range stored {
			from = s.Seq + 1
			l, ok, err := c.letterOf(ctx, s)
			if err != nil {
				return page, err
			}
			if ok {
				page.Letters = append(page.Letters, l)
			}
			if len(page.Letters) == limit {
				page.Next = from
				return page, nil
			}
		}
		if len(stored) < limit {
			return page, nil
		}
	}
}

// letterOf reads a message of the dead letters. An advisory that a record repeats is none.
func (c *Client) letterOf(ctx context.Context, s natswire.Stored) (DeadLetter, bool, error) {
	n := c.cfg.Names
	l := DeadLetter{Number: s.Seq, Time: s.Time.UTC()}
	kind, id, ok := n.ParseDeadLetter(s.Subject)
	if ok {
		l.Kind, l.ID = kind, id
		if err := protocol.Decode(s.Data, &l.DeadLetter, protocol.MessageLimits); err != nil {
			p := protocol.ProblemOf(err) // whoever may write here may write anything: it is shown as what it is
			l.DeadLetter = protocol.DeadLetter{Code: p.Code, Reason: "a record that cannot be read: " + p.Message, Stream: n.DeadLetters(), Subject: s.Subject, Seq: s.Seq, Data: s.Data}
		}
		return l, true, nil
	}
	adv, err := n.ParseAdvisory(s.Subject, s.Data)
	if err != nil {
		return l, false, nil
	}
	l.Kind, l.ID = LetterAdvisory, strconv.FormatUint(s.Seq, 10)
	l.DeadLetter = protocol.DeadLetter{Stream: n.Calls(), Subject: n.CallSubject(adv.Consumer), Seq: adv.Seq, Tool: adv.Consumer}
	if adv.Kind == natswire.AdvisoryTerminated {
		l.Code, l.Reason = protocol.CodeBadMessage, "a worker refused the call for good: "+adv.Reason
		_, err = c.cfg.Bus.Last(ctx, n.DeadLetters(), n.DeadLetterSubject(LetterCall, strconv.FormatUint(adv.Seq, 10)))
		return l, protocol.CodeOf(err) == protocol.CodeNotFound, unlessNotFound(err)
	}
	l.Code, l.Reason = protocol.CodePoison, "delivered "+strconv.Itoa(adv.Deliveries)+" times and never settled; a coordinator will end the call"
	call, err := c.cfg.Bus.At(ctx, n.Calls(), adv.Seq)
	if err != nil {
		return l, false, unlessNotFound(err) // settled: a record has it
	}
	l.Data = call.Data
	if env, err := protocol.DecodeEnvelope(call.Data); err == nil {
		l.App, l.Session, l.Call = env.App, env.Session, env.Call
	}
	return l, true, nil
}

func unlessNotFound(err error) error {
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return nil
	}
	return err
}

// DeadLetter returns the dead letter that id names: by its number, or the newest record by its id. It returns code
// not_found with an id that is close.
func (c *Client) DeadLetter(ctx context.Context, id string) (DeadLetter, error) {
	n := c.cfg.Names
	if seq, err := strconv.ParseUint(id, 10, 64); err == nil {
		s, err := c.cfg.Bus.At(ctx, n.DeadLetters(), seq)
		if err == nil {
			if l, ok, err := c.letterOf(ctx, s); ok || err != nil {
				return l, err
			}
		}
		if unlessNotFound(err) != nil {
			return DeadLetter{}, err
		}
		return DeadLetter{}, protocol.Errorf(protocol.CodeNotFound, "no dead letter %d; toolfabric dlq ls lists them", seq)
	}
	if err := protocol.CheckID(id); err != nil {
		return DeadLetter{}, err
	}
	stored, err := c.cfg.Bus.Latest(ctx, n.DeadLetters(), n.DeadLetterSubject("*", id))
	if unlessNotFound(err) != nil {
		return DeadLetter{}, err
	}
	if len(stored) > 0 {
		l, _, err := c.letterOf(ctx, stored[len(stored)-1])
		return l, err
	}
	page, err := c.DeadLetters(ctx, 0, parkedBatch)
	if err != nil {
		return DeadLetter{}, err
	}
	known := make([]string, 0, len(page.Letters))
	for _, l := range page.Letters {
		known = append(known, l.ID)
	}
	if meant := protocol.Meant(id, known); meant != "" {
		return DeadLetter{}, protocol.Errorf(protocol.CodeNotFound, "no dead letter %s; did you mean %s? toolfabric dlq ls lists them", id, meant)
	}
	return DeadLetter{}, protocol.Errorf(protocol.CodeNotFound, "no dead letter %s; toolfabric dlq ls lists them", id)
}

// DropLetter removes a dead letter for good. Idempotent.
func (c *Client) DropLetter(ctx context.Context, l DeadLetter) error {
	return c.cfg.Bus.Remove(ctx, c.cfg.Names.DeadLetters(), l.Number)
}
