package mcptoolset

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The pauses between tries to reach a server, doubling, and after how long without a word a session is looked after before it
// is used.
const (
	backFirst = 250 * time.Millisecond
	backLast  = 30 * time.Second
	idlePing  = 15 * time.Second
	pingLimit = 5 * time.Second
)

var errClosed = errors.New("the toolset is closed")

// link is the session with the server: at most one, made when it is needed, by one goroutine for all that wait for it.
type link struct {
	connect func(ctx context.Context, older bool) (*mcp.ClientSession, error)
	limit   time.Duration // of one connect, and of waiting for a server that does not come up
	place   string
	log     *slog.Logger

	mu      sync.Mutex
	session *mcp.ClientSession // nil when there is none
	used    time.Time          // when it last was known to work
	calls   int                // that use it now
	opening chan struct{}      // closed when the goroutine that connects has ended; nil when there is none
	err     error              // why the last connect failed; nil after a success
	fails   int                // connects since a call worked
	older   bool               // the next connect is by a protocol before 2026-07-28
	next    time.Time          // no connect before
	closed  bool
	stop    context.CancelFunc // of the goroutine that connects
	ending  sync.WaitGroup     // sessions that are being closed, and goroutines that watch them
}

// get is a session that works, as far as can be known. It waits for one as long as ctx lasts, but not longer than limit.
// Its error says that nothing was sent. Each get is followed by a release.
func (l *link) get(ctx context.Context) (*mcp.ClientSession, error) {
	give := time.NewTimer(l.limit)
	defer give.Stop()
	for {
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return nil, errClosed
		}
		if s := l.session; s != nil {
			stale := l.calls == 0 && time.Since(l.used) > idlePing
			if !stale {
				l.calls++
				l.mu.Unlock()
				return s, nil
			}
			l.mu.Unlock()
			l.ping(ctx, s)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			continue
		}
		failed, opening := l.err, l.open()
		l.mu.Unlock()
		select {
		case <-opening:
		case <-ctx.Done():
			if failed != nil {
				return nil, fmt.Errorf("the MCP server %s is down: %w", l.place, failed)
			}
			return nil, context.Cause(ctx)
		case <-give.C:
			l.mu.Lock()
			failed = l.err
			l.mu.Unlock()
			if failed == nil {
				failed = errors.New("it does not come up")
			}
			return nil, fmt.Errorf("the MCP server %s is down: %w", l.place, failed)
		}
	}
}

// release says that a call no longer uses s; worked, that the server has answered it.
func (l *link) release(s *mcp.ClientSession, worked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == s {
		l.calls--
		if worked {
			l.used, l.fails = time.Now(), 0
		}
	}
}

// ping asks a session that lay idle for a sign of life. One that gives none is dropped. A server that works on a call may be
// slow to answer, so it is not asked then. The protocol 2026-07-28 has no pings: there the list of tools is asked for.
func (l *link) ping(ctx context.Context, s *mcp.ClientSession) {
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	var err error
	if r := s.InitializeResult(); r != nil && r.ProtocolVersion >= protocolStateless {
		_, err = s.ListTools(ctx, nil)
	} else {
		err = s.Ping(ctx, nil)
	}
	if err == nil || answered(err) {
		l.mu.Lock()
		if l.session == s {
			l.used = time.Now()
		}
		l.mu.Unlock()
		return
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return // whoever wanted the session is gone
	}
	l.drop(s)
}

// drop gives up a session that does not work any more. The first to say so closes it; others have no effect.
func (l *link) drop(s *mcp.ClientSession) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != s {
		return
	}
	l.session, l.calls = nil, 0
	l.log.Warn("the session with the MCP server is lost; the next call opens another one", "server", l.place)
	l.ending.Go(func() { _ = s.Close() })
}

// open lets a goroutine connect, if none does. l.mu is held.
func (l *link) open() <-chan struct{} {
	if l.opening != nil {
		return l.opening
	}
	done := make(chan struct{})
	ctx, stop := context.WithCancel(context.Background()) // the session outlives the call that opened it
	l.opening, l.stop = done, stop
	wait, older := time.Until(l.next), l.older
	l.ending.Go(func() {
		defer close(done)
		s, err := l.try(ctx, stop, wait, older)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.opening = nil
		l.next = time.Now().Add(min(backFirst<<min(l.fails, 10), backLast))
		l.fails++ // until the server has answered a call: one that dies right after its start is not started at once
		if err != nil {
			stop()
			l.err, l.older = err, !older // there are servers that answer nothing, or end, when they do not know a method
			l.log.Warn("no session with the MCP server; trying again when it is needed", "server", l.place, "tries", l.fails, "error", err)
			return
		}
		l.ending.Go(func() {
			defer stop() // the SDK's SSE transport reads under the context that it was connected with
			_ = s.Wait()
			l.drop(s)
		})
		if l.closed {
			l.ending.Go(func() { _ = s.Close() })
			return
		}
		l.session, l.calls, l.used, l.err = s, 0, time.Now(), nil
	})
	return done
}

// try connects once, after wait. stop ends ctx, which goes on when it has connected.
func (l *link) try(ctx context.Context, stop context.CancelFunc, wait time.Duration, older bool) (*mcp.ClientSession, error) {
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, errClosed
		}
	}
	var late atomic.Bool
	limit := time.AfterFunc(l.limit, func() { late.Store(true); stop() })
	defer limit.Stop()
	s, err := l.connect(ctx, older)
	if err != nil && late.Load() {
		return nil, fmt.Errorf("it did not finish its initialisation within %s: %w", l.limit, err)
	}
	return s, err
}

// close ends the session and everything that belongs to it.
func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	if l.stop != nil {
		l.stop()
	}
	if s := l.session; s != nil {
		l.session = nil
		l.ending.Go(func() { _ = s.Close() })
	}
	l.mu.Unlock()
	l.ending.Wait()
}
