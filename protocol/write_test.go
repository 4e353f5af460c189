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

func TestEncodeWritesWhatEncodingJSONDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 4000 {
		for _, v := range []any{new(Event), new(Envelope), new(Answer), new(Input), new(parts), new(loose)} {
			fill(r, reflect.ValueOf(v).Elem(), 4)
			got, err := Encode(v)
			want, wantErr := encodeJSON(v)
			if (err == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
				t.Fatalf("round %d, %T: %v\n%s\nencoding/json: %v\n%s", i, v, err, got, wantErr, want)
			}
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
	if _, ok := writerOf(reflect.TypeFor[loose]())(nil, reflect.ValueOf(loose{})); ok {
		t.Error("a float was written by hand")
	}
}
