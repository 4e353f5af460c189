package turn

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
)

// checkRecorded compares with the way through the bytes.
func checkRecorded(t *testing.T, c *genai.Content) (known bool) {
	t.Helper()
	raw, err := encode(c)
	if err != nil {
		return false
	}
	want, err := decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	got := recorded(c)
	if got != nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%s: read %#v, want %#v", raw, got.Parts[0], want.Parts[0])
	}
	return got != nil
}

func TestRecordedIsWhatTheLogSays(t *testing.T) {
	call := func(args map[string]any) *genai.Part {
		return &genai.Part{FunctionCall: &genai.FunctionCall{ID: "i", Name: "n", Args: args}, ThoughtSignature: []byte{0, 1}}
	}
	for _, c := range []struct {
		part  *genai.Part
		known bool
	}{
		{&genai.Part{Text: "a <b> \u2028 \x00"}, true},
		{&genai.Part{Text: "t", Thought: true, ThoughtSignature: []byte{}}, true},
		{&genai.Part{Text: "\xff"}, false},
		{call(nil), true},
		{call(map[string]any{}), true},
		{call(map[string]any{"a": "x", "b": nil, "c": true, "d": json.Number("1e21"), "e": []any{}, "f": map[string]any{}}), true},
		{call(map[string]any{"a": []any{map[string]any{"b": []any{"x", json.Number("0.10")}}}}), true},
		{call(map[string]any{"a": map[string]any(nil), "b": []any(nil)}), true},
		{call(map[string]any{"a": json.Number("")}), false},
		{call(map[string]any{"a": 1.0}), false},
		{call(map[string]any{"a": []string{"x"}}), false},
		{call(map[string]any{"a": []any{time.Second}}), false},
		{call(map[string]any{"\xff": 1}), false},
		{call(map[string]any{"a": "\xff"}), false},
		{call(map[string]any{"a": math.Inf(1)}), false},
	} {
		if got := checkRecorded(t, &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{c.part}}); got != c.known {
			t.Errorf("%+v: known %t, want %t", c.part, got, c.known)
		}
	}
}

// A field that a later version of the library adds is not lost: filled one by one, it is read right or left to the bytes.
func TestRecordedKnowsEveryFieldOfAPart(t *testing.T) {
	for _, of := range []reflect.Type{reflect.TypeFor[genai.Part](), reflect.TypeFor[genai.FunctionCall]()} {
		for i := range of.NumField() {
			v := reflect.New(of)
			fill(v.Elem().Field(i))
			p, ok := v.Interface().(*genai.Part)
			if !ok {
				p = &genai.Part{FunctionCall: v.Interface().(*genai.FunctionCall)}
			}
			checkRecorded(t, &genai.Content{Parts: []*genai.Part{p}})
		}
	}
}

func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("k"), reflect.ValueOf("v"))
	}
}

func TestRecordedSharesNothing(t *testing.T) {
	inner := map[string]any{"b": "x"}
	c := &genai.Content{Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{Name: "n", Args: map[string]any{"a": inner}}}}}
	got := recorded(c)
	inner["b"] = "y"
	if got.Parts[0].FunctionCall.Args["a"].(map[string]any)["b"] != "x" {
		t.Error("it changed with the model's own content")
	}
}

func TestHistoryExpectsWhatItWouldRead(t *testing.T) {
	a := newAgent(t, nil)
	d, err := Decide(a, []Offer{offer("a", nil)}, desk(), callID, finalResponse(&genai.Part{FunctionCall: &genai.FunctionCall{Name: "a", Args: map[string]any{"n": "<x>"}}}))
	if err != nil || d.read == nil {
		t.Fatal(d.read, err)
	}
	d.RequestSeq = 1
	ev := protocol.Event{V: protocol.Version, Turn: &d.Turn}
	answers := []protocol.Answer{answer("call0", `{"ok":true}`)}
	reading, expecting := logOf(said("go"), ev), logOf(said("go"))
	expecting.Expect(d)
	expecting.Add(2, ev)
	want, err := reading.Contents(answers, false)
	if err != nil {
		t.Fatal(err)
	}
	got, err := expecting.Contents(answers, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-read +expected):\n%s", diff)
	}
	if got[1] != d.read {
		t.Error("it was read from the bytes all the same")
	}
}
