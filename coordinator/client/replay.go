package client

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/coordinator/internal/view"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

// Replay is a session's log as far as it was read. It belongs to one goroutine.
type Replay struct {
	names   natswire.Names
	run     run
	project *view.Projection
	events  []*session.Event
	asked   map[string]bool // confirmations, decided ones too
	called  map[string]bool // calls, ended ones too
	updated time.Time
}

func (c *Client) newReplay(app, session string) *Replay {
	return &Replay{
		names: c.cfg.Names, run: run{out: Outcome{App: app, Session: session}, state: fold.State{App: app, Session: session}},
		project: view.NewProjection(c.Reply(app, session)), asked: map[string]bool{}, called: map[string]bool{},
	}
}

// Replay reads a session's log up to where it ends now. Of a session without a log it is empty.
func (c *Client) Replay(ctx context.Context, app, session string) (*Replay, error) {
	r := c.newReplay(app, session)
	for from := uint64(0); ; {
		page, err := c.page(ctx, app, session, from)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			r.fold(e)
			from = e.Seq + 1
		}
		if len(page) < pageSize {
			return r, nil
		}
	}
}

func (r *Replay) fold(e Entry) (ended bool) {
	r.events = append(r.events, r.project.Fold(e)...)
	r.updated = e.Time
	ask := func(q *protocol.Confirmation) {
		if q != nil {
			r.asked[q.ID] = true
		}
	}
	for _, in := range e.Event.Inputs {
		if in.Decision != nil {
			ask(in.Decision.Asks)
		}
	}
	for _, a := range e.Event.Answers {
		ask(a.Confirmation)
	}
	if t := e.Event.Turn; t != nil {
		for _, c := range t.Calls {
			ask(c.Confirmation)
			r.called[c.ID] = true
		}
	}
	return r.run.fold(e)
}

// Take returns the events, in ADK's shape, that were read since it was called last.
func (r *Replay) Take() []*session.Event {
	events := r.events
	r.events = nil
	return events
}

// Empty reports whether nobody ever said anything to the session, and Closed whether it takes nothing more.
func (r *Replay) Empty() bool { return r.run.state.Seq == 0 }

// Closed is why the session takes no more input; nil when it does.
func (r *Replay) Closed() error {
	p := r.run.state.Closed()
	if p == nil {
		return nil
	}
	return &protocol.Error{Code: p.Code, Public: p.Message}
}

// User is the client that began the session; empty when it is Empty.
func (r *Replay) User() string { return r.run.state.User }

// Turns is how many turns of the run are recorded. Tokens of those are late.
func (r *Replay) Turns() int {
	if r.run.state.Run == nil {
		return 0
	}
	return r.run.state.Run.ModelCalls
}

// Updated is the JetStream timestamp of the last event that was read.
func (r *Replay) Updated() time.Time { return r.updated }

// State is the session's state. It is the caller's.
func (r *Replay) State() map[string]json.RawMessage { return r.run.state.View() }

// Waiting lists the calls that wait for people or for results from outside.
func (r *Replay) Waiting() []Parked {
	var all []Parked
	for _, w := range r.run.state.Waiting() {
		all = append(all, Parked{Parked: view.Parked(r.names, &r.run.state, w)})
	}
	return all
}

// Confirmation is the waiting call that a confirmation asks about. It returns code already_decided for one that is no longer
// open, and unknown_confirmation.
func (r *Replay) Confirmation(id string) (Parked, error) {
	for _, p := range r.Waiting() {
		if p.Confirmation != nil && p.Confirmation.ID == id {
			return p, nil
		}
	}
	if r.asked[id] {
		return Parked{}, protocol.Errorf(protocol.CodeDecided, "confirmation %s was decided before, or its call has ended; nothing was changed", id)
	}
	return Parked{}, protocol.Errorf(protocol.CodeUnknownConfirm, "session %s asks nothing under the id %.80q; nothing was changed", r.run.out.Session, id)
}

// Call is a waiting call. It returns code already_answered for one that waits no more, and not_found.
func (r *Replay) Call(id string) (Parked, error) {
	for _, p := range r.Waiting() {
		if p.Call == id {
			return p, nil
		}
	}
	if r.called[id] {
		return Parked{}, protocol.Errorf(protocol.CodeAnswered, "call %s does not wait for a result: it runs, or has one; nothing was changed", id)
	}
	return Parked{}, protocol.Errorf(protocol.CodeNotFound, "no function call event found for function responses ids: %.80q; nothing was changed", id)
}
