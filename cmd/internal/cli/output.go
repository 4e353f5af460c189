package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"time"

	"github.com/toolfabric/toolfabric/cmd/internal/term"
)

// print writes data: v as indented JSON, or what table does with it.
func (a *app) print(v any, table func() error) error {
	if a.set.Output != "json" {
		return table()
	}
	return a.printJSON(v, "  ")
}

// printLine writes v as one line of JSON, for streams of records.
func (a *app) printLine(v any) error { return a.printJSON(v, "") }

func (a *app) printJSON(v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := fmt.Fprint(a.out, a.out.Text(b.String()))
	return err
}

func (a *app) table(header []string, rows [][]string) error { return term.Table(a.out, header, rows) }

// list is a table that may be empty; next then says how to fill it.
func (a *app) list(header []string, rows [][]string, next string) error {
	if len(rows) == 0 {
		a.say("%s", next)
	}
	return a.table(header, rows)
}

func (a *app) write(text string) error {
	_, err := io.WriteString(a.out, text)
	return err
}

// say writes a line of talk.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.err, "%s\n", a.reaching(fmt.Sprintf(format, args...)))
}

// short is an id as people compare it.
func short(id string) string {
	if len(id) > 8 {
		return id[:8]
	}
	return id
}

// ago is how long ago something was, in its largest unit.
func ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := max(0, time.Since(t))
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + "s ago"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + "m ago"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + "h ago"
	default:
		return t.Local().Format("2006-01-02 15:04")
	}
}

// span is a duration with three digits at most.
func span(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return strconv.Itoa(int(d.Microseconds())) + "µs"
	case d < time.Second:
		return strconv.Itoa(int(d.Milliseconds())) + "ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	default:
		return d.Round(time.Second).String()
	}
}

// oneLine is JSON without spaces, clipped, for lines of talk.
func oneLine(raw json.RawMessage, limit int) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return ""
	}
	return term.EscapeLine(term.Clip(htmlEscape.ReplaceAllStringFunc(b.String(), unescapeHTML), limit))
}

// htmlEscape is what Go's encoder makes of <, > and &, or an escaped backslash, which is passed over.
var htmlEscape = regexp.MustCompile(`\\\\|\\u003c|\\u003e|\\u0026`)

func unescapeHTML(escape string) string {
	switch escape {
	case `\u003c`:
		return "<"
	case `\u003e`:
		return ">"
	case `\u0026`:
		return "&"
	default:
		return escape
	}
}

func jsonLine(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return oneLine(raw, 160)
}
