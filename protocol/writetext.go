package protocol

import (
	"encoding/base64"
	"reflect"
	"unicode/utf8"
)

func writeText(b []byte, v reflect.Value) ([]byte, bool) { return appendText(b, v.String()), true }

const hexDigits = "0123456789abcdef"

// appendText appends a string as encoding/json writes it: what is no UTF-8 becomes U+FFFD, and U+2028 and U+2029, which end
// a line in JavaScript, are escaped.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := asciiLen(s); i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if c >= utf8.RuneSelf && (r != utf8.RuneError || n > 1) && r != '\u2028' && r != '\u2029' {
			i += n
			continue
		}
		b = append(b, s[from:i]...)
		switch {
		case c == '"', c == '\\':
			b = append(b, '\\', c)
		case c == '\b':
			b = append(b, `\b`...)
		case c == '\f':
			b = append(b, `\f`...)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
		case r == utf8.RuneError:
			b = append(b, `\ufffd`...)
		default:
			b = append(b, '\\', 'u', '2', '0', '2', hexDigits[r&0xF])
		}
		i += n
		from = i
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

// writeBytes appends bytes in base64.
func writeBytes(b []byte, v reflect.Value) ([]byte, bool) {
	if v.IsNil() {
		return append(b, "null"...), true
	}
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, v.Bytes())
	return append(b, '"'), true
}
