package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

func TestCheckRefusesAbsurdNumbers(t *testing.T) {
	for doc, ok := range map[string]bool{
		`1e308`: true, `1e-400`: true, `0e400`: true, `-1.5E+10`: true, `1e0000000000000000000000000000001`: true,
		`1e-401`: false, `1e-999999`: false, `0e999999`: false, `1e309`: false, `1e99999999999999999999999`: false,
		`{"n":[1E-999999]}`: false,
	} {
		if err := Check([]byte(doc), ArgsLimits); (err == nil) != ok || err != nil && CodeOf(err) != CodeBadMessage {
			t.Errorf("%s: %v", doc, err)
		}
	}
	long := strings.Repeat("9", 400)
	if Check([]byte(long), Limits{}) == nil {
		t.Error("a number too large for a float64 is taken when there is no limit to its length")
	}
}

func TestRefusedKeyEndsTheCheck(t *testing.T) {
	for _, doc := range []string{`{"\ud800":1}`, `{"a":{"` + strings.Repeat("k", 300<<10) + `":1}}`} {
		data := bytes.Clone([]byte(doc))
		if err := Check(data[:len(data):len(data)], Limits{String: 256 << 10}); err == nil {
			t.Errorf("%.40s is taken", doc)
		}
	}
}

func TestErrorsRepeatLittleOfWhatTheyRefuse(t *testing.T) {
	long := strings.Repeat("k", 100_000)
	for _, doc := range []string{
		`{"v":1,"` + long + `":1,"` + long + `":2}`,
		`{"v":1,"` + long + `":1e-999999}`,
		`{"v":1,"id":"` + long + `","kind":"delete"}`,
		`{"v":1,"id":"a","kind":"` + long + `"}`,
		`{"v":1,"id":"a","kind":"call","call":{"tool":"` + long + `","args":{}}}`,
	} {
		if _, err := DecodeInput([]byte(doc)); err == nil || len(err.Error()) > 1000 {
			t.Errorf("%.60s: an error of %d bytes", doc, len(err.Error()))
		}
	}
	for _, doc := range []string{`{"v":1,"outcome":"` + long + `","value":{}}`} {
		if _, err := DecodeResult([]byte(doc)); err == nil || len(err.Error()) > 1000 {
			t.Errorf("%.60s: an error of %d bytes", doc, len(err.Error()))
		}
	}
	if err := (&Declaration{Name: "x", Parameters: json.RawMessage(`{}`), Effect: Effect(long)}).Check(); err == nil || len(err.Error()) > 1000 {
		t.Errorf("an effect: an error of %d bytes", len(err.Error()))
	}
}

func TestManyKeysAreStillComparedExactly(t *testing.T) {
	for _, n := range []int{1, fewKeys - 1, fewKeys, fewKeys + 1, 4 * fewKeys} {
		var keys []string
		for i := range n {
			keys = append(keys, fmt.Sprintf(`"k%d":{"a":0,"b":0}`, i))
		}
		good := `{` + strings.Join(keys, ",") + `,"x":{"k0":0}}`
		if err := Check([]byte(good), MessageLimits); err != nil {
			t.Errorf("%d keys: %v", n, err)
		}
		for _, twice := range []string{`"k0"`, fmt.Sprintf(`"k%d"`, n-1), `"\u006b0"`} {
			bad := `{` + strings.Join(keys, ",") + `,` + twice + `:0}`
			if err := Check([]byte(bad), MessageLimits); CodeOf(err) != CodeBadMessage {
				t.Errorf("%d keys and %s again: %v", n, twice, err)
			}
		}
	}
}

func TestCheckOfArgumentsAllocatesNothingOfItsOwn(t *testing.T) {
	doc := []byte(`{"text":"hello","times":3,"nested":{"a":[1,2,3],"b":{"c":"d"}},"f":1.5e3}`)
	if n := testing.AllocsPerRun(100, func() { _ = Check(doc, ArgsLimits) }); n > 2 { // under the race detector a pool forgets
		t.Errorf("%v allocations", n)
	}
}

