package term

import (
	"io"
	"os"

	"github.com/mattn/go-isatty"
)

// Screen is where output goes and what may be done there.
type Screen struct {
	io.Writer
	TTY   bool // a person watches: escape what others wrote, redraw lines
	Color bool // ANSI colours are wanted
	Raw   bool // the user asked for text as it is
}

// Terminal reports whether r is a terminal that a person types at.
func Terminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// NewScreen looks at w. Colours follow NO_COLOR (any value turns them off) and TERM=dumb.
func NewScreen(w io.Writer) Screen {
	s := Screen{Writer: w}
	f, ok := w.(*os.File)
	if !ok || !isatty.IsTerminal(f.Fd()) {
		return s
	}
	s.TTY = os.Getenv("TERM") != "dumb"
	s.Color = s.TTY && os.Getenv("NO_COLOR") == ""
	return s
}

// Text is what somebody else wrote, as it may be shown here.
func (s Screen) Text(text string) string {
	if !s.TTY || s.Raw {
		return text
	}
	return Escape(text)
}

// The colours we use.
const (
	Dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Cyan   = "36"
)

// Paint colours our own words where colours are wanted.
func (s Screen) Paint(color, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}
