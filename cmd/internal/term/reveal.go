package term

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Reveal is text in which a person who decides sees every character: what a terminal does not draw as something of its
// own (controls, marks that turn the direction, zero-width and blank characters, tags, private ones) stands as \uXXXX,
// bytes that are no UTF-8 as \xXX. Line feeds and spaces stay. JSON stays the same JSON.
func Reveal(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\n' || !unseen(r):
			b.WriteString(s[:n])
		default:
			escapeRune(&b, r)
		}
		s = s[n:]
	}
	return b.String()
}

func escapeRune(b *strings.Builder, r rune) {
	if r1, r2 := utf16.EncodeRune(r); r1 != unicode.ReplacementChar {
		fmt.Fprintf(b, `\u%04x\u%04x`, r1, r2)
		return
	}
	fmt.Fprintf(b, `\u%04x`, r)
}

// unseen reports whether a reader cannot tell r from nothing, from a space, or from another place in the line.
func unseen(r rune) bool {
	switch {
	case !unicode.IsPrint(r): // all spaces but one, controls, formats, private and unassigned characters
		return true
	case unicode.Is(unicode.Variation_Selector, r), r == 0x034f, r == 0x2800:
		return true
	case r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0: // fillers that Unicode calls letters
		return true
	}
	return false
}

// longRun is how many spaces in a row push what follows out of sight.
const longRun = 16

// Suspicions says in a line each what may deceive the reader of a text: characters that cannot be seen, words that mix
// alphabets whose letters look alike, and runs of spaces that hide what comes after them.
func Suspicions(s string) []string {
	var notes []string
	hidden := 0
	for _, r := range s {
		if r != '\n' && unseen(r) {
			hidden++
		}
	}
	if hidden > 0 {
		notes = append(notes, fmt.Sprintf(`%d characters that cannot be seen are written as \uXXXX`, hidden))
	}
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) }) {
		if mixed(word) {
			notes = append(notes, "letters of several alphabets in one word: "+Clip(spell(word), 80))
		}
	}
	if strings.Contains(s, strings.Repeat(" ", longRun)) {
		notes = append(notes, fmt.Sprintf("%d spaces in a row or more: look for what comes after them", longRun))
	}
	return notes
}

// mixed reports letters of Latin beside those of an alphabet with the same shapes.
func mixed(word string) bool {
	latin, like := false, false
	for _, r := range word {
		latin = latin || unicode.Is(unicode.Latin, r)
		like = like || unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic)
	}
	return latin && like
}

// spell writes a word with every letter that is not Latin as \uXXXX.
func spell(word string) string {
	var b strings.Builder
	for _, r := range word {
		if r < utf8.RuneSelf || unicode.Is(unicode.Latin, r) {
			b.WriteRune(r)
		} else {
			escapeRune(&b, r)
		}
	}
	return b.String()
}
