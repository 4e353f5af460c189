package term

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEscapeShowsWhatActsOnATerminal(t *testing.T) {
	for _, c := range []struct{ name, in, want, line string }{
		{"plain", "héllo", "héllo", "héllo"},
		{"colour", "\x1b[31mred\x1b[0m", `\u001b[31mred\u001b[0m`, `\u001b[31mred\u001b[0m`},
		{"title", "\x1b]0;x\a", `\u001b]0;x\u0007`, `\u001b]0;x\u0007`},
		{"c1", "a\u009b2Jb", `a\u009b2Jb`, `a\u009b2Jb`},
		{"overwrite", "safe\rrm -rf", `safe\u000drm -rf`, `safe\u000drm -rf`},
		{"windows lines", "a\r\nb", "a\nb", `a\u000d\nb`},
		{"newline and tab", "a\n\tb", "a\n\tb", `a\n\tb`},
		{"bidi", "a\u202eb", `a\u202eb`, `a\u202eb`},
		{"zero width", "a\u200bb", `a\u200bb`, `a\u200bb`},
		{"no utf-8", "a\xffb", `a\xffb`, `a\xffb`},
		{"replacement itself", "a\ufffdb", "a\ufffdb", "a\ufffdb"},
		{"delete", "a\x7fb", `a\u007fb`, `a\u007fb`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Escape(c.in); got != c.want {
				t.Errorf("Escape: %q, want %q", got, c.want)
			}
			if got := EscapeLine(c.in); got != c.line {
				t.Errorf("EscapeLine: %q, want %q", got, c.line)
			}
		})
	}
}

func FuzzEscapeLeavesNothingThatActs(f *testing.F) {
	f.Add("a\x1b[2J\u009b\xff\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		for _, out := range []string{Escape(s), EscapeLine(s)} {
			if !utf8.ValidString(out) {
				t.Fatalf("%q is no UTF-8", out)
			}
			for _, r := range out {
				if unsafeRune(r, true) {
					t.Fatalf("%q still holds %U", out, r)
				}
			}
		}
		if strings.ContainsAny(EscapeLine(s), "\n\t") {
			t.Fatal("more than one line")
		}
	})
}

func TestTableLinesUpAndKeepsCellsOnTheirLine(t *testing.T) {
	var b strings.Builder
	if err := Table(&b, []string{"TOOL", "TEXT"}, [][]string{{"a", "x\ny"}, {"long_name", ""}}); err != nil {
		t.Fatal(err)
	}
	want := "TOOL       TEXT\na          x\\ny\nlong_name  -\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestClipCountsCharacters(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"ééé", 3, "ééé"}, {"éééé", 3, "éé…"}, {"", 3, ""}} {
		if got := Clip(c.in, c.n); got != c.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}
