package protocol

import (
	"bytes"
	"encoding/json"
	"reflect"
	"sync"
)

// Encode writes a message. Unlike json.Marshal it leaves <, > and & in raw parts as they are: the bytes of arguments are
// what was checked and what runs. White space between the tokens of raw parts is dropped; see Compact. The caller owns what
// is returned.
func Encode(v any) ([]byte, error) {
	from := reflect.ValueOf(v)
	if from.Kind() == reflect.Pointer && !from.IsNil() {
		from = from.Elem()
	}
	if k := from.Kind(); k == reflect.Struct || k == reflect.Map {
		room := rooms.Get().(*[]byte)
		b, ok := writerOf(from.Type())((*room)[:0], from)
		data := bytes.Clone(b)
		if cap(b) <= maxRoom {
			*room = b
		}
		rooms.Put(room)
		if ok {
			return data, nil
		}
	}
	return encodeJSON(v)
}

// rooms are used again to write messages in, unless a message made one larger than maxRoom.
var rooms = sync.Pool{New: func() any { return new([]byte) }}

const maxRoom = 64 << 10

// encodeJSON is Encode by encoding/json alone.
func encodeJSON(v any) ([]byte, error) {
	e := encoders.Get().(*encoder)
	err := e.json.Encode(v)
	data := e.data
	e.data = nil
	encoders.Put(e)
	if err != nil {
		return nil, Wrap(err, CodeInternal, "a message cannot be written as JSON")
	}
	return data, nil
}

// encoder is a json.Encoder that is used again. It gets a document in one piece, which is copied once, to its size.
type encoder struct {
	json *json.Encoder
	data []byte
}

var encoders = sync.Pool{New: func() any {
	e := new(encoder)
	e.json = json.NewEncoder(e)
	e.json.SetEscapeHTML(false)
	return e
}}

// Write takes a document from the json.Encoder, which ends it with a line feed.
func (e *encoder) Write(p []byte) (int, error) {
	e.data = append(e.data, bytes.TrimSuffix(p, []byte("\n"))...)
	return len(p), nil
}

// Compact drops the white space between the tokens of a valid JSON document, so that its bytes stay the same however
// often it is read and written. A document without any is returned as it is.
func Compact(raw json.RawMessage) json.RawMessage {
	if spaced, ok := grammar(raw); ok && !spaced {
		return raw
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}
