package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// link is a connection with a client on it.
type link struct {
	conn   *natswire.Conn
	client *client.Client
}

func (a *app) connect(ctx context.Context) (*link, error) {
	conn, err := a.set.Connect(ctx, "toolfabric", a.logger(slog.LevelError))
	if err != nil {
		return nil, err
	}
	c, err := client.New(client.Config{Bus: conn, Names: conn.Names()})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &link{conn: conn, client: c}, nil
}

func (l *link) close() { l.conn.Close() }

// ended is how a process that served came to its end: by its connection, or as it says itself.
func ended(ctx context.Context, err error) error {
	if cause, ok := errors.AsType[*protocol.Error](context.Cause(ctx)); ok {
		return cause
	}
	return err
}
