package boot

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// Connect opens the connection that the settings name. Errors are those of natswire.Connect; a server without what we need
// is code bus_unreachable here.
func (s *Settings) Connect(ctx context.Context, name string, log *slog.Logger) (*natswire.Conn, error) {
	return s.connect(ctx, name, Listener(log))
}

// Attend is Connect for a process that serves. The context it returns also ends when the connection is closed for good,
// with an *Error as its cause: such a process would live on and serve nobody.
func (s *Settings) Attend(ctx context.Context, name string, log *slog.Logger) (context.Context, *natswire.Conn, error) {
	ctx, end := context.WithCancelCause(ctx)
	tell := Listener(log)
	conn, err := s.connect(ctx, name, func(n natswire.Notice) {
		tell(n)
		if n.Kind == natswire.Closed {
			end(n.Err)
		}
	})
	if err != nil {
		end(err)
	}
	return ctx, conn, err
}

func (s *Settings) connect(ctx context.Context, name string, listen func(natswire.Notice)) (*natswire.Conn, error) {
	cfg := natswire.Config{URL: s.NATS, Creds: s.Creds, Context: s.Context, Name: name, Namespace: s.Namespace, Listener: listen}
	found := false
	if cfg.URL == "" && cfg.Context == "" {
		cfg.URL = ReadEndpoint(s.Data).URL
		if found = cfg.URL != ""; !found && s.Data != DefaultData() {
			return nil, protocol.Errorf(protocol.CodeUnreachable, "nobody serves %s; start it with: toolfabric up --data %s, or name a server with --nats URL", s.Data, s.dataFlag())
		}
	}
	conn, err := natswire.Connect(ctx, cfg)
	switch {
	case protocol.CodeOf(err) == protocol.CodeUnsupported:
		return nil, protocol.Errorf(protocol.CodeUnreachable, "%s", protocol.ProblemOf(err).Message)
	case protocol.CodeOf(err) == protocol.CodeUnreachable && found:
		return nil, protocol.Errorf(protocol.CodeUnreachable, "nobody answers at %s, where the up of %s listened; start it again with: toolfabric up --data %s, or name a server with --nats URL", cfg.URL, s.Data, s.dataFlag())
	}
	return conn, err
}

// dataFlag is the data directory as any folder's command line names it.
func (s *Settings) dataFlag() string {
	if dir, err := filepath.Abs(s.Data); err == nil {
		return Quoted(dir)
	}
	return Quoted(s.Data)
}

// Listener logs what happens to a connection.
func Listener(log *slog.Logger) func(natswire.Notice) {
	return func(n natswire.Notice) {
		switch n.Kind {
		case natswire.Reconnected:
			log.Info("connected again", "url", n.URL)
		case natswire.Disconnected:
			if n.Err == nil { // our own Close
				return
			}
			log.Warn("connection lost; trying again", "err", n.Err)
		case natswire.Closed:
			log.Error("connection closed for good", "err", n.Err)
		default:
			log.Warn(string(n.Kind), "err", n.Err)
		}
	}
}
