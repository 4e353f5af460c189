package session_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

// written is a Log with what a test writes.
type written map[string]*session.Recorded // by user and session

func (w written) Read(_ context.Context, user, id string) (*session.Recorded, error) {
	if id == "broken" {
		return nil, errors.New("no connection")
	}
	if r := w[user+"/"+id]; r != nil {
		copied := *r
		return &copied, nil
	}
	return nil, nil
}

func (w written) List(_ context.Context, user string) ([]*session.Recorded, error) {
	var all []*session.Recorded
	for _, r := range w {
		if user == "" || r.User == user {
			all = append(all, r)
		}
	}
	return all, nil
}

func (w written) Delete(_ context.Context, user, id string) error {
	delete(w, user+"/"+id)
	return nil
}

func TestSessionsAreCreatedAndFound(t *testing.T) {
	s := session.InMemoryService()
	made, err := s.Create(t.Context(), &session.CreateRequest{AppName: "a", UserID: "u", State: map[string]any{"k": "v", "temp:x": 1}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(t.Context(), &session.GetRequest{AppName: "a", UserID: "u", SessionID: made.Session.ID()})
	if err != nil {
		t.Fatal(err)
	}
	one := got.Session
	if one.ID() != made.Session.ID() || one.AppName() != "a" || one.UserID() != "u" || one.Events().Len() != 0 || one.LastUpdateTime().IsZero() {
		t.Errorf("got %+v", one)
	}
	if state := maps.Collect(one.State().All()); !maps.Equal(state, map[string]any{"k": "v"}) {
		t.Errorf("state %v", state)
	}
	if err := one.State().Set("k", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := one.State().Get("k"); !errors.Is(err, session.ErrStateKeyNotExist) {
		t.Errorf("a removed key: %v", err)
	}
	again, err := s.Get(t.Context(), &session.GetRequest{AppName: "a", UserID: "u", SessionID: made.Session.ID()})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := again.Session.State().Get("k"); v != "v" || err != nil {
		t.Errorf("what was set on a copy is stored: %v, %v", v, err)
	}
}

func TestSessionsThatCannotBeAreRefused(t *testing.T) {
	s := session.InMemoryService()
	create := func(req session.CreateRequest) error {
		_, err := s.Create(t.Context(), &req)
		return err
	}
	if err := create(session.CreateRequest{AppName: "a", UserID: "u", SessionID: "one"}); err != nil {
		t.Fatal(err)
	}
	for name, req := range map[string]session.CreateRequest{
		"twice": {AppName: "a", UserID: "u", SessionID: "one"}, "no app": {UserID: "u"}, "no user": {AppName: "a"},
		"an app's state":  {AppName: "a", UserID: "u", State: map[string]any{"app:x": 1}},
		"a user's state":  {AppName: "a", UserID: "u", State: map[string]any{"user:x": 1}},
		"a broken id":     {AppName: "a", UserID: "u", SessionID: "a\x00"},
		"a broken user's": {AppName: "a", UserID: "u\n"},
	} {
		if err := create(req); err == nil {
			t.Errorf("%s: created", name)
		}
	}
	if err := create(session.CreateRequest{AppName: "a", UserID: "another", SessionID: "one"}); err != nil {
		t.Errorf("another user's: %v", err)
	}
	if err := s.AppendEvent(t.Context(), nil, &session.Event{}); err == nil {
		t.Error("an event was put in by hand")
	}
	if _, err := s.Get(t.Context(), &session.GetRequest{AppName: "a", UserID: "u", SessionID: "nobody"}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("nobody's: %v", err)
	}
}

func TestTheLogIsTheTruthOfASessionThatSpoke(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	log := &written{"u/one": {ID: "one", User: "u", State: map[string]any{"k": 2.0}, Updated: at, Events: []*session.Event{
		{ID: "1", Timestamp: at}, {ID: "2", Timestamp: at.Add(time.Second)}, {ID: "3", Timestamp: at.Add(2 * time.Second)},
	}}}
	s := session.InMemoryService().(*session.Sessions)
	if err := errors.Join(s.Attach("a", log), s.Attach("a", log)); err != nil {
		t.Fatal(err)
	}
	if err := s.Attach("a", &written{}); err == nil {
		t.Error("an app has two logs")
	}
	made, err := s.Create(t.Context(), &session.CreateRequest{AppName: "a", UserID: "u", SessionID: "one", State: map[string]any{"k": 1}})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := made.Session.State().Get("k"); v != 2.0 || err != nil || made.Session.Events().Len() != 3 {
		t.Errorf("a session that is continued has %v, %v", v, err)
	}
	for want, req := range map[string]session.GetRequest{
		"123": {}, "23": {NumRecentEvents: 2}, "3": {After: at.Add(2 * time.Second), NumRecentEvents: 5},
	} {
		req.AppName, req.UserID, req.SessionID = "a", "u", "one"
		resp, err := s.Get(t.Context(), &req)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for ev := range resp.Session.Events().All() {
			got += ev.ID
		}
		if got != want || resp.Session.Events().At(9) != nil {
			t.Errorf("%+v: %s", req, got)
		}
	}
	if _, err := s.Create(t.Context(), &session.CreateRequest{AppName: "a", UserID: "u", SessionID: "silent"}); err != nil {
		t.Fatal(err)
	}
	list, err := s.List(t.Context(), &session.ListRequest{AppName: "a", UserID: "u"})
	if err != nil || len(list.Sessions) != 2 || list.Sessions[0].ID() != "one" || list.Sessions[1].ID() != "silent" {
		t.Errorf("listed %+v, %v", list, err)
	}
	if _, err := s.Get(t.Context(), &session.GetRequest{AppName: "a", UserID: "u", SessionID: "broken"}); err == nil || errors.Is(err, session.ErrNotFound) {
		t.Errorf("a log that cannot be read: %v", err)
	}
	if err := s.Delete(t.Context(), &session.DeleteRequest{AppName: "a", UserID: "u", SessionID: "one"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), &session.GetRequest{AppName: "a", UserID: "u", SessionID: "one"}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a deleted one: %v", err)
	}
}

func TestFinalResponses(t *testing.T) {
	content := func(parts ...*genai.Part) session.Event {
		return session.Event{LLMResponse: model.LLMResponse{Content: &genai.Content{Parts: parts}}}
	}
	call, response := &genai.Part{FunctionCall: &genai.FunctionCall{}}, &genai.Part{FunctionResponse: &genai.FunctionResponse{}}
	text, result := genai.NewPartFromText("x"), &genai.Part{CodeExecutionResult: &genai.CodeExecutionResult{}}
	partial, skips, long := content(text), content(response), content(call)
	partial.Partial = true
	skips.Actions.SkipSummarization = true
	long.LongRunningToolIDs = []string{"c"}
	for name, c := range map[string]struct {
		event session.Event
		final bool
	}{
		"text": {content(text), true}, "nothing": {session.Event{}, true}, "a call": {content(text, call), false}, "a response": {content(response), false},
		"a piece": {partial, false}, "a response that needs no summary": {skips, true}, "a call whose result comes later": {long, true},
		"the result of code": {content(text, result), false}, "code and then text": {content(result, text, nil), true},
	} {
		if got := c.event.IsFinalResponse(); got != c.final {
			t.Errorf("%s: %v", name, got)
		}
	}
}
