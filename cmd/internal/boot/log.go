package boot

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
)

// Logger writes records to w: lines for a person on a terminal, JSON elsewhere. Records of a traced context carry its ids.
// level is a name as in Settings.LogLevel; fallback stands for an empty one.
func Logger(w io.Writer, level string, fallback slog.Level) *slog.Logger {
	l := fallback
	if level != "" {
		_ = l.UnmarshalText([]byte(level)) // checked by Settings.Check
	}
	screen := term.NewScreen(w)
	if screen.TTY {
		return slog.New(traced{&console{screen: screen, level: l, mu: new(sync.Mutex)}})
	}
	return slog.New(traced{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l})})
}

// traced adds the ids of the context's span to each record.
type traced struct{ slog.Handler }

func (h traced) Handle(ctx context.Context, r slog.Record) error {
	if s := trace.SpanContextFromContext(ctx); s.IsValid() {
		r.AddAttrs(slog.String("trace_id", s.TraceID().String()), slog.String("span_id", s.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{h.Handler.WithAttrs(attrs)} }
func (h traced) WithGroup(name string) slog.Handler       { return traced{h.Handler.WithGroup(name)} }

// console writes one line a record: time, level, message, attributes.
type console struct {
	screen term.Screen
	level  slog.Level
	mu     *sync.Mutex // orders lines; shared by the handlers derived from one
	prefix string      // of group names
	attrs  string
}

func (h *console) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

func (h *console) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(h.screen.Paint(term.Dim, r.Time.Format(time.TimeOnly)))
	b.WriteByte(' ')
	b.WriteString(h.screen.Paint(levelColor(r.Level), r.Level.String()))
	b.WriteByte(' ')
	b.WriteString(term.EscapeLine(r.Message))
	b.WriteString(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		h.write(&b, h.prefix, a)
		return true
	})
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.screen, b.String())
	return err
}

func (h *console) write(b *strings.Builder, prefix string, a slog.Attr) {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		for _, inner := range value.Group() {
			h.write(b, prefix+a.Key+".", inner)
		}
		return
	}
	if a.Equal(slog.Attr{}) {
		return
	}
	text := value.String()
	if strings.ContainsAny(text, " \"=\n\t") || text == "" {
		text = strconv.Quote(text)
	}
	b.WriteByte(' ')
	b.WriteString(h.screen.Paint(term.Dim, prefix+a.Key+"="))
	b.WriteString(term.EscapeLine(text))
}

func (h *console) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	for _, a := range attrs {
		h.write(&b, h.prefix, a)
	}
	next := *h
	next.attrs += b.String()
	return &next
}

func (h *console) WithGroup(name string) slog.Handler {
	next := *h
	next.prefix += name + "."
	return &next
}

func levelColor(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return term.Red
	case l >= slog.LevelWarn:
		return term.Yellow
	case l >= slog.LevelInfo:
		return term.Green
	default:
		return term.Dim
	}
}
