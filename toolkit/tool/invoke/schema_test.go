package invoke_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

func compile(t testing.TB, raw string) *invoke.Schema {
	t.Helper()
	s, err := invoke.CompileSchema(json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const orderSchema = `{"type":"object","additionalProperties":false,"required":["n"],"properties":{
	"n":{"type":"integer","maximum":10},
	"color":{"enum":["red","green"]},
	"tags":{"type":"array","items":{"type":"string","minLength":2},"uniqueItems":true},
	"who":{"anyOf":[{"type":"string"},{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}]},
	"code":{"type":"string","pattern":"^[A-Z]+$"},
	"even":{"multipleOf":2},
	"sub":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"o":{"type":"string"}}}}}`

func TestFaultsNamePlaceWantedAndGot(t *testing.T) { // H41, H42
	s := compile(t, orderSchema)
	for _, c := range []struct{ args, want string }{
		{`{"n":12,"zz":1}`, `/n: must be at most 10, got 12; /zz: unknown property`},
		{`{"n":9007199254740993}`, `/n: must be at most 10, got 9007199254740993`},
		{`{"n":1.5}`, `/n: must be integer, got number`},
		{`{"n":1,"color":"blue"}`, `/color: must be one of "red", "green", got "blue"`},
		{`{"n":1,"tags":["aa","b","aa"]}`, `/tags/1: must have at least 2 characters, got 1; /tags: items 0 and 2 are equal, must differ`},
		{`{"n":1,"who":1}`, `/who: must be string or object, got number`},
		{`{"n":1,"who":{"id":"x"}}`, `/who/id: must be integer, got string`},
		{`{"n":1,"code":"ab"}`, `/code: must match "^[A-Z]+$", got "ab"`},
		{`{"n":1,"even":3}`, `/even: must be a multiple of 2, got 3`},
		{`{"N":1}`, `/N: unknown property, did you mean "n"?; /n: required, but missing`},
		{`{"n":1,"n":2}`, `duplicate key "n" at /n`},
		{`{"n":1e400}`, `number out of range: 1e400 at /n`},
		{`{"n":1,"even":1e-999999}`, `number out of range: 1e-999999 at /even`},
		{"{\"n\":1,\"code\":\"\xff\"}", `invalid UTF-8 at byte 15`},
		{`{"n":1}{}`, `invalid JSON at byte 8: invalid character '{' after top-level value`},
		{`"n"`, `the arguments are not a JSON object`},
	} {
		err := s.Validate(json.RawMessage(c.args))
		if protocol.CodeOf(err) != protocol.CodeSchemaViolation || err.(*protocol.Error).Public != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.args, err, c.want)
		}
	}
	var many []string
	for i := range 12 {
		many = append(many, fmt.Sprintf(`"u%d":1`, i))
	}
	err := s.Validate(json.RawMessage(`{"n":1,` + strings.Join(many, ",") + `}`))
	if err == nil || !strings.HasSuffix(err.Error(), "; and 4 more") {
		t.Errorf("got %v", err)
	}
}

func TestNormalizeDropsOnlyNullsThatWereRefused(t *testing.T) {
	s := compile(t, orderSchema)
	for _, c := range []struct{ args, want string }{
		{` {"n": 1.0} `, ` {"n": 1.0} `},
		{`{"n":10,"color":null,"who":null,"code":null}`, `{"n":10}`},
		{`{"n":9,"sub":{"k":"x","o":null},"tags":["9007199254740993"]}`, `{"n":9,"sub":{"k":"x"},"tags":["9007199254740993"]}`},
	} {
		if got, err := s.Normalize(json.RawMessage(c.args)); err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.args, got, err, c.want)
		}
	}
	for _, args := range []string{`{"n":null}`, `{"n":1,"sub":{"k":null}}`, `{"n":1,"zz":null}`, `{"n":1,"tags":["aa",null]}`, `{"n":"x","color":null}`} {
		if got, err := s.Normalize(json.RawMessage(args)); err == nil {
			t.Errorf("%s: got %s", args, got)
		}
	}
	keeps := compile(t, `{"properties":{"a":{"type":["string","null"]}}}`)
	if got, err := keeps.Normalize(json.RawMessage(`{"a":null}`)); err != nil || string(got) != `{"a":null}` {
		t.Errorf("got %s, %v", got, err)
	}
	for _, empty := range []string{``, ` `, `null`} {
		if got, err := keeps.Normalize(json.RawMessage(empty)); err != nil || string(got) != `{}` {
			t.Errorf("%q: got %s, %v", empty, got, err)
		}
	}
}

func TestSchemasThatAreRefused(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`[]`, "not a JSON object"},
		{`true`, "not a JSON object"},
		{`{"type":"string"}`, "/type"},
		{`{"type":["string","null"]}`, "/type"},
		{`{"type":"object","type":"object"}`, "duplicate key"},
		{`{"properties":{"x":{"type":"text"}}}`, "/properties/x/type"},
		{`{"properties":{"x":{"pattern":"(?=a)"}}}`, "/properties/x/pattern"},
		{`{"properties":{"x":{"$ref":"https://example.com/s.json"}}}`, "not loaded"},
		{`{"properties":{"x":{"$ref":"file:///etc/passwd"}}}`, "not loaded"},
		{`{"properties":{"x":{"$ref":"#/$defs/y"}}}`, "/$defs/y"},
		{`{"$schema":"https://example.com/draft"}`, "unknown draft"},
		{`{"description":"` + strings.Repeat("x", protocol.MaxSchema) + `"}`, "65536"},
		{strings.Repeat(`{"not":`, 70) + `{}` + strings.Repeat(`}`, 70), "deeper"},
	} {
		_, err := invoke.CompileSchema(json.RawMessage(c.schema))
		if protocol.CodeOf(err) != protocol.CodeBadDeclaration || !strings.Contains(err.(*protocol.Error).Public, c.want) {
			t.Errorf("%.80s: got %v, want %s", c.schema, err, c.want)
		}
	}
}

