package fold

import (
	"bytes"
	"crypto/sha256"
	"slices"
)

// Seen remembers the newest MaxSeen input ids, oldest first, as the first 8 bytes of their SHA-256: it is part of every
// snapshot, and a session's inputs should not make its adoption slow. That two of a session's ids ever look the same is
// less likely than that a disk returns another byte than was written.
type Seen []byte

const seenSize = 8

// Has reports whether an id is remembered.
func (s Seen) Has(id string) bool {
	sum := sha256.Sum256([]byte(id))
	for d := range slices.Chunk(s, seenSize) {
		if bytes.Equal(d, sum[:seenSize]) {
			return true
		}
	}
	return false
}

// Full reports whether older ids than those may have been forgotten.
func (s Seen) Full() bool { return len(s) >= MaxSeen*seenSize }

// add makes a new list: other states share the old one.
func (s Seen) add(id string) Seen {
	if s.Has(id) {
		return s
	}
	if s.Full() {
		s = s[seenSize:]
	}
	sum := sha256.Sum256([]byte(id))
	return append(slices.Clip(s), sum[:seenSize]...)
}

// renew makes an id the newest one.
func (s Seen) renew(id string) Seen {
	sum := sha256.Sum256([]byte(id))
	rest := make(Seen, 0, len(s))
	for d := range slices.Chunk(s, seenSize) {
		if !bytes.Equal(d, sum[:seenSize]) {
			rest = append(rest, d...)
		}
	}
	return rest.add(id)
}
