package invoke

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
)

const formSchema = `{"type":"object","additionalProperties":false,"required":["text","n"],"properties":{
	"text":{"type":"string","description":"said"},"n":{"type":"integer"},"f":{"type":["number","null"]},"b":{"type":"boolean"},
	"list":{"type":"array","items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}},"any":true,"":{}}}`

var formArgs = []struct {
	args string
	fits bool
}{
	{`{"text":"a","n":1}`, true},
	{` { "text" : "a\"}" , "n" : -1 , "f" : 1.5 , "b" : false , "list" : [ { "k" : "x" , "more" : [1e5,{"a":{}}] } , {"k":""} ] , "any" : null , "" : [] } `, false}, // an exponent
	{`{"text":"a,:","n":0,"f":null,"b":true,"list":[],"any":{"a":[{}]},"":[]}`, true},
	{`{"text":"a","n":1,"list":[{"k":"x","more":[1,{"a":{}}]}]}`, true},
	{`{"text":"a","n":1.0}`, false}, {`{"text":"a","n":1e2}`, false}, {`{"text":"a"}`, false}, {`{"text":1,"n":1}`, false},
	{`{"text":"a","n":1,"other":1}`, false}, {`{"t\u0065xt":"a","n":1}`, false}, {`{"text":"a","n":1,"list":[{}]}`, false},
	{`{"text":"a","n":1,"b":null}`, false}, {`{}`, false},
}

func compiled(t testing.TB, schema string) *Schema {
	t.Helper()
	s, err := CompileSchema(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// checkForm compares with the library: what fits by its form is valid.
func checkForm(t *testing.T, s *Schema, args []byte) (fits bool) {
	t.Helper()
	if s.form == nil || protocol.Check(args, protocol.ArgsLimits) != nil {
		return false
	}
	doc, err := decodeExact(args)
	if _, ok := doc.(map[string]any); !ok || err != nil {
		return false
	}
	fits = s.form.fits(args)
	if err := s.root.Validate(doc); fits && err != nil {
		t.Fatalf("%s fits by its form, the library says: %v", args, err)
	}
	return fits
}

func TestFormTellsWhatFits(t *testing.T) {
	s := compiled(t, formSchema)
	for _, c := range formArgs {
		if got := checkForm(t, s, []byte(c.args)); got != c.fits {
			t.Errorf("%s: %t, want %t", c.args, got, c.fits)
		}
	}
}

func TestFormIsOnlyOfPlainSchemas(t *testing.T) {
	for _, keyword := range []string{
		`"minLength":1`, `"minimum":0`, `"enum":["a"]`, `"const":1`, `"pattern":"a"`, `"format":"date"`, `"not":{}`, `"$ref":"#"`, `"anyOf":[{}]`,
		`"propertyNames":{}`, `"minItems":1`, `"prefixItems":[{}]`, `"dependentRequired":{}`, `"additionalProperties":{}`, `"required":["missing"]`,
		`"items":{"maximum":1}`, `"unevaluatedProperties":false`, `"$defs":{}`,
	} {
		if s := compiled(t, `{"type":"object","properties":{"a":{`+keyword+`}}}`); s.form != nil {
			t.Errorf("a schema with %s has a form", keyword)
		}
	}
}

// Schemas and arguments by chance, from few enough words that many fit.
func TestFormAgreesWithTheLibrary(t *testing.T) {
	fitted := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := compiled(t, randomSchema(r, 2, "object"))
		for range 30 {
			if checkForm(t, s, []byte(randomObject(r, 2))) {
				fitted++
			}
		}
	}
	if fitted < 300 {
		t.Errorf("%d of 9000 arguments fit: the test shows little", fitted)
	}
}

func randomSchema(r *rand.Rand, depth int, kind string) string {
	kinds := []string{"object", "array", "string", "number", "integer", "boolean", "null"}
	if kind == "" {
		kind = kinds[r.IntN(len(kinds))]
	}
	s := fmt.Sprintf(`{"type":%q`, kind)
	switch {
	case kind == "object" && depth > 0:
		s += fmt.Sprintf(`,"properties":{"a":%s,"b":%s}`, randomSchema(r, depth-1, ""), randomSchema(r, depth-1, ""))
		s += []string{``, `,"required":["a"]`, `,"required":["b","a"]`}[r.IntN(3)]
		s += []string{``, `,"additionalProperties":false`, `,"additionalProperties":true`}[r.IntN(3)]
	case kind == "array" && depth > 0:
		s += `,"items":` + randomSchema(r, depth-1, "")
	}
	return s + "}"
}

func randomObject(r *rand.Rand, depth int) string {
	s := "{"
	for _, key := range []string{"a", "b", "c"} {
		if r.IntN(3) > 0 && depth > 0 {
			if len(s) > 1 {
				s += ", "
			}
			s += fmt.Sprintf(`%q:%s`, key, randomValue(r, depth-1))
		}
	}
	return s + "}"
}

func randomValue(r *rand.Rand, depth int) string {
	switch r.IntN(4) {
	case 0:
		return randomObject(r, depth)
	case 1:
		if depth > 0 {
			return "[" + randomValue(r, depth-1) + "," + randomValue(r, depth-1) + "]"
		}
		return "[]"
	}
	return []string{`"x"`, `"\u0061"`, `1`, `-0`, `1.5`, `2.0`, `1e1`, `true`, `false`, `null`}[r.IntN(10)]
}

func FuzzForm(f *testing.F) {
	s := compiled(f, formSchema)
	for _, c := range formArgs {
		f.Add([]byte(c.args))
	}
	f.Fuzz(func(t *testing.T, args []byte) { checkForm(t, s, args) })
}
