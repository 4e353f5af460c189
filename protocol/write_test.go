package protocol

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

var (
	someTexts = []string{"", "a", "é", "\"\\\n\t", "<&>", "\u2028\u2029", "\xff", "\x00\x1f\x7f", "long enough for two"}
	someRaws  = []string{"null", "{}", `{ "a" : [ 1 , "x y" ] }`, `"<>&"`, "1e400", `"\ud800"`, `{"a":1,"a":2}`, "[1,2]", `{"a":{"b":[{},[]]}}`, ` 1 `, "\"\u2028\""}
)

// fill puts anything into v, nil and empty values included.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	if v.Type() == rawType {
		if r.IntN(6) > 0 {
			v.SetBytes([]byte(someRaws[r.IntN(len(someRaws))]))
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(someTexts[r.IntN(len(someTexts))])
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt([]int64{0, 1, -1, math.MaxInt8, math.MinInt64}[r.IntN(5)])
	case reflect.Uint, reflect.Uint64:
		v.SetUint([]uint64{0, 1, math.MaxUint64}[r.IntN(3)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Float64:
		v.SetFloat(someFloats[r.IntN(len(someFloats))])
	case reflect.Interface:
		if any := someValue(r, depth); any != nil {
			v.Set(reflect.ValueOf(any))
		}
	case reflect.Pointer:
		if depth > 0 && r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth-1)
		}
	case reflect.Slice:
		if n := r.IntN(4); n > 0 && depth > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n-1, n-1))
			for i := range n - 1 {
				fill(r, v.Index(i), depth-1)
			}
		}
	case reflect.Map:
		if n := r.IntN(5); n > 0 && depth > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n - 1 {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				fill(r, key, depth-1)
				fill(r, value, depth-1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(r, v.Field(i), depth)
			}
		}
	}
}

var someFloats = []float64{0, math.Copysign(0, -1), 1, -1.5, 1e-6, 9.99e-7, 1e-9, -1e-10, 1e20, 1e21, 1.7e308, 5e-324, 1 << 53, math.NaN(), math.Inf(1)}

// someValue is any value that a document may be read into, and some others.
func someValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(12); {
	case n == 0:
		return nil
	case n == 1:
		return r.IntN(2) == 0
	case n == 2:
		return someFloats[r.IntN(len(someFloats))]
	case n == 3:
		return json.Number([]string{"0", "-1.50", "1e400", "12345678901234567890", "", "x", "1 "}[r.IntN(7)])
	case n == 4:
		return []any{-7, int64(7), float32(0.1), []string{"a"}, map[string]int{"b": 1}, struct{ A int }{1}, json.RawMessage(`{"c": 1}`), make(chan int), map[string]any(nil), []any(nil)}[r.IntN(10)]
	case n < 7 && depth > 0:
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = someValue(r, depth-1)
		}
		return list
	case n < 10 && depth > 0:
		object := map[string]any{}
		for range r.IntN(12) {
			object[someTexts[r.IntN(len(someTexts))]] = someValue(r, depth-1)
		}
		return object
	}
	return someTexts[r.IntN(len(someTexts))]
}

func TestEncodeWritesWhatEncodingJSONDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 4000 {
		for _, v := range []any{new(Event), new(Envelope), new(Answer), new(Input), new(parts), new(loose), new(map[string]any)} {
			fill(r, reflect.ValueOf(v).Elem(), 4)
			got, err := Encode(v)
			want, wantErr := encodeJSON(v)
			if (err == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
				t.Fatalf("round %d, %T: %v\n%s\nencoding/json: %v\n%s", i, v, err, got, wantErr, want)
			}
		}
	}
}

func TestEncodeRefusesWhatHoldsItself(t *testing.T) {
	object := map[string]any{}
	object["self"] = object
	list := []any{nil}
	list[0] = list
	for _, v := range []any{object, map[string]any{"list": list}} {
		if data, err := Encode(v); err == nil {
			t.Errorf("it was written: %.100s", data)
		}
	}
}

func TestEncodeRefusesRawPartsThatAreNoJSON(t *testing.T) {
	for _, raw := range []string{"", "{", "1 2", "nul", `{"a"}`, `"`, "[1,]"} {
		data, err := Encode(Envelope{Args: json.RawMessage(raw)})
		if err == nil {
			t.Errorf("%q was written: %s", raw, data)
		}
	}
}

func TestWireTypesAreWrittenWithoutEncodingJSON(t *testing.T) {
	for _, v := range []any{Event{Turn: &Turn{Calls: []Call{{}}}}, Envelope{}, Answer{}, Claim{}, Guard{}} {
		if _, ok := writerOf(reflect.TypeOf(v))(nil, reflect.ValueOf(v)); !ok {
			t.Errorf("%T is left to encoding/json", v)
		}
	}
	content := struct {
		Args  map[string]any `json:"args"`
		Bytes []byte         `json:"bytes"`
	}{map[string]any{"a": []any{1.5, json.Number("7"), "é\n", nil, true}}, []byte{1}}
	if _, ok := writerOf(reflect.TypeOf(content))(nil, reflect.ValueOf(content)); !ok {
		t.Error("what models say is left to encoding/json")
	}
}

func TestEveryByteIsWrittenAsEncodingJSONDoes(t *testing.T) {
	for c := range 256 {
		for _, next := range []string{"", "a", "\x80", "\xa9"} {
			s := "a" + string([]byte{byte(c)}) + next
			if want, _ := encodeJSON(s); string(appendText(nil, s)) != string(want) {
				t.Errorf("%q is written as %s, want %s", s, appendText(nil, s), want)
			}
		}
	}
}
