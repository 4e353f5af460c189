package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

// Tree reads one JSON document as encoding/json does with UseNumber: objects are map[string]any, arrays []any, numbers
// json.Number. It costs a fraction of that, for the texts in the tree are parts of one copy of the document: who keeps one
// keeps them all. The caller owns what is returned.
func Tree(data []byte) (any, error) {
	if _, ok := grammar(data); !ok && !json.Valid(data) {
		return nil, invalid(data)
	}
	t := tree{doc: string(data)}
	return t.value(), nil
}

// invalid is what encoding/json says of a document that is none.
func invalid(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	var v json.RawMessage
	if err := d.Decode(&v); err != nil {
		return err
	}
	if _, err := d.Token(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return errors.New("there is more after the document")
}

// tree goes once over a document that is known to be valid JSON.
type tree struct {
	doc string
	pos int
}

// space passes white space and what stands between values, and returns the next byte.
func (t *tree) space() byte {
	for {
		switch c := t.doc[t.pos]; c {
		case ' ', '\t', '\n', '\r', ',', ':':
			t.pos++
		default:
			return c
		}
	}
}

func (t *tree) value() any {
	switch t.space() {
	case '{':
		m := map[string]any{}
		for t.pos++; t.space() != '}'; {
			key := t.text()
			m[key] = t.value()
		}
		t.pos++
		return m
	case '[':
		list := []any{}
		for t.pos++; t.space() != ']'; {
			list = append(list, t.value())
		}
		t.pos++
		return list
	case '"':
		return t.text()
	case 't':
		t.pos += len("true")
		return true
	case 'f':
		t.pos += len("false")
		return false
	case 'n':
		t.pos += len("null")
		return nil
	}
	from := t.pos
	for t.pos < len(t.doc) && isNumeric(t.doc[t.pos]) {
		t.pos++
	}
	return json.Number(t.doc[from:t.pos])
}

func isNumeric(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// text reads a string. What does not mean itself is left to encoding/json.
func (t *tree) text() string {
	from, escaped := t.pos, false
	for t.pos++; t.doc[t.pos] != '"'; t.pos++ {
		if t.doc[t.pos] == '\\' {
			escaped = true
			t.pos++
		}
	}
	t.pos++
	raw := t.doc[from:t.pos]
	if !escaped && utf8.ValidString(raw) {
		return raw[1 : len(raw)-1]
	}
	var s string
	_ = json.Unmarshal([]byte(raw), &s) // valid by now
	return s
}
