package coordinator

import (
	"context"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/coordinator/internal/turn"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// What callbacks have a say in comes to the loop twice: it is shown to them beside the loop, and folded with what they said.
// Until then nothing of it counts: a delivery is not acked, an answer stays in its mailbox, and whoever adopts the session
// after a crash asks its own callbacks.

// reviewed is what was shown to callbacks, about a call or an input, and what they made of it: an arrival or an answered.
type reviewed struct {
	of    *review
	about string
	item  any
}

// review is one look of callbacks.
type review struct {
	raw    any                // the item without them
	cancel context.CancelFunc // nobody waits for it any more
}

// review has ask beside the loop. raw is the item as it came, late makes the one when ask does not end.
func (s *session) review(about string, raw any, ask func(ctx context.Context) any, late func(error) any) {
	if s.drive.reviews == nil {
		s.drive.reviews = map[string]*review{}
	}
	ctx, cancel := context.WithCancel(s.drive.ctx)
	of := &review{raw, cancel}
	s.drive.reviews[about] = of
	s.aside(ctx, func(ctx context.Context) any { return reviewed{of, about, ask(ctx)} }, func(err error) any { return reviewed{of, about, late(err)} })
}

// forgo brings what callbacks are looking at to the loop as it is: somebody cancelled the call.
func (s *session) forgo(about string) {
	if of := s.drive.reviews[about]; of != nil {
		s.inbox.put(reviewed{of, about, of.raw})
	}
}

// reviewedItem folds what callbacks have seen, at once: a second copy of it that waits in the loop's hand is not shown again.
func (s *session) reviewedItem(ctx context.Context, r reviewed) error {
	if s.drive.reviews[r.about] != r.of {
		return nil // of an earlier adoption, or given up
	}
	r.of.cancel()
	delete(s.drive.reviews, r.about)
	switch item := r.item.(type) {
	case arrival:
		return s.receive(ctx, []arrival{item})
	case answered:
		if c, ok := s.state.Call(item.answer.Call); ok {
			return s.conclusion(ctx, c, item)
		}
	}
	return nil
}

// shows reports whether callbacks are told how an open call ended. Of one that somebody cancelled they are not.
func (s *session) shows(call string) *turn.Hooks {
	h := s.hooks(s.agentOf(call))
	if !h.Answers() || s.state.Run != nil && s.state.Run.Cancelled {
		return nil
	}
	return h
}

// reviewAnswer shows an answer of a call to callbacks, unless there are none. wrap makes the item that comes to the loop.
func (s *session) reviewAnswer(c protocol.Call, a answered, wrap func(answered) any) bool {
	h := s.shows(c.ID)
	if h == nil {
		return false
	}
	s.showAnswer(h, c, a, wrap)
	return true
}

// showAnswer begins the review. It is apart so that a call which nobody wants to see takes no memory for it.
func (s *session) showAnswer(h *turn.Hooks, c protocol.Call, a answered, wrap func(answered) any) {
	m, word := s.moment(s.agentOf(c.ID), h, nil), s.state.Word(c.ID)
	free := room(m.Run.State)
	s.review(c.ID, wrap(a), func(ctx context.Context) any {
		seen := a
		m.Begin(ctx, free)
		seen.answer.Result = m.After(&c, word, a.answer.Result)
		return wrap(s.compact(ctx, seen))
	}, func(err error) any {
		unseen := a
		unseen.answer.Result = turn.Late(a.answer.Result, err)
		return wrap(unseen)
	})
}

// compact moves a large value to the object store, however long that takes.
func (s *session) compact(ctx context.Context, a answered) answered {
	for wait := 100 * time.Millisecond; len(a.answer.Value) > protocol.MaxLogResult; wait = min(2*wait, 5*time.Second) {
		small, err := s.c.offload(ctx, a.answer, protocol.MaxModelResult)
		if err == nil {
			a.answer = small
			break
		}
		s.c.cfg.Logger.Warn("a large result waits for the object store", "call", a.answer.Call, "error", err)
		if natswire.Sleep(ctx, s.c.cfg.Clock, wait) != nil {
			break // who folds it tries again
		}
	}
	return a
}

// reviewArrivals begins the reviews of what came and is to be shown to callbacks, and returns the rest. What comes for a call
// that is being reviewed comes again.
func (s *session) reviewArrivals(arrivals []arrival) []arrival {
	if len(s.c.hooks) == 0 || s.c.agents[s.key.app] == nil {
		return arrivals
	}
	rest := arrivals[:0:0]
	for _, a := range arrivals {
		about := s.reviewed(&a)
		switch {
		case about == "":
			rest = append(rest, a)
			continue
		case s.drive.reviews[about] != nil:
			s.postpone([]arrival{a}, nil, 2*time.Second)
			continue
		}
		if a.reply != "" { // who passed it on would take silence for death; it comes again
			s.c.reply(context.Background(), a.reply, protocol.OwnReply{Mine: true})
			a.reply = ""
		}
		a.release = func() {} // this round releases it
		s.reviewArrival(about, a)
	}
	return rest
}

// shown parts what callbacks are to see before it is folded from the rest.
func (s *session) shown(arrivals []arrival) (rest, shown []arrival) {
	if len(s.c.hooks) == 0 || s.c.agents[s.key.app] == nil {
		return arrivals, nil
	}
	for _, a := range arrivals {
		if s.reviewed(&a) != "" {
			shown = append(shown, a)
		} else {
			rest = append(rest, a)
		}
	}
	return rest, shown
}

// reviewed is what an arrival is to be shown to callbacks as; empty when they have no say in it, or have said it.
func (s *session) reviewed(a *arrival) string {
	switch {
	case a.seen:
	case a.answer != nil:
		if id := a.answer.answer.Call; s.shows(id) != nil {
			return id
		}
	case a.input.Kind == protocol.InputMessage:
		if s.hooks("").Messages() && a.input.Refused == nil {
			return "input " + a.input.ID
		}
	case a.input.Decision != nil:
		if c, _, ok := s.state.Question(a.input.Decision.Confirmation); ok && s.state.Decides(a.input) && s.hooks(s.agentOf(c.ID)).Decisions() {
			return c.ID
		}
	}
	return ""
}

func (s *session) reviewArrival(about string, a arrival) {
	a.seen = true
	switch {
	case a.answer != nil:
		c, _ := s.state.Call(about)
		s.reviewAnswer(c, *a.answer, func(answer answered) any {
			seen := a
			seen.answer = &answer
			return seen
		})
	case a.input.Decision != nil:
		s.reviewDecision(about, a)
	default:
		m := s.moment("", s.hooks(""), nil)
		s.review(about, a, func(ctx context.Context) any {
			seen := a
			m.Begin(ctx, 0)
			content, err := m.UserMessage(a.input.Content)
			if err != nil {
				seen.input.Refused = protocol.ProblemOf(err)
			} else {
				seen.input.Content = content
			}
			return seen
		}, func(err error) any {
			unseen := a
			unseen.input.Refused = protocol.ProblemOf(err)
			return unseen
		})
	}
}

// reviewDecision asks the callbacks about a call once more when people have decided.
func (s *session) reviewDecision(call string, a arrival) {
	c, _ := s.state.Call(call)
	name := s.agentOf(call)
	_, q, _ := s.state.Question(a.input.Decision.Confirmation)
	m := s.moment(name, s.hooks(name), nil)
	round, free, desk := s.state.RoundOf(call), room(m.Run.State), s.c.desk(s.key, s.state.User)
	s.review(call, a, func(ctx context.Context) any {
		seen := a
		m.Begin(ctx, free)
		result, over := m.Decided(&c, a.input.Decision, q.ToolDecides)
		seen.input.StateDelta = m.Delta
		if over {
			seen.ends = &protocol.Answer{Call: call, Round: round, Result: result}
			if result.Outcome == protocol.OutcomeAsks {
				seen.ends.Confirmation = desk.CallbackAsks(&c, name, c.Args, result.Ask)
			}
		}
		return seen
	}, func(err error) any {
		unseen := a
		unseen.ends = &protocol.Answer{Call: call, Round: round, Result: turn.Unrun(err)}
		return unseen
	})
}

// conclusion folds the answer of a call that is watched here or waits.
func (s *session) conclusion(ctx context.Context, c protocol.Call, item answered) error {
	if w := s.drive.calls[item.answer.Call]; w != nil {
		w.finish(&item.answer)
		delete(s.drive.calls, item.answer.Call)
	}
	a, err := s.accept(ctx, c, item.answer)
	if err != nil {
		return err
	}
	return s.step(ctx, fold.Answered{Answer: a})
}
