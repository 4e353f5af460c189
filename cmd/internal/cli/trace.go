package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
	"github.com/toolfabric/toolfabric/coordinator/client"
)

func (a *app) traceCmd() *cobra.Command {
	return &cobra.Command{
		Use: "trace SESSION", Short: "Draw what a session did, when and in which process", Args: cobra.ExactArgs(1),
		Long: `Trace draws the spans of a session across all processes. It reads the session's log and results; no telemetry backend
is needed. Trace ids are those of OpenTelemetry.`,
		Example: "  toolfabric trace 7qk3zv2m5h6x\n  toolfabric trace 7qk3zv2m5h6x --output json",
		RunE:    a.do(a.trace),
	}
}

func (a *app) trace(ctx context.Context, args []string) error {
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	s, err := l.client.Find(ctx, args[0])
	if err != nil {
		return err
	}
	spans, err := l.client.Trace(ctx, s.App, s.ID)
	if err != nil {
		return err
	}
	return a.print(spans, func() error { return writeTrace(a.out, spans, time.Now()) })
}

const barWidth = 32

// writeTrace draws each root as a tree with a bar for each span on the root's own time line.
func writeTrace(out term.Screen, roots []*client.Span, now time.Time) error {
	var b strings.Builder
	for i, root := range roots {
		if i > 0 {
			b.WriteByte('\n')
		}
		d := drawing{out: out, now: now, from: root.Start, to: end(root, now)}
		d.measure(root)
		d.collect(root, "", "")
		d.write(&b)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

type drawing struct {
	out      term.Screen
	now      time.Time
	from, to time.Time
	rows     []row
}

type row struct {
	name string
	span *client.Span
}

func end(s *client.Span, now time.Time) time.Time {
	if s.End.IsZero() {
		return now
	}
	return s.End
}

// measure widens the time line to hold all spans: clocks differ between processes.
func (d *drawing) measure(s *client.Span) {
	if s.Start.Before(d.from) {
		d.from = s.Start
	}
	if e := end(s, d.now); e.After(d.to) {
		d.to = e
	}
	for _, c := range s.Children {
		d.measure(c)
	}
}

func (d *drawing) collect(s *client.Span, first, rest string) {
	name := s.Name
	if s.Role != "" {
		name += " (" + s.Role + ")"
	}
	d.rows = append(d.rows, row{name: first + term.EscapeLine(name), span: s})
	for i, c := range s.Children {
		if i == len(s.Children)-1 {
			d.collect(c, rest+"└─ ", rest+"   ")
		} else {
			d.collect(c, rest+"├─ ", rest+"│  ")
		}
	}
}

func (d *drawing) write(b *strings.Builder) {
	width := 0
	for _, r := range d.rows {
		width = max(width, utf8.RuneCountInString(r.name))
	}
	for _, r := range d.rows {
		s := r.span
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(r.name))
		line := fmt.Sprintf("%s%s  %-8s  %7s  %s", r.name, pad, term.EscapeLine(short(s.Process)), lasted(end(s, d.now).Sub(s.Start)), d.bar(s))
		if note := d.note(s); note != "" {
			line += "  " + note
		}
		b.WriteString(strings.TrimRight(line, " "))
		b.WriteByte('\n')
	}
}

// lasted is a span's duration. The log knows milliseconds.
func lasted(d time.Duration) string {
	if d < time.Millisecond {
		return "<1ms"
	}
	return span(d)
}

// bar shows when a span was, at least one cell wide.
func (d *drawing) bar(s *client.Span) string {
	total := max(d.to.Sub(d.from), time.Nanosecond)
	cell := func(t time.Time) int { return int(float64(t.Sub(d.from)) / float64(total) * barWidth) }
	from := min(max(cell(s.Start), 0), barWidth-1)
	to := min(max(cell(end(s, d.now)), from+1), barWidth)
	color := term.Green
	if s.Status != "ok" {
		color = term.Red
	}
	return strings.Repeat("·", from) + d.out.Paint(color, strings.Repeat("█", to-from)) + strings.Repeat("·", barWidth-to)
}

func (d *drawing) note(s *client.Span) string {
	var notes []string
	if s.Status != "ok" {
		notes = append(notes, term.EscapeLine(s.Status))
	}
	if s.Attempt > 1 {
		notes = append(notes, fmt.Sprintf("attempt %d", s.Attempt))
	}
	if s.Queue > 0 {
		notes = append(notes, "queued "+span(time.Duration(s.Queue)*time.Millisecond))
	}
	if s.Tokens > 0 {
		notes = append(notes, fmt.Sprintf("%d tokens", s.Tokens))
	}
	if s.Detail != "" {
		notes = append(notes, term.EscapeLine(term.Clip(s.Detail, 80)))
	}
	return strings.Join(notes, ", ")
}
