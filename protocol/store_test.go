package protocol

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parts has all that the walker stores by itself.
type parts struct {
	Raw    json.RawMessage            `json:"raw"`
	RawPtr *json.RawMessage           `json:"raw_ptr"`
	Text   Effect                     `json:"text"`
	Int    int                        `json:"int"`
	Small  int8                       `json:"small"`
	Uint   uint64                     `json:"uint"`
	Bool   bool                       `json:"bool"`
	Float  float64                    `json:"float"`
	Short  float32                    `json:"short"`
	Ptr    *parts                     `json:"ptr"`
	PtrPtr **int                      `json:"ptr_ptr"`
	List   []Usage                    `json:"list"`
	Texts  []string                   `json:"texts"`
	Map    map[string]json.RawMessage `json:"map"`
	Deep   map[Effect][]*Usage        `json:"deep"`
	hidden int
	Usage
}

// loose has what only encoding/json stores.
type loose struct {
	Any   any    `json:"any"`
	Bytes []byte `json:"bytes"`
}

var documents = []string{
	`{}`, `null`, `[]`, `"x"`, `1`, `{"raw":null,"raw_ptr":null,"text":null,"int":null,"bool":null,"ptr":null,"list":null,"map":null}`,
	`{"raw": {"a" : [1, 2]} ,"raw_ptr":[ ],"text":"a\u00e9\n","int":-12,"small":127,"uint":18446744073709551615,"bool":true}`,
	`{"small":128}`, `{"uint":-1}`, `{"uint":18446744073709551616}`, `{"int":1.0}`, `{"int":1e2}`, `{"int":"1"}`, `{"text":1}`, `{"bool":0}`,
	`{"ptr":{"ptr":{"int":3},"list":[{"prompt":1},null,{"total":2}]},"ptr_ptr":7}`, `{"list":[1]}`, `{"list":{}}`, `{"ptr":[]}`,
	`{"texts":[],"list":[],"map":{}}`, `{"texts":["a","\"",null],"map":{"k\t":1,"":null},"deep":{"read":[{"cached":1},null],"x":null}}`,
	`{"prompt":5,"total":6,"unknown":{"deep":[1,{"a":"b"}]},"hidden":3}`, `{"any":{"a":1},"float":1.5,"bytes":"AQ=="}`,
	`{"v":1,"call":"c","round":0,"seq":3,"outcome":"completed","value":{"r":1},"actions":{"state_delta":{"k":null},"escalate":true},"attempt":1}`,
	`{"float":1.5,"short":-0}`, `{"float":9007199254740993,"short":16777217}`, `{"float":5e-324,"short":3.4028236e38}`, `{"float":1e308,"short":1e39}`, `{"float":"1"}`, `{"float":null,"short":null}`,
	`{"texts":["1","2","3","4","5","6","7","8","9"],"list":[{"prompt":1},{"prompt":2},{"prompt":3},{"prompt":4},{"prompt":5}]}`,
}

// sameAsJSON decodes doc into a T both ways.
func sameAsJSON[T any](t *testing.T, doc []byte) {
	t.Helper()
	var got, want T
	err := Decode(doc, &got, MessageLimits)
	if err != nil && Check(doc, MessageLimits) != nil {
		return // refused before it is read
	}
	wantErr := json.Unmarshal(doc, &want)
	if _, other := shapeOf(reflect.TypeFor[T]()).field([]byte("x")); other == "" && (err == nil) != (wantErr == nil) {
		if !json.Valid(doc) || err == nil {
			t.Fatalf("%T from %s: %v, encoding/json says %v", got, doc, err, wantErr)
		}
		return // a key that differs by case only
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(parts{})); err == nil && d != "" {
		t.Fatalf("%T from %s (-want +got):\n%s", got, doc, d)
	}
}

func TestDecodeStoresWhatEncodingJSONDoes(t *testing.T) {
	for _, doc := range documents {
		sameAsJSON[parts](t, []byte(doc))
		sameAsJSON[loose](t, []byte(doc))
		sameAsJSON[Answer](t, []byte(doc))
		sameAsJSON[Event](t, []byte(doc))
	}
}

func TestWireTypesAreStoredInOnePass(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[Envelope](), reflect.TypeFor[Result](), reflect.TypeFor[Input](), reflect.TypeFor[Guard](), reflect.TypeFor[Registration](), reflect.TypeFor[Event]()} {
		if !shapeOf(typ).direct() {
			t.Errorf("%s is left to encoding/json", typ)
		}
	}
	if shapeOf(reflect.TypeFor[loose]()).direct() {
		t.Error("the walker takes types that it cannot store")
	}
}

func FuzzDecodeStoresWhatEncodingJSONDoes(f *testing.F) {
	for _, doc := range documents {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		sameAsJSON[parts](t, doc)
		sameAsJSON[Answer](t, doc)
	})
}
