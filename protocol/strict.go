package protocol

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// Limits bound what the strict decoder takes. Sizes are in bytes; a zero field is no limit.
type Limits struct {
	Size   int // of the whole document
	Depth  int // of nested objects and arrays
	Keys   int // of all objects together
	String int // of one string or key, as written
	Number int // characters of one number
}

// The limits of messages on the bus and of the arguments of one call.
var (
	MessageLimits = Limits{Size: 1 << 20, Depth: 64, Keys: 100_000, Number: 40}
	ArgsLimits    = Limits{Size: 256 << 10, Depth: 64, Keys: 10_000, String: 256 << 10, Number: 40}
)

// Decode reads data into v the way every message from outside is read: one JSON document of valid UTF-8 within lim, no
// key twice in an object, no key that differs from a known one by case only, no lone surrogates. Keys that v does not know
// are left out; raw parts keep their exact bytes. It returns an *Error of code bad_message or too_large that names the
// place as a JSON pointer. Parsers that disagree about such documents are how a value is smuggled past a check.
func Decode(data []byte, v any, lim Limits) error {
	into := reflect.ValueOf(v).Elem()
	s := shapeOf(into.Type())
	if !s.direct() || !into.IsZero() {
		if err := check(data, lim, s); err != nil {
			return err
		}
		return unmarshal(data, v)
	}
	stored, err := walk(data, lim, s, into)
	if err != nil || stored {
		return err
	}
	into.SetZero() // something does not fit: encoding/json says what, or makes it fit
	return unmarshal(data, v)
}

func unmarshal(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return Wrap(err, CodeBadMessage, "%s", wrongType(err))
	}
	return nil
}

// Check reports whether data is one JSON document that Decode would take. It returns an *Error of code bad_message or
// too_large.
func Check(data []byte, lim Limits) error { return check(data, lim, nil) }

func wrongType(err error) string {
	if e, ok := err.(*json.UnmarshalTypeError); ok {
		return "a JSON " + e.Value + " cannot stand at /" + strings.ReplaceAll(e.Field, ".", "/") + ", want " + jsonName(e.Type)
	}
	return "the document cannot be read"
}

// jsonName is what a value of type t is written as.
func jsonName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice, reflect.Array:
		return "array"
	default:
		return t.Kind().String()
	}
}

func check(data []byte, lim Limits, s *shape) error {
	_, err := walk(data, lim, s, reflect.Value{})
	return err
}

// walk checks data and stores it in into, if that is valid and all of it fits.
func walk(data []byte, lim Limits, s *shape, into reflect.Value) (stored bool, err error) {
	if lim.Size > 0 && len(data) > lim.Size {
		return false, Errorf(CodeTooLarge, "%d bytes are more than %d", len(data), lim.Size)
	}
	if !utf8.Valid(data) {
		return false, Errorf(CodeBadMessage, "invalid UTF-8 at byte %d", invalidAt(data))
	}
	w := walkers.Get().(*walker)
	*w = walker{data: data, lim: lim, path: w.path[:0], seen: w.seen[:0]}
	w.value(s, into)
	if w.space(); w.pos < len(data) {
		w.malformed()
	}
	stored, err = !w.misfit, w.err
	w.release()
	if err != nil {
		var v json.RawMessage // that it is no JSON at all is the first thing to say
		if bad := json.Unmarshal(data, &v); bad != nil {
			err = invalidJSON(bad)
		}
	}
	return stored, err
}

func invalidJSON(err error) error {
	if e, ok := err.(*json.SyntaxError); ok {
		return Errorf(CodeBadMessage, "invalid JSON at byte %d: %s", e.Offset, e.Error())
	}
	return Wrap(err, CodeBadMessage, "invalid JSON")
}

func invalidAt(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(data)
}

// walkers are used again for the room in their slices, unless a document made them larger than maxKept.
var walkers = sync.Pool{New: func() any { return &walker{path: make([]step, 0, 16), seen: make([][]byte, 0, 32)} }}

const (
	maxKept  = 256
	keptData = 4 << 10
)

func (w *walker) release() {
	if cap(w.path)+cap(w.seen) > maxKept {
		return
	}
	if len(w.data) > keptData { // keys are parts of the document: a small one may wait with them
		clear(w.path[:cap(w.path)])
		clear(w.seen[:cap(w.seen)])
	}
	w.data, w.err = nil, nil
	walkers.Put(w)
}

// walker goes once over a document and takes nothing that is not JSON. Keys stay where they are in the document: text is
// made only for an error.
type walker struct {
	data []byte
	pos  int
	lim  Limits
	path []step
	seen [][]byte // the keys so far of the objects that path is in
	keys int
	err  error

	lean   bool // only the grammar counts
	spaced bool // there was white space between tokens
	misfit bool // something could not be stored as it is; see store
}

