package integration

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// What tests read of a session and of the streams.

func (f *fabric) log(app, session string) []client.Entry {
	f.t.Helper()
	log, err := f.client.Log(f.t.Context(), app, session, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	return log
}

// until watches a session's log from its beginning to the first event that is wanted.
func (f *fabric) until(app, session, what string, want func(*protocol.Event) bool) client.Entry {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	for u, err := range f.client.Watch(ctx, app, session, 0) {
		if err != nil && protocol.CodeOf(err) != protocol.CodeUnreachable {
			f.t.Fatalf("waiting for %s: %v", what, err)
		}
		if u.Entry != nil && want(&u.Entry.Event) {
			return *u.Entry
		}
	}
	f.t.Fatalf("no %s in the log", what)
	panic("unreachable")
}

// untilTurn waits for the first recorded turn with calls.
func (f *fabric) untilTurn(app, session string) *protocol.Turn {
	f.t.Helper()
	e := f.until(app, session, "turn with calls", func(ev *protocol.Event) bool { return ev.Turn != nil && len(ev.Turn.Calls) > 0 })
	return e.Event.Turn
}

// follow sends a message and yields what a watcher sees from before it is sent to the end of its run.
func (f *fabric) follow(app, session, text string) iter.Seq2[client.Update, error] {
	return func(yield func(client.Update, error) bool) {
		ctx, cancel := context.WithTimeout(f.t.Context(), patience)
		defer cancel()
		if session == "" {
			session = protocol.NewID()
		}
		id := protocol.NewID()
		tokens := make(chan client.Update, 1000)
		n := f.conn.Names()
		stop, err := f.conn.Subscribe(n.TokenSubject(session, "*"), func(m natswire.Msg) {
			t := client.Token{}
			if json.Unmarshal(m.Data, &t.Token) == nil {
				tokens <- client.Update{Token: &t}
			}
		})
		if err != nil {
			yield(client.Update{}, err)
			return
		}
		defer stop()
		f.send(ctx, app, session, text, client.WithInputID(id))
		for u, err := range f.client.Follow(ctx, app, session, id) {
			if u.Token != nil {
				continue // the subscription above has it, from the first on
			}
			if u.Outcome != nil {
				for len(tokens) > 0 {
					if !yield(<-tokens, nil) {
						return
					}
				}
			}
			if !yield(u, err) {
				return
			}
		}
	}
}

// turns are the answers of models that a log holds.
func turns(log []client.Entry) []*protocol.Turn {
	var all []*protocol.Turn
	for i := range log {
		if t := log[i].Event.Turn; t != nil {
			all = append(all, t)
		}
	}
	return all
}

// answers are the answers of calls that a log holds.
func answers(log []client.Entry) []protocol.Answer {
	var all []protocol.Answer
	for i := range log {
		all = append(all, log[i].Event.Answers...)
	}
	return all
}

// adoptions are the coordinators that took a session, in order.
func adoptions(log []client.Entry) []string {
	var all []string
	for i := range log {
		if a := log[i].Event.Adopt; a != nil {
			all = append(all, a.Coordinator)
		}
	}
	return all
}

// eventIDs are the ids of calls and of responses as people see them.
func (f *fabric) eventIDs(app, session string) (called, responded []string) {
	f.t.Helper()
	events, err := f.client.Events(f.t.Context(), app, session)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range events {
		if e.Content == nil {
			continue
		}
		for _, p := range e.Content.Parts {
			if p.FunctionCall != nil {
				called = append(called, p.FunctionCall.ID)
			}
			if p.FunctionResponse != nil {
				responded = append(responded, p.FunctionResponse.ID)
			}
		}
	}
	return called, responded
}

// deadLetters are the records that fit, once there is at least one.
func (f *fabric) deadLetters(kind string, want func(protocol.DeadLetter) bool) []protocol.DeadLetter {
	f.t.Helper()
	n := f.conn.Names()
	var found []protocol.DeadLetter
	f.eventually("dead-letter record", func() bool {
		stored, err := f.conn.Latest(f.t.Context(), n.DeadLetters(), n.DeadLetterSubject(kind, "*"))
		if err != nil {
			return false
		}
		found = nil
		for _, s := range stored {
			var letter protocol.DeadLetter
			if err := json.Unmarshal(s.Data, &letter); err != nil {
				f.t.Fatal(err)
			}
			if want(letter) {
				found = append(found, letter)
			}
		}
		return len(found) > 0
	})
	return found
}

// queued is how many messages of a tool are stored in CALLS.
func (f *fabric) queued(tool string) int {
	f.t.Helper()
	n := f.conn.Names()
	stored, err := f.conn.Read(f.t.Context(), n.Calls(), n.CallSubject(tool), 1, 1000)
	if err != nil {
		f.t.Fatal(err)
	}
	return len(stored)
}

// holds reports whether CALLS holds a message of a call.
func (f *fabric) holds(tool, call string) bool {
	f.t.Helper()
	n := f.conn.Names()
	stored, err := f.conn.Read(f.t.Context(), n.Calls(), n.CallSubject(tool), 1, 1000)
	if err != nil {
		f.t.Fatal(err)
	}
	return slices.ContainsFunc(stored, func(m natswire.Stored) bool {
		env, err := protocol.DecodeEnvelope(m.Data)
		return err == nil && env.Call == call
	})
}

// eventually asks again, for things of the broker that nobody tells of.
func (f *fabric) eventually(what string, is func() bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	for !is() {
		if natswire.Sleep(ctx, natswire.SystemClock{}, poll) != nil {
			f.t.Fatalf("no %s in %s", what, patience)
		}
	}
}

// firstAnswer is the answer to the kth call of the first turn, from 0.
func firstAnswer(log []client.Entry, k int) protocol.Answer {
	id := turns(log)[0].Calls[k].ID
	all := answers(log)
	if i := slices.IndexFunc(all, func(a protocol.Answer) bool { return a.Call == id }); i >= 0 {
		return all[i]
	}
	return protocol.Answer{}
}
