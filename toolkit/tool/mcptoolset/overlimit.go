package mcptoolset

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// tailKept is how much of the end of a message over the limit is kept to find its id in.
const tailKept = 256

// A response's id stands before its result or after it, next to the version; the strings and numbers in between are the
// server's, and may look like one.
var (
	idFirst = regexp.MustCompile(`^\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,`)
	idLast  = regexp.MustCompile(`,\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)
)

// codeOverLimit marks the error that stands for a message over the limit: one of the range that JSON-RPC leaves to
// implementations.
const codeOverLimit = -32090

// maxParts is how many objects and lists a message may hold: each costs some hundred times its two characters when it is read.
const maxParts = 250_000

// parts counts the objects and lists of a JSON message.
func parts(message []byte) (n int) {
	quoted := false
	for i := 0; i < len(message); i++ {
		switch c := message[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case (c == '{' || c == '[') && !quoted:
			n++
		}
	}
	return n
}

// overLimit is the error response that stands for a response over the limit; nothing when it is not known whose it was, and
// the call then ends with its idle time.
func overLimit(head, tail []byte, why string) []byte {
	m := idFirst.FindSubmatch(head[:min(len(head), 4<<10)])
	if m == nil {
		m = idLast.FindSubmatch(tail)
	}
	if m == nil {
		return nil
	}
	text, _ := json.Marshal("it ran, but its answer " + why)
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`+"\n", m[1], codeOverLimit, text)
}
