package term

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Escape makes text from a tool, a model or a message safe to show on a terminal: control characters but newline and tab,
// C1 controls, and the marks that turn or hide text stand as \uXXXX, bytes that are no UTF-8 as \xXX. A \r\n becomes a
// plain newline. JSON stays the same JSON.
func Escape(s string) string { return escape(s, true) }

// EscapeLine is Escape for one cell or line: newlines and tabs are escaped too.
func EscapeLine(s string) string { return escape(s, false) }

func escape(s string, lines bool) string {
	clean := true
	for _, r := range s {
		if r == utf8.RuneError || unsafeRune(r, lines) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	if lines {
		s = strings.ReplaceAll(s, "\r\n", "\n")
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\n' && !lines:
			b.WriteString(`\n`)
		case r == '\t' && !lines:
			b.WriteString(`\t`)
		case unsafeRune(r, lines):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// unsafeRune tells which characters act on a terminal or on the reader's eye instead of being seen.
func unsafeRune(r rune, lines bool) bool {
	switch {
	case r == '\n' || r == '\t':
		return !lines
	case r < 0x20, r >= 0x7f && r <= 0x9f:
		return true
	case r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x2069, r == 0xfeff:
		return true
	}
	return false
}
