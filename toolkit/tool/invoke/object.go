package invoke

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/toolfabric/toolfabric/protocol"
)

// resultLimits are those of a message, less what wraps the value in it.
var resultLimits = protocol.Limits{
	Depth: protocol.MessageLimits.Depth - 4, Keys: protocol.MessageLimits.Keys - 1000, Number: protocol.MessageLimits.Number,
}

// sizeError is an answer too large to be sent.
type sizeError struct{ got int }

func (e *sizeError) Error() string {
	return fmt.Sprintf("the answer has %d bytes, more than %d: answer less, or save it as an artifact and answer its name", e.got, protocol.MaxInlineResult)
}

// Object writes a value that a tool answers as the JSON object that models are sent: an object stays as it is, anything else
// becomes {"result": v}. It returns an *Error of code too_large beyond protocol.MaxInlineResult, and of code bad_message,
// naming the place, for what is no JSON.
func Object(v any) (json.RawMessage, error) {
	raw, err := Encode(v)
	if err == nil {
		raw, err = object(raw)
	}
	if e, ok := errors.AsType[*sizeError](err); ok {
		return nil, protocol.Errorf(protocol.CodeTooLarge, "%s", e)
	}
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeBadMessage, "%s", err)
	}
	return raw, nil
}

var (
	lineSeparator      = []byte("\u2028")
	paragraphSeparator = []byte("\u2029")
)

// object makes an answer the JSON object that models are sent. An object stays as it is, unless it is empty, which models
// would not see, or has a key "output" or "error" beside others, of which Gemini's API drops the others: these, like
// everything that is no object, become {"result": v}.
func object(raw json.RawMessage) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		raw = json.RawMessage("null")
	}
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	if bytes.Contains(raw, []byte(`\u`)) {
		raw = withoutLoneSurrogates(raw)
	}
	if err := protocol.Check(raw, resultLimits); err != nil {
		e, _ := errors.AsType[*protocol.Error](err)
		return nil, fmt.Errorf("the answer cannot be sent: %s", e.Public)
	}
	if raw[0] != '{' || mustNest(raw) {
		nested := make([]byte, 0, len(raw)+len(`{"result":}`))
		nested = append(nested, `{"result":`...)
		nested = append(nested, raw...)
		raw = append(nested, '}')
	}
	if bytes.ContainsAny(raw, "<>&") || bytes.Contains(raw, lineSeparator) || bytes.Contains(raw, paragraphSeparator) { // written as escapes by whoever encodes the message: they count
		var b bytes.Buffer
		json.HTMLEscape(&b, raw)
		raw = b.Bytes()
	}
	if len(raw) > protocol.MaxInlineResult {
		return nil, &sizeError{got: len(raw)}
	}
	return raw, nil
}

// mustNest looks at the keys of an object that is known to be valid.
func mustNest(raw []byte) bool {
	keys, reserved := 0, false
	depth, key := 0, false
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{':
			depth++
			key = depth == 1
		case '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			key = depth == 1
		case '"':
			from := i
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
			if key {
				keys++
				reserved = reserved || isReserved(raw[from:i+1])
				key = false
			}
		}
	}
	return keys == 0 || reserved && keys > 1
}

func isReserved(key []byte) bool {
	if bytes.IndexByte(key, '\\') >= 0 {
		var s string
		_ = json.Unmarshal(key, &s)
		return s == "output" || s == "error"
	}
	return string(key) == `"output"` || string(key) == `"error"`
}

// withoutLoneSurrogates writes U+FFFD for each escape of half a character. What is not JSON stays that way.
func withoutLoneSurrogates(raw []byte) []byte {
	out := raw
	copied := false
	for i := 0; i+5 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if raw[i+1] != 'u' {
			i++
			continue
		}
		r := escaped(raw[i:])
		if r >= 0xD800 && r <= 0xDBFF {
			if low := escaped(raw[i+6:]); low >= 0xDC00 && low <= 0xDFFF {
				i += 11
				continue
			}
		}
		if r >= 0xD800 && r <= 0xDFFF {
			if !copied {
				out, copied = bytes.Clone(raw), true
			}
			copy(out[i:], `\ufffd`)
		}
		i += 5
	}
	return out
}

// escaped is the number in the \uXXXX that b begins with, 0 if it does not.
func escaped(b []byte) uint64 {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	n, _ := strconv.ParseUint(string(b[2:6]), 16, 32)
	return n
}
