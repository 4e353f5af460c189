package term

import (
	"slices"
	"testing"
)

func TestRevealShowsEveryCharacter(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "héllo 世界 🙂", "héllo 世界 🙂"},
		{"line feed and space", "a\n  b", "a\n  b"},
		{"control", "a\x1b[2J\t\r", `a\u001b[2J\u0009\u000d`},
		{"direction", "a\u202eb\u061cc\u2066", `a\u202eb\u061cc\u2066`},
		{"zero width", "a\u200bb\u200dc\ufeff\u00ad", `a\u200bb\u200dc\ufeff\u00ad`},
		{"other spaces", "a\u00a0b\u3000c\u2028", `a\u00a0b\u3000c\u2028`},
		{"fillers", "\u3164\u115f\u2800\ufe0f\u034f", `\u3164\u115f\u2800\ufe0f\u034f`},
		{"tags", "a\U000e0041", `a\udb40\udc41`},
		{"private", "\ue000", `\ue000`},
		{"no utf-8", "a\xff", `a\xff`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Reveal(c.in); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestSuspicionsNameWhatDeceives(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", `{"to":"Москва","n":1}`, nil},
		{"hidden", "a\u202eb\u200b", []string{`2 characters that cannot be seen are written as \uXXXX`}},
		{"look-alikes", `{"host":"p` + "\u0430" + `ypal.com"}`, []string{`letters of several alphabets in one word: p\u0430ypal`}},
		{"far away", `{"to":"bob                            and eve"}`, []string{"16 spaces in a row or more: look for what comes after them"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Suspicions(c.in); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
