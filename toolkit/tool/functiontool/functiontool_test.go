package functiontool_test

import (
	"encoding/json"
	"errors"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.uber.org/goleak"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func mustNew[In, Out any](t testing.TB, cfg functiontool.Config, f functiontool.Func[In, Out]) tool.RunnerJSON {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = "f"
	}
	ft, err := functiontool.New(cfg, f)
	if err != nil {
		t.Fatal(err)
	}
	return ft.(tool.RunnerJSON)
}

// run executes one call and returns the value that the model reads.
func run(t testing.TB, ft tool.Tool, args string) protocol.Result {
	t.Helper()
	it, err := invoke.New(ft)
	if err != nil {
		t.Fatal(err)
	}
	r, err := it.Run(t.Context(), invoke.Call{Envelope: protocol.Envelope{Call: "c1", Args: json.RawMessage(args)}, Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func echo[T any](_ tool.Context, in T) (T, error) { return in, nil }

func TestArguments(t *testing.T) { // H41, H42, L8
	type in struct {
		A int      `json:"a" jsonschema:"a count"`
		B string   `json:"b,omitempty" jsonschema:"description=some text"`
		C []string `json:"c,omitempty"`
		D *int     `json:"d,omitempty"`
	}
	ft := mustNew(t, functiontool.Config{}, echo[in])
	for _, c := range []struct{ args, want string }{
		{`{"a":1}`, `{"a":1}`},
		{`{"a":2.0}`, `{"a":2}`},
		{`{"a":1e2}`, `{"a":100}`},
		{`{"a":1,"b":null}`, `{"a":1}`}, // a null for an optional property is left out
		{`{"a":1,"c":null,"d":null}`, `{"a":1}`},
		{`{}`, `{"error":"/a: required, but missing"}`},
		{``, `{"error":"/a: required, but missing"}`},
		{`{"a":null}`, `{"error":"/a: must be integer, got null"}`},
		{`{"a":1,"zz":1}`, `{"error":"/zz: unknown property"}`},
		{`{"A":1,"a":2}`, `{"error":"/A: unknown property, did you mean \"a\"?"}`},
		{`{"a":1,"a":2}`, `{"error":"duplicate key \"a\" at /a"}`},
		{`{"a":"1"}`, `{"error":"/a: must be integer, got string"}`},
		{`{"a":2.5}`, `{"error":"/a: must be integer, got number"}`},
		{`{"a":1e20}`, `{"error":"invalid argument: /a: number 1e20 does not fit a Go int"}`},
		{`{"a":1e-400}`, `{"error":"number out of range at /a"}`},
		{`[1]`, `{"error":"the arguments are not a JSON object"}`},
	} {
		if got := run(t, ft, c.args); string(got.Value) != c.want {
			t.Errorf("%s: got %s, want %s", c.args, got.Value, c.want)
		}
	}
}

func TestResults(t *testing.T) { // H29, H30, H31, H44, L11
	type item struct {
		ID int `json:"id"`
	}
	type lists struct {
		Items []string       `json:"items"`
		Map   map[string]int `json:"map"`
		Data  []byte         `json:"data"`
		Any   any            `json:"any,omitempty"`
	}
	answer := func(v any) tool.Tool {
		return mustNew(t, functiontool.Config{}, func(tool.Context, struct{}) (any, error) { return v, nil })
	}
	for _, c := range []struct {
		name string
		tool tool.Tool
		want string
	}{
		{"struct", mustNew(t, functiontool.Config{}, func(tool.Context, struct{}) (item, error) { return item{7}, nil }), `{"id":7}`},
		{"structs", mustNew(t, functiontool.Config{}, func(tool.Context, struct{}) ([]item, error) { return []item{{1}}, nil }), `{"result":[{"id":1}]}`},
		{"nil slice", mustNew(t, functiontool.Config{}, func(tool.Context, struct{}) ([]item, error) { return nil, nil }), `{"result":[]}`},
		{"time", mustNew(t, functiontool.Config{}, func(tool.Context, struct{}) (time.Time, error) { return time.Unix(0, 0).UTC(), nil }), `{"result":"1970-01-01T00:00:00Z"}`},
		{"nil struct", mustNew(t, functiontool.Config{}, func(tool.Context, struct{}) (*item, error) { return nil, nil }), `{"result":null}`},
		{"nil map", mustNew(t, functiontool.Config{}, func(tool.Context, struct{}) (map[string]int, error) { return nil, nil }), `{"result":null}`},
		{"empty struct", mustNew(t, functiontool.Config{}, func(tool.Context, struct{}) (struct{}, error) { return struct{}{}, nil }), `{"result":{}}`},
		{"raw message", mustNew(t, functiontool.Config{}, func(tool.Context, struct{}) (json.RawMessage, error) { return json.RawMessage(`[1]`), nil }), `{"result":[1]}`},
		{"nothing nil inside", mustNew(t, functiontool.Config{}, func(tool.Context, struct{}) (lists, error) { return lists{Data: []byte{1}}, nil }), `{"items":[],"map":{},"data":"AQ=="}`},
		{"bytes", answer([]byte{0x68, 0xff}), `{"result":"data:application/octet-stream;base64,aP8="}`},
		{"error inside", answer(map[string]any{"why": errors.New("no")}), `{"why":"no"}`},
		{"scalar", answer(true), `{"result":true}`},
	} {
		if got := run(t, c.tool, `{}`); string(got.Value) != c.want || got.Outcome != protocol.OutcomeCompleted {
			t.Errorf("%s: got %s %s, want %s", c.name, got.Outcome, got.Value, c.want)
		}
	}
}

func TestADKCallsByMap(t *testing.T) {
	type in struct {
		N int `json:"n,omitempty"`
	}
	ft := mustNew(t, functiontool.Config{}, func(_ tool.Context, in *in) (map[string]any, error) {
		if in == nil {
			return nil, nil
		}
		return map[string]any{"n": in.N}, nil
	})
	if got, err := ft.Run(nil, map[string]any{"n": 2}); err != nil || !reflect.DeepEqual(got, map[string]any{"n": 2.0}) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := ft.Run(nil, map[string]any(nil)); err != nil || got != nil {
		t.Errorf("a nil map: got %v, %v", got, err)
	}
	if _, err := ft.Run(nil, nil); err == nil || err.Error() != "unexpected args type, got: <nil>" {
		t.Errorf("no map: got %v", err)
	}
	if _, err := ft.Run(nil, map[string]any{"n": "x"}); !errors.Is(err, functiontool.ErrInvalidArgument) {
		t.Errorf("got %v", err)
	}
}

func TestNumbersOfAnyKeepEveryDigit(t *testing.T) { // H43
	type in struct {
		Any any `json:"any"`
	}
	ft := mustNew(t, functiontool.Config{}, func(_ tool.Context, v in) (any, error) {
		if _, ok := v.Any.([]any)[0].(float64); !ok {
			t.Errorf("got %T, want the float64 of ADK", v.Any.([]any)[0])
		}
		return v, nil
	})
	if got, want := run(t, ft, `{"any":[1,9007199254740993]}`), `{"any":[1,9007199254740993]}`; string(got.Value) != want {
		t.Errorf("got %s, want %s", got.Value, want)
	}
}

func TestNewRefuses(t *testing.T) { // H45, L6, L8
	type tagged struct {
		City string `json:"city" jsonschema:"required,description=the city"`
	}
	type outer struct {
		In []tagged `json:"in"`
	}
	type bad struct {
		Out chan int `json:"out"`
	}
	type twice struct {
		A int `json:"B"`
		B int
	}
	newErr := func(_ tool.Tool, err error) error { return err }
	for _, c := range []struct {
		name string
		err  error
		want []string
	}{
		{"scalar arguments", newErr(functiontool.New(functiontool.Config{Name: "f"}, echo[int])), []string{"f", "int", "struct or a map"}},
		{"any arguments", newErr(functiontool.New(functiontool.Config{Name: "f"}, echo[any])), []string{"struct or a map"}},
		{"slice arguments", newErr(functiontool.New(functiontool.Config{Name: "f"}, echo[[]int])), []string{"struct or a map"}},
		{"no function", newErr(functiontool.New[struct{}, int](functiontool.Config{Name: "f"}, nil)), []string{"nil"}},
		{"name", newErr(functiontool.New(functiontool.Config{Name: "a.b"}, echo[struct{}])), []string{"a_b"}},
		{"channel", newErr(functiontool.New(functiontool.Config{Name: "f"}, echo[bad])), []string{"f", "/out", "chan int"}},
		{"tag", newErr(functiontool.New(functiontool.Config{Name: "f"}, echo[outer])), []string{"f", "/in/*/city", "City", "required,description="}},
		{"two fields of a name", newErr(functiontool.New(functiontool.Config{Name: "f"}, echo[twice])), []string{"A and B", `"B"`}},
		{"provider", newErr(functiontool.New(functiontool.Config{Name: "f", RequireConfirmationProvider: func(*outer) bool { return true }}, echo[struct{}])), []string{"func(struct {}) bool"}},
		{"pattern", newErr(functiontool.New(functiontool.Config{Name: "f", InputSchema: &jsonschema.Schema{Type: "object",
			Properties: map[string]*jsonschema.Schema{"p": {Type: "string", Pattern: "(?=x)"}}}}, echo[map[string]any])), []string{"/properties/p", "(?=x)"}},
		{"output schema", newErr(functiontool.New(functiontool.Config{Name: "f", OutputSchema: &jsonschema.Schema{Type: "text"}}, echo[struct{}])), []string{"results", "/type"}},
	} {
		if c.err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(c.err.Error(), want) {
				t.Errorf("%s: %q lacks %q", c.name, c.err, want)
			}
		}
	}
}

func TestAnOutputSchemaThatIsGivenHolds(t *testing.T) {
	minimum := 5.0
	ft := mustNew(t, functiontool.Config{OutputSchema: &jsonschema.Schema{Type: "integer", Minimum: &minimum}},
		func(_ tool.Context, in struct {
			N int `json:"n"`
		}) (int, error) {
			return in.N, nil
		})
	if got := run(t, ft, `{"n":5}`); string(got.Value) != `{"result":5}` {
		t.Errorf("got %s", got.Value)
	}
	if got := run(t, ft, `{"n":4}`); got.Outcome != protocol.OutcomeFailed || !strings.Contains(string(got.Value), "the tool ran") {
		t.Errorf("got %s", got.Value)
	}
}

func TestSettingsAndDeclaration(t *testing.T) { // H40, L9
	ft := mustNew(t, functiontool.Config{Name: "refund", Description: "Refunds an order.", IsLongRunning: true, Effect: tool.Idempotent,
		Timeout: time.Minute, QueueTimeout: time.Second, Attempts: 5, MaxActive: 2, RequireConfirmation: true}, echo[struct{}])
	it, err := invoke.New(ft)
	if err != nil {
		t.Fatal(err)
	}
	d := it.Declaration()
	if d.Effect != tool.Idempotent || d.Timeout != 60_000 || d.QueueTimeout != 1000 || d.Attempts != 5 || d.MaxActive != 2 || !d.Confirm || !d.LongRunning {
		t.Errorf("got %+v", d)
	}
	if !strings.HasPrefix(d.Description, "Refunds an order.\n\nNOTE: This is a long-running operation. Do not call this tool again") || ft.Description() != "Refunds an order." {
		t.Errorf("got %q and %q", d.Description, ft.Description())
	}
	if want := `{"type":"object","properties":{},"additionalProperties":false}`; string(d.Parameters) != want {
		t.Errorf("got %s, want %s", d.Parameters, want)
	}
}

func TestAProviderDecidesAndOverridesTheFlag(t *testing.T) {
	type in struct {
		Amount int `json:"amount"`
	}
	ft := mustNew(t, functiontool.Config{RequireConfirmation: true, RequireConfirmationProvider: func(a in) bool { return a.Amount > 100 }}, echo[in])
	if ft.(tool.Configured).Settings().Confirm {
		t.Error("the flag counts beside the provider")
	}
	for args, want := range map[string]bool{`{"amount":100}`: false, `{"amount":101}`: true, `{"amount":1e3}`: true} {
		if asks, err := ft.(tool.Asker).AsksConfirmation(json.RawMessage(args)); asks != want || err != nil {
			t.Errorf("%s: %v, %v", args, asks, err)
		}
	}
	if _, ok := mustNew(t, functiontool.Config{RequireConfirmation: true}, echo[in]).(tool.Asker); ok {
		t.Error("a tool without a provider would be asked")
	}
}

func TestANilProviderIsRefused(t *testing.T) {
	_, err := functiontool.New(functiontool.Config{Name: "f", RequireConfirmationProvider: (func(struct{}) bool)(nil)}, echo[struct{}])
	if !errors.Is(err, functiontool.ErrInvalidArgument) {
		t.Errorf("got %v", err)
	}
}

func TestAStreamingToolAnswersAllPieces(t *testing.T) {
	pieces := func(fail bool) functiontool.StreamingFunc[struct{}] {
		return func(tool.Context, struct{}) iter.Seq2[string, error] {
			return func(yield func(string, error) bool) {
				if yield("a", nil) && yield("b", nil) && fail {
					yield("", errors.New("cut"))
				}
			}
		}
	}
	for fail, want := range map[bool]string{false: `{"result":"ab"}`, true: `{"error":"cut"}`} {
		ft, err := functiontool.NewStreaming(functiontool.Config{Name: "s"}, pieces(fail))
		if err != nil {
			t.Fatal(err)
		}
		if got := run(t, ft, `{}`); string(got.Value) != want {
			t.Errorf("got %s, want %s", got.Value, want)
		}
	}
}
