package client

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/coordinator/internal/view"
	"github.com/toolfabric/toolfabric/protocol"
)

// Outcome is how the run that took up an input ended, or that it waits.
type Outcome struct {
	App     string            `json:"app"`
	Session string            `json:"session"`
	InputID string            `json:"input"`
	Seq     uint64            `json:"seq"`               // of the log event that ended or parked it
	Text    string            `json:"text,omitempty"`    // the final answer
	Problem *protocol.Problem `json:"problem,omitempty"` // why it failed or was refused; nil is a good end
	Result  *protocol.Result  `json:"result,omitempty"`  // of a client's call
	Refused bool              `json:"refused,omitempty"` // the input, or the call it asked for, changed nothing
	Waiting *Waiting          `json:"waiting,omitempty"` // it has not ended: this is what it waits for
	// Results are the results of the last calls, in call order, when one of them said that no model is to be told: they
	// stand in the place of a final answer.
	Results []protocol.Answer `json:"results,omitempty"`
}

// Err is the outcome's problem as an error; nil for a good end.
func (o Outcome) Err() error {
	if o.Problem == nil {
		return nil
	}
	return &protocol.Error{Code: o.Problem.Code, Public: o.Problem.Message}
}

// Wait returns when the run that took up an input has stopped, however many coordinators it took, or waits for somebody
// outside, to decide or to give a result: then the Outcome is Waiting, also for an input that is queued behind calls that
// waited before. A run that failed is an Outcome with a Problem, not an error.
func (c *Client) Wait(ctx context.Context, app, session, inputID string) (Outcome, error) {
	return c.wait(ctx, app, session, inputID, true)
}

// WaitEnd is Wait that goes on while the run waits, for days if need be.
func (c *Client) WaitEnd(ctx context.Context, app, session, inputID string) (Outcome, error) {
	return c.wait(ctx, app, session, inputID, false)
}

func (c *Client) wait(ctx context.Context, app, session, inputID string, parked bool) (Outcome, error) {
	for u, err := range c.follow(ctx, app, session, inputID, false) {
		switch {
		case err != nil && protocol.CodeOf(err) != protocol.CodeUnreachable:
			return Outcome{}, err
		case u.Outcome != nil:
			return *u.Outcome, nil
		case u.Waiting != nil && parked:
			return u.Waiting.Outcome(app, session, inputID), nil
		}
	}
	return Outcome{}, protocol.ContextError(ctx)
}

// Follow is Watch from the event that took up an input to the one that ended its run; the last update is the Outcome. Each
// time the run comes to wait for somebody outside, an update says for what; ranging on waits.
func (c *Client) Follow(ctx context.Context, app, session, inputID string) iter.Seq2[Update, error] {
	return c.follow(ctx, app, session, inputID, true)
}

func (c *Client) follow(ctx context.Context, app, session, inputID string, lossy bool) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		f, err := c.listen(app, session, lossy)
		if err != nil {
			yield(Update{}, err)
			return
		}
		defer f.stop()
		c.tell(ctx, f, app, session, inputID)(yield)
	}
}

// Ask is Send and Follow in one. It listens before it sends, so that none of the text that follows is missed; sent is told
// where the input is stored. content holds no decisions. An error of Send is the only update.
func (c *Client) Ask(ctx context.Context, app, session string, content *genai.Content, sent func(Receipt), opts ...SendOption) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		in := protocol.Input{ID: c.cfg.NewID()}
		for _, opt := range opts {
			opt(&in)
		}
		if session == "" {
			session = in.ID
		}
		f, err := c.listening(app, session, content)
		if err != nil {
			yield(Update{}, err)
			return
		}
		defer f.stop()
		r, err := c.Send(ctx, app, session, content, append(slices.Clone(opts), WithInputID(in.ID))...)
		if err != nil {
			yield(Update{}, err)
			return
		}
		sent(r)
		c.tell(ctx, f, app, session, in.ID)(yield)
	}
}

// listening checks what Ask is given before it listens.
func (c *Client) listening(app, session string, content *genai.Content) (*feed, error) {
	_, replies, err := parted(content)
	switch {
	case err != nil:
		return nil, err
	case len(replies) > 0:
		return nil, protocol.Errorf(protocol.CodeUsage, "a decision is no message to ask with; use Send or Decide")
	}
	for _, check := range []error{protocol.CheckName(app), protocol.CheckID(session)} {
		if check != nil {
			return nil, check
		}
	}
	return c.listen(app, session, true)
}

