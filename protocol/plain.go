package protocol

import (
	"encoding/binary"
	"math/bits"
)

// Most of what is read and written is text in which every byte stands for itself. It is looked at eight bytes at a time.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special has the high bit of each byte of w set that does not stand for itself in a string of JSON: quote, backslash and
// what is below a space. Behind the first such byte it may also have others set.
func special(w uint64) uint64 {
	quote, slash := w^('"'*ones), w^('\\'*ones)
	return ((w-' '*ones)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// plainLen is how many bytes b begins with that stand for themselves in a string.
func plainLen(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		if found := special(binary.LittleEndian.Uint64(b[i:])); found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' {
			break
		}
	}
	return i
}

// asciiLen is how many bytes s begins with that are ASCII and stand for themselves, in steps of eight.
func asciiLen(s string) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		if special(w)|w&highs != 0 {
			break
		}
	}
	return i
}
