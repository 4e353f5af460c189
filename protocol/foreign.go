package protocol

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// foreignMark begins a token that stands for text that is no token itself.
const foreignMark = "x-"

// ClientID is the token that stands for a user whom another system named, in subjects and in State: the name itself when
// that is an id, else a spelling of it that UserName reads. It returns
// bad_id for a name that is empty, too long, or holds control characters.
func ClientID(user string) (string, error) {
	token := spell(user)
	if user == "" || len(token) > MaxIDLen || !printable(user) {
		return "", Errorf(CodeBadID, "user %.80q: a user's id has 1 to %d printable characters, of which each byte but A-Z a-z 0-9 _ may count three times", user, MaxIDLen)
	}
	return token, nil
}

// UserName is the user that a token stands for: what ClientID was given, or the token itself.
func UserName(client string) string { return read(client) }

// SessionID is the id under which user's session of that name runs. Elsewhere two users may each have a session "default",
// while an id names one session for everybody: so the id ends in digits that are the user's own. An id that NewID could
// have made belongs to nobody else anyway and stays as it is. It returns bad_id.
func SessionID(user, name string) (string, error) {
	if unguessable(name) {
		return name, nil
	}
	id := spell(name) + ownDigits(user)
	if name == "" || len(id) > MaxIDLen || !printable(name) {
		return "", Errorf(CodeBadID, "session %.80q: a session's id has 1 to %d printable characters, of which each byte but A-Z a-z 0-9 _ may count three times", name, MaxIDLen-len(ownDigits(user)))
	}
	return id, nil
}

// SessionName is the name that SessionID made an id of, for the same user; any other id is its own name.
func SessionName(user, id string) string {
	if name, ok := strings.CutSuffix(id, ownDigits(user)); ok && name != "" {
		return read(name)
	}
	return id
}

func unguessable(id string) bool {
	return len(id) == idLength && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// ownDigits is a user's mark on session ids: 50 bits of a hash.
func ownDigits(user string) string {
	sum := sha256.Sum256([]byte(user))
	return "-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:10])
}

// spell writes text as a token: bytes that stand for themselves, and "-" with two hexadecimal digits for others.
func spell(text string) string {
	if CheckID(text) == nil && !strings.HasPrefix(text, foreignMark) {
		return text
	}
	var b strings.Builder
	b.WriteString(foreignMark)
	for i := range len(text) {
		if c := text[i]; c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			b.WriteByte(c)
		} else {
			b.WriteByte('-')
			b.WriteString(hex.EncodeToString([]byte{c}))
		}
	}
	return b.String()
}

// read is the text of a token; a token that spell did not write is its own text.
func read(token string) string {
	rest, ok := strings.CutPrefix(token, foreignMark)
	if !ok {
		return token
	}
	var b strings.Builder
	for rest != "" {
		c := rest[0]
		if c != '-' {
			b.WriteByte(c)
			rest = rest[1:]
			continue
		}
		if len(rest) < 3 {
			return token
		}
		raw, err := hex.DecodeString(rest[1:3])
		if err != nil {
			return token
		}
		b.Write(raw)
		rest = rest[3:]
	}
	if text := b.String(); printable(text) && spell(text) == token {
		return text
	}
	return token
}

// printable refuses what could end a line or a C string elsewhere.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
