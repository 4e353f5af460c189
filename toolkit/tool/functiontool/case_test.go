package functiontool_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// The types of testdata/recursive/types.go.txt.
type (
	Node struct {
		Name string  `json:"name"`
		Kids []*Node `json:"kids,omitempty"`
	}
	Ping struct {
		Pong *Pong `json:"pong,omitempty"`
	}
	Pong struct {
		Ping *Ping `json:"ping,omitempty"`
	}
)

func TestRecursiveTypesBecomeReferences(t *testing.T) { // h13, H34, L6
	from := time.Now()
	node := mustNew(t, functiontool.Config{}, echo[Node])
	ping := mustNew(t, functiontool.Config{}, echo[Ping])
	type tree map[string]tree
	trees := mustNew(t, functiontool.Config{}, echo[tree])
	if d := time.Since(from); d > time.Second {
		t.Errorf("making the tools took %s", d)
	}
	for _, c := range []struct {
		tool tool.Tool
		args string
		want string // "" is args
	}{
		{node, `{"name":"r","kids":[{"name":"c","kids":[{"name":"g"}]}]}`, ""},
		{node, `{"name":"","kids":[{"name":5}]}`, `{"error":"/kids/0/name: must be string, got number"}`},
		{node, `{"name":"","kids":[{"name":"c","kids":[{"nam":"g"}]}]}`, `{"error":"/kids/0/kids/0/nam: unknown property; /kids/0/kids/0/name: required, but missing"}`},
		{ping, `{"pong":{"ping":{"pong":{}}}}`, ""},
		{ping, `{"pong":{"ping":{"pong":1}}}`, `{"error":"/pong/ping/pong: must be null or object, got number"}`},
		{trees, `{"a":{"b":{}}}`, ""},
		{trees, `{"a":{"b":1}}`, `{"error":"/a/b: must be object, got number"}`},
	} {
		want := c.want
		if want == "" {
			want = c.args
		}
		if got := run(t, c.tool, c.args); string(got.Value) != want {
			t.Errorf("%s: got %s, want %s", c.args, got.Value, want)
		}
	}
}

func TestTypesThatGrowWithoutEndAreRefused(t *testing.T) {
	type a struct{ A1, A2, A3, A4, A5, A6, A7, A8 int }
	type b struct{ B1, B2, B3, B4, B5, B6, B7, B8 a }
	type c struct{ C1, C2, C3, C4, C5, C6, C7, C8 b }
	type d struct{ D1, D2, D3, D4, D5, D6, D7, D8 c }
	if _, err := functiontool.New(functiontool.Config{Name: "wide"}, echo[d]); err == nil || !strings.Contains(err.Error(), "wide") || !strings.Contains(err.Error(), "/D") {
		t.Errorf("got %v", err)
	}
}

func TestIntegersOf64BitsAreExact(t *testing.T) { // h15, H43, L7
	type in struct {
		ID    int64    `json:"id"`
		Many  []uint64 `json:"many"`
		Price float64  `json:"price"`
	}
	ran := false
	ft := mustNew(t, functiontool.Config{}, func(_ tool.Context, v in) (in, error) {
		ran = true
		if v.ID != 9007199254740993 || v.Many[0] != 18446744073709551615 || v.Price != 100 {
			t.Errorf("the tool got %+v", v)
		}
		return v, nil
	})
	if got, want := run(t, ft, string(read(t, "int64", "args.json"))), `{"id":9007199254740993,"many":[18446744073709551615,0],"price":100}`; string(got.Value) != want {
		t.Errorf("got %s, want %s", got.Value, want)
	}
	ran = false
	var bad []json.RawMessage
	if err := json.Unmarshal(read(t, "int64", "args-bad.json"), &bad); err != nil {
		t.Fatal(err)
	}
	for _, args := range bad {
		whole := strings.Replace(string(args), "}", `,"many":[],"price":1}`, 1)
		if got := run(t, ft, whole); got.Outcome != protocol.OutcomeFailed || !strings.Contains(string(got.Value), "/id") || ran {
			t.Errorf("%s: got %s %s, ran %t", whole, got.Outcome, got.Value, ran)
		}
	}
}

func TestAnIntegerMayBeWrittenAsAFraction(t *testing.T) {
	type in struct {
		ID   int64  `json:"id"`
		Text string `json:"text"`
	}
	ft := mustNew(t, functiontool.Config{}, echo[in])
	if got, want := run(t, ft, `{"id":5.0,"text":"1.0 \"2.0"}`), `{"id":5,"text":"1.0 \"2.0"}`; string(got.Value) != want {
		t.Errorf("got %s, want %s", got.Value, want)
	}
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestASchemaFromOutsideMayHoldItself(t *testing.T) { // h13, H35
	raw, err := os.ReadFile(filepath.Join("testdata", "recursive", "schema-mcp.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	ft := mustNew(t, functiontool.Config{InputSchema: &schema}, echo[map[string]any])
	for args, want := range map[string]string{
		`{"people":[{"mail":"a","deputy":{"deputy":{}}}],"mirror":[]}`: ``,
		`{"people":[{"deputy":{"deputy":{"mail":5}}}]}`:                `{"error":"/people/0/deputy/deputy/mail: must be string, got number"}`,
		`{"mirror":[{"deputy":1}]}`:                                    `{"error":"/mirror/0/deputy: must be object, got number"}`,
	} {
		if want == "" {
			want = args
		}
		var got, wanted any
		if json.Unmarshal(run(t, ft, args).Value, &got) != nil || json.Unmarshal([]byte(want), &wanted) != nil || !reflect.DeepEqual(got, wanted) {
			t.Errorf("%s: got %v, want %s", args, got, want)
		}
	}
}

func TestDeclarationsOfRecursiveTypesAreStable(t *testing.T) {
	digest := func() string {
		it, err := invoke.New(mustNew(t, functiontool.Config{}, echo[Node]))
		if err != nil {
			t.Fatal(err)
		}
		return it.Digest()
	}
	if a, b := digest(), digest(); a != b {
		t.Errorf("%s and %s", a, b)
	}
}
