package invoke_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// answering makes a tool that answers raw JSON, or what Encode makes of v.
func answering(t testing.TB, f func() (json.RawMessage, error)) *invoke.Tool {
	return mustNew(t, &stubJSON{stub: stub{name: "x"}, json: func(tool.Context, json.RawMessage) (json.RawMessage, error) { return f() }})
}

func TestEveryShapeOfResultReachesTheModel(t *testing.T) { // h12, H29, H30, H31, H32, H44, L3, L4, L5, L10, L11
	b, err := os.ReadFile("testdata/results.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Kind  string          `json:"kind"`
		JSON  json.RawMessage `json:"json"`
		Raw   string          `json:"raw"`
		Hex   string          `json:"hex"`
		Error string          `json:"error"`
		Go    string          `json:"go"`
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"array": `{"result":[1,2]}`, "bool": `{"result":true}`, "null": `{"result":null}`, "empty object": `{"result":{}}`,
		"string":                    `{"result":""}`,
		"own keys output and error": `{"result":{"output":1,"error":"none","rest":2}}`,
		"lone surrogate":            `{"result":"a` + "\uFFFD" + ` b"}`,
		"bytes":                     `{"result":"data:application/octet-stream;base64,aP/+AA=="}`,
		"go error":                  `{"error":"disk full"}`,
		"go NaN":                    `{"error":"the answer cannot be written as JSON: /x: NaN is no JSON value"}`,
		"go structs":                `{"result":[{"id":1}]}`,
		"go time":                   `{"result":"1970-01-01T00:00:00Z"}`,
		"go nil slice":              `{"items":[]}`,
	}
	goValues := map[string]any{
		"go NaN": map[string]any{"x": math.NaN()},
		"go structs": []struct {
			ID int `json:"id"`
		}{{1}},
		"go time": time.Unix(0, 0).UTC(),
		"go nil slice": struct {
			Items []string `json:"items"`
		}{},
	}
	for _, c := range cases {
		t.Run(c.Kind, func(t *testing.T) {
			it := answering(t, func() (json.RawMessage, error) {
				switch {
				case c.Error != "":
					return nil, errors.New(c.Error)
				case c.Raw != "":
					return json.RawMessage(c.Raw), nil
				case c.Hex != "":
					b, _ := hex.DecodeString(c.Hex)
					return invoke.Encode(b)
				case c.Go != "":
					return invoke.Encode(goValues[c.Kind])
				}
				return c.JSON, nil
			})
			r, err := it.Run(t.Context(), call(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			if !same(t, r.Value, want[c.Kind]) {
				t.Errorf("got %s, want %s", r.Value, want[c.Kind])
			}
			failed := c.Error != "" || c.Kind == "go NaN"
			if (r.Outcome == protocol.OutcomeFailed) != failed {
				t.Errorf("the outcome is %s", r.Outcome)
			}
			onTheWire(t, r)
		})
	}
}

// onTheWire fails unless the coordinator would take the result.
func onTheWire(t *testing.T, r protocol.Result) {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := protocol.DecodeResult(b); err != nil {
		t.Errorf("a coordinator would refuse it: %v", err)
	}
}

func same(t *testing.T, a json.RawMessage, b string) bool {
	t.Helper()
	var va, vb any
	if err := json.Unmarshal(a, &va); err != nil {
		t.Fatalf("%s: %v", a, err)
	}
	if err := json.Unmarshal([]byte(b), &vb); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	ja, _ := json.Marshal(va)
	jb, _ := json.Marshal(vb)
	return string(ja) == string(jb)
}

func TestRawAnswers(t *testing.T) {
	deep := strings.Repeat("[", 63) + strings.Repeat("]", 63)
	for _, c := range []struct{ raw, want string }{
		{``, `{"result":null}`},
		{` {"a" : 1} `, `{"a" : 1}`},
		{`{"error":"none"}`, `{"error":"none"}`}, // nothing beside it that could be dropped
		{`{"output":1}`, `{"output":1}`},
		{`{"\u006futput":1,"a":2}`, `{"result":{"\u006futput":1,"a":2}}`},
		{`{"a":{"output":1,"error":2}}`, `{"a":{"output":1,"error":2}}`}, // reserved at the top only
		{`{"a":["output","error"],"b":2}`, `{"a":["output","error"],"b":2}`},
		{`{"n":123456789012345678901234567890}`, `{"n":123456789012345678901234567890}`},
		{`"a<b"`, `{"result":"a\u003cb"}`},
		{"\"a\xffb\"", "{\"result\":\"a\uFFFDb\"}"},
		{`"\ud83d\ude00 \ude00 \\ud83d"`, `{"result":"\ud83d\ude00 \ufffd \\ud83d"}`},
		{`{"a":1,"a":2}`, `{"error":"the answer cannot be sent: duplicate key \"a\" at /a"}`},
		{`{"a":`, `{"error":"the answer cannot be sent: invalid JSON at byte 5: unexpected end of JSON input"}`},
		{`NaN`, `{"error":"the answer cannot be sent: invalid JSON at byte 1: invalid character 'N' looking for beginning of value"}`},
	} {
		it := answering(t, func() (json.RawMessage, error) { return json.RawMessage(c.raw), nil })
		r, err := it.Run(t.Context(), call(`{}`))
		if err != nil || string(r.Value) != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.raw, r.Value, err, c.want)
		}
		onTheWire(t, r)
	}
	r, _ := answering(t, func() (json.RawMessage, error) { return json.RawMessage(deep), nil }).Run(t.Context(), call(`{}`))
	if r.Outcome != protocol.OutcomeFailed || !strings.Contains(string(r.Value), "nested deeper") {
		t.Errorf("got %s", r.Value)
	}
	onTheWire(t, r)
}

