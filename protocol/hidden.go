package protocol

// HiddenRune finds the first character of a text that acts on a terminal or on its reader's eye instead of being seen:
// controls but tab and line ends, marks that turn the direction, invisible separators and tags. Joiners, which scripts and
// emoji need, are let through.
func HiddenRune(text string) (rune, bool) {
	for _, r := range text {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
		case r < 0x20, r >= 0x7f && r <= 0x9f, // C0, DEL, C1
			r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, // direction
			r == 0x00ad, r == 0x200b, r >= 0x2060 && r <= 0x2065, r >= 0x206a && r <= 0x206f, r == 0x2028, r == 0x2029, r == 0xfeff, // invisible
			r >= 0xe0000 && r <= 0xe007f: // tags
			return r, true
		}
	}
	return 0, false
}
