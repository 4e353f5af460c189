package integration

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// The case requires a property that it forbids: nothing fits it. satisfiable is the same without that.
func satisfiable(t *testing.T, schema []byte) json.RawMessage {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	s["required"] = []any{"kind"}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSchemasThatProvidersCannotRead(t *testing.T) { // h14
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(`
turns:
  - parts:
      - functionCall: {name: edit, id: a, args: {kind: insert_text, level: "2", flag: "true"}}
      - functionCall: {name: edit, id: b, args: {kind: x}}
      - functionCall: {name: noargs, id: c}
      - functionCall: {name: original, id: d, args: {kind: insert_text}}
    finishReason: STOP
  - {parts: [{text: done}], finishReason: STOP}
`), nil)
	f.coordinate(newAgent(t, "h14", p.llm, "edit", "noargs", "odd", "original"))
	schema := hand(t, "h14-provider-schema-limits/schema.json")
	edit, noargs := answering("edit", `{"ok":true}`, tool.AtMostOnce), answering("noargs", `{"ok":true}`, tool.AtMostOnce)
	odd, original := answering("odd", `{}`, tool.AtMostOnce), answering("original", `{}`, tool.AtMostOnce)
	edit.schema, original.schema = satisfiable(t, schema), schema
	noargs.schema = hand(t, "h14-provider-schema-limits/schema-noargs.json")
	odd.schema = json.RawMessage(`{"type":["object","null"]}`)
	f.work(edit, noargs, odd, original)
	out := f.ask("h14", "", "go")
	contains(t, "the answer", out.Text, "done")

	edit.wantRuns(t, 1)
	wantJSON(t, "the arguments at the tool", edit.ran()[0].args, `{"kind":"insert_text","level":2,"flag":true}`)
	noargs.wantRuns(t, 1)
	original.wantRuns(t, 0)
	log := f.log("h14", out.Session)
	for _, k := range []int{1, 3} {
		if c := turns(log)[0].Calls[k]; c.Refusal == nil || c.Refusal.Code != protocol.CodeSchemaViolation {
			t.Errorf("call %d with arguments %s was not refused by the declared schema: %+v", k, c.Args, c)
		}
	}
	p.wantCount(2)
	contains(t, "the response to the bad call", mustString(t, p.response(2, 1)), "kind")

	var body struct {
		Tools []struct {
			FunctionDeclarations []map[string]any `json:"functionDeclarations"`
		}
	}
	p.body(1, &body)
	declared := body.Tools[0].FunctionDeclarations
	var names []string
	for _, d := range declared {
		names = append(names, d["name"].(string))
		typed, isTyped := d["parameters"].(map[string]any)
		plain, isPlain := d["parametersJsonSchema"].(map[string]any)
		if isTyped == isPlain {
			t.Errorf("%s: want exactly one of parameters and parametersJsonSchema: %v", d["name"], d)
		}
		if isTyped {
			readable(t, d["name"].(string), typed)
		} else {
			wellFormed(t, d["name"].(string), plain)
		}
	}
	slices.Sort(names)
	same(t, "declared tools", names, []string{"edit", "noargs", "original"})
	contains(t, "the adapter's log", p.log.String(), "odd")
}

// readable checks what holds of Gemini's own form of a schema.
func readable(t *testing.T, at string, s map[string]any) {
	t.Helper()
	for _, k := range []string{"$schema", "additionalProperties", "const", "default", "exclusiveMinimum", "exclusiveMaximum", "patternProperties", "propertyNames", "oneOf"} {
		if _, ok := s[k]; ok {
			t.Errorf("%s holds %s", at, k)
		}
	}
	if _, ok := s["type"].(string); !ok {
		t.Errorf("%s: type is %v, want one name", at, s["type"])
	}
	wellFormed(t, at, s)
}

// wellFormed checks what holds of both forms: enums are texts, arrays have items, what is required exists.
func wellFormed(t *testing.T, at string, s map[string]any) {
	t.Helper()
	if enum, ok := s["enum"].([]any); ok {
		if kind, _ := s["type"].(string); !strings.EqualFold(kind, "string") {
			t.Errorf("%s: an enum on type %v", at, s["type"])
		}
		for _, v := range enum {
			if _, ok := v.(string); !ok {
				t.Errorf("%s: %v in an enum", at, v)
			}
		}
	}
	if kind, _ := s["type"].(string); strings.EqualFold(kind, "array") && s["items"] == nil {
		t.Errorf("%s: an array without items", at)
	}
	props, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, r := range required {
		if props[r.(string)] == nil {
			t.Errorf("%s requires %v, which does not exist", at, r)
		}
	}
	for name, v := range props {
		wellFormed(t, at+"."+name, v.(map[string]any))
	}
	if items, ok := s["items"].(map[string]any); ok {
		wellFormed(t, at+"[]", items)
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		branches, _ := s[k].([]any)
		for _, b := range branches {
			wellFormed(t, at+"|", b.(map[string]any))
		}
	}
}

func mustString(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