func TestAnAnswerThatIsTooLargeFailsWithBothSizes(t *testing.T) { // H33, H87
	for size, code := range map[int]protocol.Code{protocol.MaxInlineResult - 13: "", protocol.MaxInlineResult - 12: protocol.CodeTooLarge} {
		it := answering(t, func() (json.RawMessage, error) { return json.RawMessage(`"` + strings.Repeat("x", size) + `"`), nil })
		r, err := it.Run(t.Context(), call(`{}`))
		if err != nil || r.Code != code {
			t.Errorf("%d: got code %q, %v", size, r.Code, err)
		}
		if code != "" && (!strings.Contains(string(r.Value), "786433") || !strings.Contains(string(r.Value), "786432")) {
			t.Errorf("got %s", r.Value)
		}
	}
	// Characters that encoding/json escapes are counted as they will be written.
	it := answering(t, func() (json.RawMessage, error) { return json.RawMessage(`"` + strings.Repeat("<", 200<<10) + `"`), nil })
	if r, _ := it.Run(t.Context(), call(`{}`)); r.Code != protocol.CodeTooLarge {
		t.Errorf("got %q", r.Code)
	}
}

type loop struct {
	Next *loop `json:"next"`
}

type badMarshaler struct{}

func (badMarshaler) MarshalJSON() ([]byte, error) { return nil, errors.New("not today") }

func TestEncodeNamesWhatCannotBeWritten(t *testing.T) {
	ring := &loop{}
	ring.Next = ring
	for _, c := range []struct {
		v    any
		want string
	}{
		{map[string]any{"a": []any{1, map[string]float64{"b/c": math.Inf(-1)}}}, "/a/1/b~1c: -Inf is no JSON value"},
		{struct {
			C chan int `json:"c"`
		}{make(chan int)}, "/c: a chan int is no JSON value"},
		{map[string]any{"m": badMarshaler{}}, "/m: json: error calling MarshalJSON for type invoke_test.badMarshaler: not today"},
		{ring, "it holds itself, or is nested deeper than 64"},
	} {
		if _, err := invoke.Encode(c.v); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func TestEncodeLeavesTheToolsOwnValueAlone(t *testing.T) {
	type inner struct{ List []int }
	shared := &inner{}
	m := map[string]any{"e": errors.New("x"), "p": shared, "list": []any{[]int(nil)}}
	b, err := invoke.Encode(m)
	if err != nil || string(b) != `{"e":"x","list":[[]],"p":{"List":[]}}` {
		t.Errorf("got %s, %v", b, err)
	}
	if _, ok := m["e"].(error); !ok || shared.List != nil || m["list"].([]any)[0].([]int) != nil {
		t.Errorf("the value was changed: %v", m)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `"\ud83d"`, `{"output":1,"b":2}`, "\xff", `[[]]`, `1e400`, `"\\\ud800\u"`} {
		f.Add([]byte(s))
	}
	it := make(chan json.RawMessage, 1)
	x := answering(f, func() (json.RawMessage, error) { return <-it, nil })
	f.Fuzz(func(t *testing.T, raw []byte) {
		it <- raw
		r, err := x.Run(t.Context(), call(`{}`))
		if err != nil || r.Code == protocol.CodeToolPanic {
			t.Fatalf("%v, %s", err, r.Value)
		}
		onTheWire(t, r)
	})
}