// FuzzCheck holds Check against two readers: what it takes, the standard library and a reader written from RFC 8259 alone
// read to the same value.
func FuzzCheck(f *testing.F) {
	for _, doc := range []string{
		`{"a":[1,-0.5e+3,{"b":null}],"c":"\u00e9\ud83d\ude00\n\"","d":true}`, `[]`, `""`, ` {"":{}} `, `{"a":1,"\u0061":2}`,
		`1e-999999`, `"\ud800"`, `[[[[]]]]`, `{"k":"` + "\xc3\xa9" + `"}`, `tru`, `[1,]`,
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := Check(data, ArgsLimits)
		if err != nil {
			if code := CodeOf(err); code != CodeBadMessage && code != CodeTooLarge {
				t.Fatalf("refused with code %s: %v", code, err)
			}
			if !utf8.ValidString(err.Error()) {
				t.Fatalf("an error that is no text: %q", err.Error())
			}
			return
		}
		std := json.NewDecoder(bytes.NewReader(data))
		std.UseNumber()
		var want any
		if err := std.Decode(&want); err != nil {
			t.Fatalf("taken, but the standard library refuses it: %v", err)
		}
		if _, err := std.Token(); err != io.EOF {
			t.Fatalf("taken, but something follows: %v", err)
		}
		r := reader{text: string(data)}
		got, ok := r.document()
		if !ok || !reflect.DeepEqual(got, want) {
			t.Fatalf("two readings of %q: %#v and %#v", data, got, want)
		}
	})
}

// reader reads JSON strictly: no key twice, no lone surrogate.
type reader struct{ text string }

func (r *reader) document() (any, bool) {
	v, ok := r.value()
	r.blank()
	return v, ok && r.text == ""
}

func (r *reader) blank() { r.text = strings.TrimLeft(r.text, " \t\r\n") }

func (r *reader) eat(token string) bool {
	r.blank()
	rest, ok := strings.CutPrefix(r.text, token)
	if ok {
		r.text = rest
	}
	return ok
}

func (r *reader) value() (any, bool) {
	switch {
	case r.eat("null"):
		return nil, true
	case r.eat("true"):
		return true, true
	case r.eat("false"):
		return false, true
	case r.eat("{"):
		object := map[string]any{}
		for first := true; !r.eat("}"); first = false {
			if !first && !r.eat(",") || !r.eat(`"`) {
				return nil, false
			}
			key, ok := r.rest()
			if _, twice := object[key]; !ok || twice || !r.eat(":") {
				return nil, false
			}
			if object[key], ok = r.value(); !ok {
				return nil, false
			}
		}
		return object, true
	case r.eat("["):
		array := []any{}
		for first := true; !r.eat("]"); first = false {
			if !first && !r.eat(",") {
				return nil, false
			}
			v, ok := r.value()
			if !ok {
				return nil, false
			}
			array = append(array, v)
		}
		return array, true
	case r.eat(`"`):
		return r.rest()
	}
	n := len(r.text) - len(strings.TrimLeft(r.text, "+-.0123456789eE"))
	number := r.text[:n]
	r.text = r.text[n:]
	_, err := strconv.ParseFloat(number, 64)
	return json.Number(number), err == nil
}

// rest is a string from behind its opening quote on.
func (r *reader) rest() (string, bool) {
	var b strings.Builder
	for {
		c, size := utf8.DecodeRuneInString(r.text)
		if size == 0 || c < ' ' || c == utf8.RuneError && size == 1 {
			return "", false
		}
		r.text = r.text[size:]
		switch c {
		case '"':
			return b.String(), true
		case '\\':
			if r.text == "" {
				return "", false
			}
			e := r.text[0]
			r.text = r.text[1:]
			if i := strings.IndexByte(`"\/bfnrt`, e); i >= 0 {
				b.WriteByte("\"\\/\b\f\n\r\t"[i])
				continue
			}
			unit, ok := r.unit()
			if e != 'u' || !ok {
				return "", false
			}
			if utf16.IsSurrogate(unit) {
				rest, ok := strings.CutPrefix(r.text, `\u`)
				r.text = rest
				low, lowOK := r.unit()
				if unit = utf16.DecodeRune(unit, low); !ok || !lowOK || unit == utf8.RuneError {
					return "", false
				}
			}
			b.WriteRune(unit)
		default:
			b.WriteRune(c)
		}
	}
}

func (r *reader) unit() (rune, bool) {
	if len(r.text) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(r.text[:4], 16, 16)
	r.text = r.text[4:]
	return rune(n), err == nil
}
