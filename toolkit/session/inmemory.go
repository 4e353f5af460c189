package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
)

// Sessions is the Service that InMemoryService makes. It may be used concurrently.
//
// It holds the sessions that a program creates until somebody speaks to them. From then on a session is its log in the
// fabric, which each Get reads: where the fabric's data lives on, so does the session, and Create with its id continues it.
type Sessions struct {
	mu      sync.Mutex
	created map[place]*Recorded
	logs    map[string]Log // by app
}

type place struct{ app, user, session string }

// InMemoryService returns the Service to pass to a runner, of the type *Sessions. The name is that of ADK: whether sessions
// outlive the process is a matter of the runner's fabric.
func InMemoryService() Service {
	return &Sessions{created: map[place]*Recorded{}, logs: map[string]Log{}}
}

// Attach says where the sessions of an app are. It returns an error when they are elsewhere already.
func (s *Sessions) Attach(app string, log Log) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.logs[app]; was != nil && was != log {
		return fmt.Errorf("app %q has an agent already: give each agent an AppName of its own, and make one runner per agent", app)
	}
	s.logs[app] = log
	return nil
}

// Created returns the state with which a session that Create made begins.
func (s *Sessions) Created(app, user, session string) (state map[string]any, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.created[place{app, user, session}]
	if r == nil {
		return nil, false
	}
	return maps.Clone(r.State), true
}

// Create begins a session, or continues one that the app's log has. It returns an error when this Service has created a session of that id
// before.
func (s *Sessions) Create(ctx context.Context, req *CreateRequest) (*CreateResponse, error) {
	if req == nil || req.AppName == "" || req.UserID == "" {
		return nil, errors.New("create a session: AppName and UserID are required")
	}
	state, err := initial(req.State)
	if err != nil {
		return nil, fmt.Errorf("create a session: %w", err)
	}
	at := place{req.AppName, req.UserID, cmp.Or(strings.TrimSpace(req.SessionID), protocol.NewID())}
	if _, err := protocol.ClientID(at.user); err != nil {
		return nil, fmt.Errorf("create a session: %w", err)
	}
	if _, err := protocol.SessionID(at.user, at.session); err != nil {
		return nil, fmt.Errorf("create a session: %w", err)
	}
	r := &Recorded{ID: at.session, User: at.user, State: state, Updated: time.Now()}
	s.mu.Lock()
	_, twice := s.created[at]
	if !twice {
		s.created[at] = r
	}
	s.mu.Unlock()
	if twice {
		return nil, fmt.Errorf("create a session: %s of user %s already exists", at.session, at.user)
	}
	if req.SessionID != "" {
		if logged, err := s.read(ctx, at); err == nil && logged != nil {
			r = logged
		}
	}
	return &CreateResponse{Session: &found{app: at.app, Recorded: *r}}, nil
}

func initial(given map[string]any) (map[string]any, error) {
	state := map[string]any{}
	for key, v := range given {
		switch {
		case strings.HasPrefix(key, KeyPrefixTemp):
		case strings.HasPrefix(key, KeyPrefixApp), strings.HasPrefix(key, KeyPrefixUser):
			return nil, fmt.Errorf("state key %q: state of an app or user is not part of this version; use a key without prefix", key)
		default:
			state[key] = v
		}
	}
	return state, nil
}

// Get reads a session. It returns ErrNotFound for one that was not created and that nobody has spoken to.
func (s *Sessions) Get(ctx context.Context, req *GetRequest) (*GetResponse, error) {
	if req == nil || req.AppName == "" || req.UserID == "" || req.SessionID == "" {
		return nil, errors.New("get a session: AppName, UserID and SessionID are required")
	}
	at := place{req.AppName, req.UserID, req.SessionID}
	r, err := s.read(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("get session %s: %w", req.SessionID, err)
	}
	if r == nil {
		state, ok := s.Created(at.app, at.user, at.session)
		if !ok {
			return nil, fmt.Errorf("get session %s: %w", req.SessionID, ErrNotFound)
		}
		r = &Recorded{ID: at.session, User: at.user, State: state, Updated: s.begun(at)}
	}
	if !req.After.IsZero() {
		r.Events = slices.DeleteFunc(slices.Clone(r.Events), func(e *Event) bool { return e.Timestamp.Before(req.After) })
	}
	if n := req.NumRecentEvents; n > 0 && n < len(r.Events) {
		r.Events = r.Events[len(r.Events)-n:]
	}
	return &GetResponse{Session: &found{app: at.app, Recorded: *r}}, nil
}

func (s *Sessions) begun(at place) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.created[at]; r != nil {
		return r.Updated
	}
	return time.Time{}
}

// read asks the app's log; nil is a session without one.
func (s *Sessions) read(ctx context.Context, at place) (*Recorded, error) {
	s.mu.Lock()
	log := s.logs[at.app]
	s.mu.Unlock()
	if log == nil {
		return nil, nil
	}
	return log.Read(ctx, at.user, at.session)
}

// List returns the sessions of an app, those that nobody has spoken to yet included, by user and id and without events.
func (s *Sessions) List(ctx context.Context, req *ListRequest) (*ListResponse, error) {
	if req == nil || req.AppName == "" {
		return nil, errors.New("list sessions: AppName is required")
	}
	all := map[place]*Recorded{}
	s.mu.Lock()
	log := s.logs[req.AppName]
	for at, r := range s.created {
		if at.app == req.AppName && (req.UserID == "" || at.user == req.UserID) {
			all[at] = r
		}
	}
	s.mu.Unlock()
	if log != nil {
		logged, err := log.List(ctx, req.UserID)
		if err != nil {
			return nil, fmt.Errorf("list the sessions of %s: %w", req.AppName, err)
		}
		for _, r := range logged {
			all[place{req.AppName, r.User, r.ID}] = r
		}
	}
	resp := &ListResponse{}
	for _, at := range slices.SortedFunc(maps.Keys(all), func(a, b place) int {
		return cmp.Or(strings.Compare(a.user, b.user), strings.Compare(a.session, b.session))
	}) {
		r := *all[at]
		r.State = maps.Clone(r.State)
		resp.Sessions = append(resp.Sessions, &found{app: at.app, Recorded: r})
	}
	return resp, nil
}

// Delete drops a session and its log. One that is not there is no error.
func (s *Sessions) Delete(ctx context.Context, req *DeleteRequest) error {
	if req == nil || req.AppName == "" || req.UserID == "" || req.SessionID == "" {
		return errors.New("delete a session: AppName, UserID and SessionID are required")
	}
	s.mu.Lock()
	log := s.logs[req.AppName]
	delete(s.created, place{req.AppName, req.UserID, req.SessionID})
	s.mu.Unlock()
	if log == nil {
		return nil
	}
	return log.Delete(ctx, req.UserID, req.SessionID)
}

// AppendEvent is refused: what a session holds is what happened in it. A message goes in by a run, and the state to begin with by Create.
func (s *Sessions) AppendEvent(context.Context, Session, *Event) error {
	return errors.New("events cannot be put into a session by hand: its log holds what was said and done in runs; " +
		"send messages with the runner, and set state with CreateRequest.State or runner.WithStateDelta")
}
