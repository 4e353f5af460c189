package session

import (
	"context"
	"errors"
	"iter"
	"time"
)

// ErrNotFound says that there is no such session.
var ErrNotFound = errors.New("session not found")

// Session is a conversation as it was when it was read.
type Session interface {
	ID() string
	AppName() string
	UserID() string
	State() State // a copy: what is set here is not stored
	Events() Events
	LastUpdateTime() time.Time
}

// Events are what happened in a session, oldest first.
type Events interface {
	All() iter.Seq[*Event]
	Len() int
	At(i int) *Event
}

// Service keeps sessions. See InMemoryService for the one that runners take.
type Service interface {
	Create(context.Context, *CreateRequest) (*CreateResponse, error)
	Get(context.Context, *GetRequest) (*GetResponse, error)
	List(context.Context, *ListRequest) (*ListResponse, error)
	Delete(context.Context, *DeleteRequest) error
	AppendEvent(context.Context, Session, *Event) error
}

// CreateRequest begins a session. AppName and UserID are required.
type CreateRequest struct {
	AppName   string
	UserID    string
	SessionID string         // empty makes a new id
	State     map[string]any // what the session begins with; keys of an app or user are refused, temp: keys are left out
}

// CreateResponse holds the new session.
type CreateResponse struct{ Session Session }

// GetRequest names a session, and how many of its events are wanted.
type GetRequest struct {
	AppName         string
	UserID          string
	SessionID       string
	NumRecentEvents int       // the newest ones; 0 is all
	After           time.Time // only events at that time or later; zero is all
}

// GetResponse holds the session.
type GetResponse struct{ Session Session }

// ListRequest asks for the sessions of an app. An empty UserID is those of all users.
type ListRequest struct {
	AppName string
	UserID  string
}

// ListResponse holds the sessions, without their events.
type ListResponse struct{ Sessions []Session }

// DeleteRequest names a session.
type DeleteRequest struct {
	AppName   string
	UserID    string
	SessionID string
}

// Log is where the sessions of one app really are: the runner that serves it attaches one. User and session are as the
// program names them.
type Log interface {
	// Read returns nil for a session that nobody has spoken to.
	Read(ctx context.Context, user, session string) (*Recorded, error)
	// List returns all sessions of a user, or of all users for "", without events.
	List(ctx context.Context, user string) ([]*Recorded, error)
	// Delete drops a session. One that is not there is no error.
	Delete(ctx context.Context, user, session string) error
}

// Recorded is a session in a Log.
type Recorded struct {
	ID      string
	User    string
	State   map[string]any
	Events  []*Event
	Updated time.Time
}
