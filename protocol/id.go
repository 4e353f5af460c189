package protocol

import (
	"bufio"
	"crypto/rand"
	"io"
	"sync"
)

// idLength is how many characters of 5 random bits give at least 128.
const idLength = 26

// random is the system's randomness, read for many ids at once.
var random = struct {
	mu   sync.Mutex
	read *bufio.Reader
}{read: bufio.NewReaderSize(rand.Reader, 64*idLength)}

// NewID returns an unguessable id of at least 128 random bits: 26 characters of a-z and 2-7, one NATS token.
func NewID() string {
	var id [idLength]byte
	random.mu.Lock()
	_, _ = io.ReadFull(random.read, id[:]) // the system's randomness never fails
	random.mu.Unlock()
	for i, b := range id {
		id[i] = "abcdefghijklmnopqrstuvwxyz234567"[b%32]
	}
	return string(id[:])
}

// Limits of names and ids. Both are one NATS token, so that they can stand in a subject as they are.
const (
	MaxNameLen = 63 // of tools, agents and apps, in bytes
	MaxIDLen   = 64 // of sessions, inputs, clients, workers and calls, in bytes
)

// CheckName reports whether name may name a tool, an agent or an app: [A-Za-z_][A-Za-z0-9_-]{0,62}, the part that all
// model providers and NATS agree on. It returns an *Error of code bad_name that says what is wrong and suggests a name.
func CheckName(name string) error {
	if name == "" {
		return Errorf(CodeBadName, "the name is empty")
	}
	if len(name) > MaxNameLen {
		return Errorf(CodeBadName, "%.40q...: %d bytes are more than %d", name, len(name), MaxNameLen)
	}
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if letter || i > 0 && (c == '-' || '0' <= c && c <= '9') {
			continue
		}
		return Errorf(CodeBadName, "%q: letters, digits, _ and - only, beginning with a letter or _; try %q", name, suggestName(name))
	}
	return nil
}

func suggestName(name string) string {
	b := []byte(name)
	for i, c := range b {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			b[i] = '_'
		}
	}
	if c := b[0]; c == '-' || '0' <= c && c <= '9' {
		b = append([]byte{'_'}, b...)
	}
	return string(b)
}

// CheckID reports whether id may stand in a subject as one token: 1 to 64 of A-Z a-z 0-9 _ -. It returns an *Error of
// code bad_id.
func CheckID(id string) error {
	if id == "" || len(id) > MaxIDLen {
		return Errorf(CodeBadID, "%.80q: an id has 1 to %d characters", id, MaxIDLen)
	}
	for i := range len(id) {
		c := id[i]
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return Errorf(CodeBadID, "%q: letters, digits, _ and - only", id)
		}
	}
	return nil
}
