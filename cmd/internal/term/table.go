package term

import (
	"io"
	"strings"
	"text/tabwriter"
)

// Table writes rows under a header in columns. Cells are escaped and trailing space is left out; without rows only the
// header stands.
func Table(w io.Writer, header []string, rows [][]string) error {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			if i > 0 {
				_, _ = io.WriteString(tw, "\t")
			}
			if cell == "" {
				cell = "-"
			}
			_, _ = io.WriteString(tw, EscapeLine(cell))
		}
		_, _ = io.WriteString(tw, "\n")
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	var out strings.Builder
	for line := range strings.Lines(b.String()) {
		out.WriteString(strings.TrimRight(line, " \n"))
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// Clip shortens a cell to at most limit characters, with an ellipsis for what is cut.
func Clip(s string, limit int) string {
	r := []rune(s)
	if len(r) <= limit {
		return s
	}
	return string(r[:limit-1]) + "…"
}