// step is one reference of a JSON pointer: a key, or the index of an element where key is nil.
type step struct {
	key   []byte
	index int
}

// shown is how much of one key an error repeats, in bytes.
const shown = 64

func (st step) String() string {
	if st.key == nil {
		return strconv.Itoa(st.index)
	}
	if len(st.key) > shown {
		return strings.ToValidUTF8(string(st.key[:shown]), "") + "..."
	}
	return string(st.key)
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

func (w *walker) fail(code Code, format string, args ...any) {
	if w.err == nil {
		e := Errorf(code, format, args...)
		e.Public += " at " + w.pointer()
		w.err = e
	}
	w.pos = len(w.data)
}

// malformed says that the document is no JSON; encoding/json then says why.
func (w *walker) malformed() { w.fail(CodeBadMessage, "invalid JSON") }

func (w *walker) pointer() string {
	if len(w.path) == 0 {
		return "/"
	}
	var b strings.Builder
	for _, st := range w.path {
		b.WriteByte('/')
		b.WriteString(pointerEscape.Replace(st.String()))
	}
	return b.String()
}

func (w *walker) space() byte {
	for w.pos < len(w.data) {
		switch c := w.data[w.pos]; c {
		case ' ', '\t', '\n', '\r':
			w.spaced = true
			w.pos++
		default:
			return c
		}
	}
	return 0
}

// value passes a value of shape s and stores it in into, unless that is not valid.
func (w *walker) value(s *shape, into reflect.Value) {
	c := w.space()
	if !into.IsValid() || w.misfit {
		w.pass(c, s, reflect.Value{})
		return
	}
	w.store(c, s, into)
}

func (w *walker) pass(c byte, s *shape, into reflect.Value) {
	switch c {
	case '{':
		w.object(s, into)
	case '[':
		w.array(s, into)
	case '"':
		w.str()
	case 't':
		w.literal("true")
	case 'f':
		w.literal("false")
	case 'n':
		w.literal("null")
	default:
		w.number()
	}
}

func (w *walker) literal(word string) {
	if w.pos+len(word) > len(w.data) || string(w.data[w.pos:w.pos+len(word)]) != word {
		w.malformed()
		return
	}
	w.pos += len(word)
}

// maxDepth is that of encoding/json.
const maxDepth = 10_000

func (w *walker) enter(st step) bool {
	w.path = append(w.path, st)
	if len(w.path) > maxDepth {
		w.malformed()
		return false
	}
	if w.lim.Depth > 0 && len(w.path) > w.lim.Depth {
		w.fail(CodeBadMessage, "nested deeper than %d", w.lim.Depth)
		return false
	}
	return true
}

func (w *walker) object(s *shape, into reflect.Value) {
	var many map[string]struct{}
	first := len(w.seen)
	w.pos++
	if w.space() == '}' {
		w.pos++
		return
	}
	for {
		if w.space() != '"' {
			w.malformed()
			return
		}
		key := w.key()
		st := step{key: key}
		if bytes.IndexByte(key, 0) >= 0 { // where strings end at it, it hides the rest of the key
			w.fail(CodeBadMessage, "a key holds U+0000")
			return
		}
		if w.err != nil || !w.enter(st) {
			return
		}
		if w.keys++; w.lim.Keys > 0 && w.keys > w.lim.Keys {
			w.fail(CodeBadMessage, "more than %d keys", w.lim.Keys)
			return
		}
		if !w.lean && w.repeated(first, key, &many) {
			w.fail(CodeBadMessage, "duplicate key %q", st.String())
			return
		}
		field, other := s.field(key)
		if other != "" {
			w.fail(CodeBadMessage, "key %q is not %q", st.String(), other)
			return
		}
		if w.space() != ':' {
			w.malformed()
			return
		}
		w.pos++
		if into.IsValid() {
			w.storeField(s, field, key, into)
		} else {
			w.value(field.shape, into)
		}
		if w.err != nil {
			return
		}
		w.path = w.path[:len(w.path)-1]
		if !w.more('}') {
			w.seen = w.seen[:first]
			return
		}
	}
}

// fewKeys is up to how many keys an object's keys are compared one by one; from there on they are hashed.
const fewKeys = 32

// repeated notes a key of the object whose keys begin at first, and reports whether it was there before. many holds the
// keys once they are many.
func (w *walker) repeated(first int, key []byte, many *map[string]struct{}) bool {
	few := w.seen[first:]
	if *many == nil {
		for _, other := range few {
			if bytes.Equal(other, key) {
				return true
			}
		}
		if len(few) < fewKeys {
			w.seen = append(w.seen, key)
			return false
		}
		*many = make(map[string]struct{}, 4*fewKeys)
		for _, other := range few {
			(*many)[string(other)] = struct{}{}
		}
	}
	if _, twice := (*many)[string(key)]; twice {
		return true
	}
	(*many)[string(key)] = struct{}{}
	return false
}

func (w *walker) array(s *shape, into reflect.Value) {
	w.pos++
	if w.space() == ']' {
		w.pos++
		return
	}
	for i := 0; ; i++ {
		if !w.enter(step{index: i}) {
			return
		}
		w.value(s.element(), grown(into, i))
		if w.err != nil {
			return
		}
		w.path = w.path[:len(w.path)-1]
		if !w.more(']') {
			return
		}
	}
}

// more passes what stands behind a value of an object or array and reports whether it is a comma.
func (w *walker) more(end byte) bool {
	c := w.space()
	if c != ',' && c != end {
		w.malformed()
		return false
	}
	w.pos++
	return c == ','
}

// maxExponent bounds exponents on both sides: no number that means something needs more, and a parser that expands 1e-999999
// needs a megabyte for it.
const maxExponent = 400

func (w *walker) number() {
	from, exp := w.pos, -1
	for ; w.pos < len(w.data); w.pos++ {
		c := w.data[w.pos]
		if c == 'e' || c == 'E' {
			exp = w.pos + 1
		} else if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' {
			break
		}
	}
	text := w.data[from:w.pos]
	switch {
	case !isNumber(text):
		w.malformed()
	case w.lim.Number > 0 && len(text) > w.lim.Number:
		w.fail(CodeBadMessage, "a number of %d characters is longer than %d", len(text), w.lim.Number)
	case exp >= 0 && !smallExponent(w.data[exp:w.pos]), (exp >= 0 || len(text) > 300) && !finite(text):
		w.fail(CodeBadMessage, "number out of range: %.*s", shown, string(text))
	}
}

