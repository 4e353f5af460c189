package coordinator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
)

// maxTurnAnswers is what the answers of one turn may take in their event, in bytes; the largest move out first.
const maxTurnAnswers = 192 << 10

// offload moves an answer's value to the object store and leaves a view of it of about keep bytes: head, tail, size and where
// the whole is. The object is stored before any event names it; its name is its hash, so that storing it again is no harm.
func (c *Coordinator) offload(ctx context.Context, a protocol.Answer, keep int) (protocol.Answer, error) {
	sum := sha256.Sum256(a.Value)
	ref := &protocol.Ref{Name: "sha256-" + hex.EncodeToString(sum[:]), SHA256: hex.EncodeToString(sum[:]), Size: int64(len(a.Value)), Type: "application/json"}
	if err := c.cfg.Bus.PutObject(ctx, ref.Name, a.Value); err != nil {
		return a, err
	}
	fault.Point("K24")
	a.Body = ref
	a.Value = cappedView{Truncated: true, Size: len(a.Value), Ref: ref.Name, Head: string(a.Value), Tail: string(a.Value), Note: viewNote}.encode(keep)
	return a, nil
}

// cappedView is what a model reads in the place of a value that is too large to show.
type cappedView struct {
	Truncated bool   `json:"truncated"`
	Size      int    `json:"size"`
	Ref       string `json:"ref"`
	Head      string `json:"head"`
	Tail      string `json:"tail"`
	Note      string `json:"note"`
}

const (
	viewNote = "the value was too large to show: these are the beginning and the end of its JSON"
	viewRest = 512 // what a view takes beside head and tail, at most
)

// encode writes the view with a head and a tail that take keep bytes or less once they are quoted.
func (v cappedView) encode(keep int) json.RawMessage {
	head, tail := v.Head, v.Tail
	for half := keep / 2; ; half = half * 3 / 4 {
		v.Head = strings.ToValidUTF8(head[:min(half, len(head))], "")
		v.Tail = strings.ToValidUTF8(tail[max(len(tail)-half, 0):], "")
		data, err := protocol.Encode(v)
		if err != nil {
			panic(err) // plain strings and numbers always encode
		}
		if len(data) <= keep+viewRest || half == 0 {
			return data
		}
	}
}

// fit makes room for the answers of the open turn in one event: while they take too much, the largest are cut down to an
// equal share.
func (s *session) fit(ctx context.Context) error {
	answers := s.state.Answers()
	total := 0
	for _, a := range answers {
		total += len(a.Value)
	}
	if total <= maxTurnAnswers {
		return nil
	}
	slices.SortFunc(answers, func(a, b protocol.Answer) int { return len(b.Value) - len(a.Value) })
	keep := min(max(maxTurnAnswers/len(answers)-viewRest, 0), protocol.MaxModelResult)
	for _, a := range answers {
		if total <= maxTurnAnswers || len(a.Value) <= keep+viewRest {
			return nil
		}
		small, err := s.c.shorten(ctx, a, keep)
		if err != nil {
			return err
		}
		total += len(small.Value) - len(a.Value)
		if err := s.step(ctx, fold.Resized{Answer: small}); err != nil {
			return err
		}
	}
	return nil
}

// shorten offloads an answer, or cuts the view that is left of one that was: its reference stays.
func (c *Coordinator) shorten(ctx context.Context, a protocol.Answer, keep int) (protocol.Answer, error) {
	var v cappedView
	if a.Body == nil || json.Unmarshal(a.Value, &v) != nil || !v.Truncated {
		return c.offload(ctx, a, keep)
	}
	a.Value = v.encode(keep)
	return a, nil
}

// clip cuts a text for a person or a model to read, at a character's end.
func clip(text string, max int) string {
	if len(text) <= max {
		return text
	}
	for max > 0 && !utf8.RuneStart(text[max]) {
		max--
	}
	return text[:max] + "..."
}