func TestSchemasThatAreTaken(t *testing.T) {
	for _, schema := range []string{
		`{}`, `{"type":["null","object"]}`, `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`,
		// A cycle, and a pointer outside $defs.
		`{"type":"object","properties":{"people":{"type":"array","items":{"$ref":"#/$defs/P"}},"mirror":{"$ref":"#/properties/people"}},
			"$defs":{"P":{"type":"object","properties":{"deputy":{"$ref":"#/$defs/P"}}}}}`,
	} {
		compile(t, schema)
	}
}

type shaping struct{ stub }

func (*shaping) ProcessRequest(tool.Context, *model.LLMRequest) error { return nil }

type typed struct {
	stub
	decl *genai.FunctionDeclaration
}

func (s *typed) Declaration() *genai.FunctionDeclaration { return s.decl }

func TestToolsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		tool tool.Tool
		code protocol.Code
		want string
	}{
		{nil, protocol.CodeBadDeclaration, "nil"},
		{&stub{name: "a.b"}, protocol.CodeBadName, "a_b"},
		{&stub{name: toolconfirmation.FunctionCallName}, protocol.CodeBadName, "another one"},
		{tool.Pool("x"), protocol.CodeUnsupported, "functiontool"},
		{&shaping{stub{name: "x"}}, protocol.CodeUnsupported, "ProcessRequest"},
		{&stub{name: "x", set: tool.Settings{Effect: "twice"}}, protocol.CodeBadDeclaration, "twice"},
		{&stub{name: "x", set: tool.Settings{Timeout: -time.Second}}, protocol.CodeBadDeclaration, "negative"},
		{&stub{name: "x", schema: map[string]any{"type": "array"}}, protocol.CodeBadDeclaration, "tool x"},
		{&stub{name: "x", schema: []int{1}}, protocol.CodeBadDeclaration, "object"},
		{&typed{stub{name: "x"}, nil}, protocol.CodeBadDeclaration, "no declaration"},
		{&typed{stub{name: "x"}, &genai.FunctionDeclaration{Name: "y"}}, protocol.CodeBadDeclaration, `"y"`},
		{&typed{stub{name: "x"}, &genai.FunctionDeclaration{Name: "x", Parameters: &genai.Schema{}, ParametersJsonSchema: map[string]any{}}}, protocol.CodeBadDeclaration, "both"},
	} {
		_, err := invoke.New(c.tool)
		if protocol.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %s with %s", c.tool, err, c.code, c.want)
		}
	}
}

func TestTypedSchemasBecomeJSONSchema(t *testing.T) {
	it := mustNew(t, &typed{stub{name: "x"}, &genai.FunctionDeclaration{Name: "x", Description: "d", Parameters: &genai.Schema{
		Type: genai.TypeObject, Required: []string{"a"}, PropertyOrdering: []string{"a", "b"},
		Properties: map[string]*genai.Schema{
			"a": {Type: genai.TypeArray, MaxItems: new(int64(3)), Items: &genai.Schema{Type: genai.TypeInteger}},
			"b": {Type: genai.TypeString, Nullable: new(true), Enum: []string{"x"}, Example: "x"},
			"c": {AnyOf: []*genai.Schema{{Type: genai.TypeNumber}, {Type: genai.TypeBoolean}}},
		}}}})
	want := `{"properties":{"a":{"items":{"type":"integer"},"maxItems":3,"type":"array"},"b":{"enum":["x",null],"examples":["x"],"type":["string","null"]},` +
		`"c":{"anyOf":[{"type":"number"},{"type":"boolean"}]}},"required":["a"],"type":"object"}`
	if got := it.Declaration().Parameters; string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if err := it.Schema().Validate(json.RawMessage(`{"a":[1,2],"b":null,"c":true}`)); err != nil {
		t.Error(err)
	}
}

func TestTheDeclarationHasDefaultsAndProperties(t *testing.T) { // H40, L9
	it := mustNew(t, &stub{name: "x", schema: map[string]any{"type": "object"}, set: tool.Settings{Timeout: time.Microsecond}})
	d := it.Declaration()
	if string(d.Parameters) != `{"properties":{},"type":"object"}` || d.Effect != protocol.EffectAtMostOnce || d.Timeout != 1 || it.Digest() != d.Digest() {
		t.Errorf("got %+v, %s", d, d.Parameters)
	}
}

func FuzzNormalize(f *testing.F) {
	for _, s := range []string{`{"n":1}`, `{"n":null,"color":null}`, `{"n":1e-9999}`, `{"who":[{}]}`, `[`} {
		f.Add([]byte(s))
	}
	s := compile(f, orderSchema)
	f.Fuzz(func(t *testing.T, args []byte) {
		got, err := s.Normalize(args)
		if err != nil {
			if protocol.CodeOf(err) != protocol.CodeSchemaViolation {
				t.Fatal(err)
			}
			return
		}
		if err := s.Validate(got); err != nil {
			t.Fatalf("%s was normalized to %s, which does not fit: %v", args, got, err)
		}
	})
}