// isNumber reports whether text is a number of JSON's grammar.
func isNumber(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("-"))
	n := digits(text)
	if n == 0 || n > 1 && text[0] == '0' {
		return false
	}
	if text = text[n:]; len(text) > 0 && text[0] == '.' {
		if n = digits(text[1:]); n == 0 {
			return false
		}
		text = text[1+n:]
	}
	if len(text) == 0 {
		return true
	}
	if text[0] != 'e' && text[0] != 'E' {
		return false
	}
	if text = text[1:]; len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	n = digits(text)
	return n > 0 && n == len(text)
}

// digits is how many digits text begins with.
func digits(text []byte) int {
	n := 0
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n
}

func smallExponent(digits []byte) bool {
	n := 0
	for _, c := range digits {
		if c >= '0' && c <= '9' {
			n = min(10*n+int(c-'0'), maxExponent+1)
		}
	}
	return n <= maxExponent
}

func finite(text []byte) bool {
	_, err := strconv.ParseFloat(string(text), 64)
	return err == nil
}

// str passes a string and returns it as written, with its quotes, and whether it has escapes; nil when it is refused.
func (w *walker) str() (raw []byte, escaped bool) {
	w.space()
	from := w.pos
	for w.pos++; ; w.pos++ {
		w.pos += plainLen(w.data[w.pos:])
		if w.pos >= len(w.data) || w.data[w.pos] == '"' {
			break
		}
		n := 0
		if w.data[w.pos] == '\\' {
			escaped = true
			n = escapeLen(w.data[w.pos:])
		}
		if n == 0 {
			w.malformed()
			return nil, false
		}
		w.pos += n - 1
	}
	if w.pos >= len(w.data) {
		w.malformed()
		return nil, false
	}
	w.pos++
	raw = w.data[from:w.pos]
	if w.lim.String > 0 && len(raw) > w.lim.String {
		w.fail(CodeTooLarge, "a string of %d bytes is longer than %d", len(raw), w.lim.String)
		return nil, false
	}
	if escaped && loneSurrogate(raw) {
		w.fail(CodeBadMessage, "a lone surrogate is no text")
		return nil, false
	}
	return raw, escaped
}

// escapeLen is the length of the escape that b begins with; 0 when it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// key passes a string and returns what it means: a part of the document, unless it has escapes.
func (w *walker) key() []byte {
	raw, escaped := w.str()
	switch {
	case raw == nil:
		return nil
	case escaped:
		return []byte(text(raw, escaped))
	}
	return raw[1 : len(raw)-1]
}

func loneSurrogate(raw []byte) bool {
	for i := 0; i+5 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if raw[i+1] != 'u' {
			i++
			continue
		}
		r, _ := strconv.ParseUint(string(raw[i+2:i+6]), 16, 32)
		i += 5
		switch {
		case r >= 0xDC00 && r <= 0xDFFF:
			return true
		case r >= 0xD800 && r <= 0xDBFF:
			if i+6 >= len(raw) || raw[i+1] != '\\' || raw[i+2] != 'u' {
				return true
			}
			low, _ := strconv.ParseUint(string(raw[i+3:i+7]), 16, 32)
			if low < 0xDC00 || low > 0xDFFF {
				return true
			}
			i += 6
		}
	}
	return false
}
