package embed

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// logger passes the server's warnings and errors on and remembers the last one, because a server that cannot start says why
// only in its log.
type logger struct {
	to *slog.Logger

	mu   sync.Mutex
	text string
	dead bool
	up   bool
}

// fatal reports whether the server gave up.
func (l *logger) fatal() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// started says that the server takes connections.
func (l *logger) started() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up = true
}

func (l *logger) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text == "" {
		return "it gave no reason"
	}
	return l.text
}

func (l *logger) log(level slog.Level, format string, v []any) {
	text := fmt.Sprintf(format, v...)
	if level >= slog.LevelError {
		l.mu.Lock()
		l.text = text
		l.mu.Unlock()
	}
	if l.to != nil {
		l.to.Log(context.Background(), level, text, "component", "nats-server")
	}
}

// Fatalf would end the process in the server's own logger. Before the server is up Start's error says it.
func (l *logger) Fatalf(format string, v ...any) {
	l.mu.Lock()
	l.dead, l.text = true, fmt.Sprintf(format, v...)
	up := l.up
	l.mu.Unlock()
	if up {
		l.log(slog.LevelError, format, v)
	}
}

// Warnf makes what a store says of its recovery a debug record: after a kill that is the normal way to start.
func (l *logger) Warnf(format string, v ...any) {
	level := slog.LevelWarn
	if strings.HasPrefix(format, "Filestore [") && strings.Contains(strings.ToLower(format), "stream state") {
		level = slog.LevelDebug
	}
	l.log(level, format, v)
}

func (l *logger) Errorf(format string, v ...any) { l.log(slog.LevelError, format, v) }

func (l *logger) Noticef(string, ...any) {}
func (l *logger) Debugf(string, ...any)  {}
func (l *logger) Tracef(string, ...any)  {}
