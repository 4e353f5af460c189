package runner

import (
	"context"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/session"
)

// log is the session.Log of an agent on a fabric.
type log struct {
	fabric *fabric
	app    string
}

func (l log) client(user string) (*client.Client, error) {
	return client.New(client.Config{Bus: l.fabric.conn, Names: l.fabric.conn.Names(), Client: user})
}

func (l log) Read(ctx context.Context, user, name string) (*session.Recorded, error) {
	token, err := protocol.ClientID(user)
	if err != nil {
		return nil, err
	}
	id, err := protocol.SessionID(user, name)
	if err != nil {
		return nil, err
	}
	c, err := l.client(token)
	if err != nil {
		return nil, err
	}
	return l.read(ctx, c, token, id)
}

// read returns nil for a session that is not there, or not the user's.
func (l log) read(ctx context.Context, c *client.Client, token, id string) (*session.Recorded, error) {
	replay, err := c.Replay(ctx, l.app, id)
	if err != nil || replay.Empty() || replay.Closed() != nil || replay.User() != token {
		return nil, err
	}
	user := protocol.UserName(token)
	r := &session.Recorded{ID: protocol.SessionName(user, id), User: user, State: map[string]any{}, Updated: replay.Updated(), Events: replay.Take()}
	for _, ev := range r.Events {
		plain(ev)
	}
	for key, raw := range replay.State() {
		if v, err := protocol.Tree(raw); err == nil {
			r.State[key] = plainValue(v)
		}
	}
	return r, nil
}

func (l log) List(ctx context.Context, user string) ([]*session.Recorded, error) {
	c, err := l.client("")
	if err != nil {
		return nil, err
	}
	all, err := c.Sessions(ctx, l.app)
	if err != nil {
		return nil, err
	}
	var list []*session.Recorded
	for _, s := range all {
		token, err := c.User(ctx, l.app, s.ID)
		if err != nil {
			return nil, err
		}
		if user != "" && protocol.UserName(token) != user {
			continue
		}
		r, err := l.read(ctx, c, token, s.ID)
		if err != nil {
			return nil, err
		}
		if r != nil {
			r.Events = nil
			list = append(list, r)
		}
	}
	return list, nil
}

func (l log) Delete(ctx context.Context, user, name string) error {
	token, err := protocol.ClientID(user)
	if err != nil {
		return err
	}
	id, err := protocol.SessionID(user, name)
	if err != nil {
		return err
	}
	c, err := l.client(token)
	if err != nil {
		return err
	}
	owner, err := c.User(ctx, l.app, id)
	if err == nil && owner == token {
		err = c.Delete(ctx, l.app, id)
	}
	if protocol.CodeOf(err) == protocol.CodeUnknownSession {
		return nil
	}
	return err
}