// tell yields the run that takes up an input. What is said of it may be heard before the event that begins it.
func (c *Client) tell(ctx context.Context, f *feed, app, session, inputID string) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		from, state := c.since(ctx, app, session, inputID)
		r := run{out: Outcome{App: app, Session: session, InputID: inputID}, state: state}
		var early []Update
		var epoch uint64 // in which the run began
		for u, err := range c.read(ctx, f, app, session, from) {
			if u.tail {
				if w := r.waiting(c.cfg.Names); w != nil && !yield(Update{Waiting: w}, nil) {
					return
				}
				continue
			}
			if u.Token != nil && !r.begun && len(early) < maxBacklog {
				early = append(early, u)
			}
			if err != nil || u.Entry == nil {
				if (err != nil || r.begun && !u.before(epoch)) && !yield(u, err) {
					return
				}
				continue
			}
			begins := !r.begun
			ended := r.fold(*u.Entry)
			if r.begun && !yield(u, nil) {
				return
			}
			if begins && r.begun {
				epoch = u.Entry.Event.Epoch
				for _, t := range early {
					if u.Entry.Event.Adopt != nil && !t.before(epoch) && !yield(t, nil) {
						return
					}
				}
				early = nil
			}
			if ended {
				yield(Update{Outcome: &r.out}, nil)
				return
			}
		}
	}
}

// run reads a log for the end of the run that took up one input, or what else it awaits.
type run struct {
	out    Outcome
	await  func(*protocol.Event) bool // reports that the event holds the last of what is awaited; nil awaits the input alone
	begun  bool
	queued bool       // the input came while calls were open
	state  fold.State // of the session up to what was read
	told   uint64     // sequence of the park that was told of
	last   lastTurn
}

func (r *run) fold(e Entry) (ended bool) {
	ev := &e.Event
	for _, in := range ev.Inputs {
		if in.ID != r.out.InputID || r.begun {
			continue
		}
		r.begun, r.queued = r.await == nil, r.state.Waits()
		if in.Refused != nil {
			r.out.Seq, r.out.Problem, r.out.Refused = e.Seq, in.Refused, true
			return true
		}
	}
	if r.await != nil && !r.begun {
		r.begun = r.await(ev)
	}
	deleted := ev.Stop != nil && ev.Stop.Kind == protocol.StopDeleted
	if deleted && r.out.Problem == nil {
		r.begun = true // what the log held before is gone
		r.out.Problem = &protocol.Problem{Code: protocol.CodeSessionClosed, Message: "session " + r.out.Session + " was deleted"}
	}
	if next, err := fold.Fold(r.state, e.Seq, e.Event); err == nil {
		r.state = next
	}
	if !r.begun {
		return false
	}
	r.answers(ev)
	if ev.Stop == nil || ev.Stop.Kind == protocol.StopDrained || ev.Stop.Kind == protocol.StopParked {
		return false
	}
	r.out.Seq = e.Seq
	if ev.Stop.Problem != nil {
		r.out.Problem = ev.Stop.Problem
	}
	switch {
	case r.out.Problem != nil:
	case ev.Stop.Kind == protocol.StopQuarantined:
		r.out.Problem = &protocol.Problem{Code: protocol.CodeSessionClosed, Message: "session " + r.out.Session + " was quarantined: its runs died again and again"}
	case ev.Stop.Kind == protocol.StopCancelled && r.out.Result == nil:
		r.out.Problem = &protocol.Problem{Code: protocol.CodeCancelled, Message: "the run of session " + r.out.Session + " was cancelled"}
	case ev.Stop.Kind == protocol.StopDone && r.out.App != protocol.CallsApp:
		r.out.Results = r.last.results()
	}
	return true
}

func (r *run) answers(ev *protocol.Event) {
	if r.out.App == protocol.CallsApp {
		for _, a := range ev.Answers {
			if !a.Outcome.Interim() {
				r.out.Result = &a.Result
			}
		}
	}
	r.last.answered(ev.Answers)
	if ev.Turn == nil || len(ev.Turn.Content)+len(ev.Turn.Calls) == 0 { // the latter is what callbacks set
		return
	}
	r.last.begin(ev.Turn)
	r.out.Text = ""
	if len(ev.Turn.Calls) == 0 {
		r.out.Text = view.Said(ev.Turn)
	}
	for _, call := range ev.Turn.Calls {
		if r.out.App == protocol.CallsApp && call.Refusal != nil {
			r.out.Result, r.out.Refused = call.Refusal, true
			r.out.Problem = &protocol.Problem{Code: call.Refusal.Code, Message: errorText(call.Refusal.Value)}
		}
	}
}

func errorText(value json.RawMessage) string {
	var v struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(value, &v) != nil || v.Error == "" {
		return string(value)
	}
	return v.Error
}
