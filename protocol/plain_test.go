package protocol

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestPlainTextEndsAtTheFirstByteThatDoesNotStandForItself(t *testing.T) {
	byByte := func(b []byte) int {
		for i, c := range b {
			if c == '"' || c == '\\' || c < ' ' {
				return i
			}
		}
		return len(b)
	}
	r := rand.New(rand.NewPCG(1, 2))
	check := func(b []byte) {
		t.Helper()
		want := byByte(b)
		if got := plainLen(b); got != want {
			t.Errorf("%q: %d, want %d", b, got, want)
		}
		for _, c := range b[:asciiLen(string(b))] {
			if byByte([]byte{c}) == 0 || c >= 0x80 {
				t.Errorf("%q: byte %q is taken as plain ASCII", b, c)
			}
		}
	}
	for c := range 256 {
		for at := range 20 {
			b := bytes.Repeat([]byte("x"), 20)
			b[at] = byte(c)
			check(b)
			for _, filler := range []byte{0x7f, 0x80, 0xff, ' ', '!', '#', '[', ']'} {
				b := bytes.Repeat([]byte{filler}, 20)
				b[at] = byte(c)
				check(b)
			}
		}
	}
	for range 20_000 {
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = byte(r.UintN(256))
		}
		check(b)
	}
}
