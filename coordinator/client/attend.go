package client

import (
	"context"
	"iter"
	"maps"

	"github.com/toolfabric/toolfabric/protocol"
)

// Sent is what Attend waits for. The zero value is nothing.
type Sent struct {
	Input     string          // id of a message
	Decisions map[uint64]bool // sequences of decisions in APPROVAL
	Results   map[string]int  // rounds of calls that were given a result
}

// await takes copies of the maps. It returns a function that reports of a log's events, one after the other, whether all that was sent was folded.
func (s Sent) await() func(*protocol.Event) bool {
	s.Decisions, s.Results = maps.Clone(s.Decisions), maps.Clone(s.Results)
	return func(ev *protocol.Event) bool {
		for _, in := range ev.Inputs {
			if in.ID == s.Input && in.Kind != protocol.InputDecision {
				s.Input = ""
			}
			if in.Kind == protocol.InputDecision {
				delete(s.Decisions, in.Seq)
			}
		}
		for _, a := range ev.Answers {
			if round, ok := s.Results[a.Call]; ok && a.Round >= round {
				delete(s.Results, a.Call)
			}
		}
		return s.Empty()
	}
}

// Empty reports whether nothing was sent.
func (s Sent) Empty() bool { return s.Input == "" && len(s.Decisions) == 0 && len(s.Results) == 0 }

// Attend reads a session's log, of a session without one too, and has send say something to the session once it watches:
// so none of the text that follows is missed. It then yields every event, with tokens, progress and results between, until
// the run that takes up what was sent ends, which is the last update; each time it waits for somebody outside an update says
// so, and ranging on waits. The Replay is what was read so far, always. An error of send ends it; so does sending nothing,
// without one.
//
// With whole the log is read from its beginning. Else, where nothing waits from before, it is read from a snapshot: the
// Replay then lacks what is older, in its events and among the calls and confirmations that ended.
func (c *Client) Attend(ctx context.Context, app, session string, whole bool, send func(context.Context, *Replay) (Sent, error)) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		r := c.newReplay(app, session)
		from := uint64(0)
		if !whole {
			if seq, state, ok := c.newest(ctx, app, session); ok && state.Run == nil && len(state.Later) == 0 {
				from, r.run.state = seq+1, state
			}
		}
		said := false
		for u, err := range c.watch(ctx, app, session, from, true) {
			switch {
			case u.tail && !said:
				sent, err := send(ctx, r)
				if err != nil {
					yield(Update{}, err)
					return
				}
				if sent.Empty() {
					return
				}
				said, r.run.out.InputID, r.run.await = true, sent.Input, sent.await()
			case u.tail:
				if w := r.run.waiting(c.cfg.Names); w != nil && !yield(Update{Waiting: w}, nil) {
					return
				}
			case err != nil:
				if !yield(Update{}, err) {
					return
				}
			case u.Entry == nil:
				if said && !yield(u, nil) {
					return
				}
			default:
				ended := r.fold(*u.Entry)
				if said && !yield(u, nil) {
					return
				}
				if said && ended {
					yield(Update{Outcome: &r.run.out}, nil)
					return
				}
			}
		}
	}
}
