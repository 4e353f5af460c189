package protocol

import "testing"

func TestHiddenRunesAreFound(t *testing.T) {
	for text, want := range map[string]rune{
		"plain, with\ttab and\r\nlines": 0,
		"नमस्ते ک\u200cتاب 👩\u200d🔬":    0,
		"a\x1b[2J":        0x1b,
		"a\u0085":         0x85,
		"gnp.\u202egpj":   0x202e,
		"a\u2067b":        0x2067,
		"zero\u200bwidth": 0x200b,
		"\ufeffmark":      0xfeff,
		"tag \U000e0041":  0xe0041,
	} {
		if got, found := HiddenRune(text); got != want || found != (want != 0) {
			t.Errorf("%q: got %U, %v, want %U", text, got, found, want)
		}
	}
}
