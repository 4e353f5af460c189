package gemini

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSchemaIsWrittenOut(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"no properties", `{"type":"object"}`, `{"type":"object","properties":{}}`},
		{"no type", `{"properties":{"a":{}}}`, `{"type":"object","properties":{"a":{}}}`},
		{"reference", `{"type":"object","properties":{"a":{"$ref":"#/$defs/A","description":"mine"}},"$defs":{"A":{"type":"string","description":"theirs"}}}`,
			`{"type":"object","properties":{"a":{"type":"string","description":"mine"}}}`},
		{"escaped pointer", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x~1y%20z"}},"$defs":{"x/y z":{"type":"number"}}}`,
			`{"type":"object","properties":{"a":{"type":"number"}}}`},
		{"remote and dangling", `{"type":"object","properties":{"a":{"$ref":"https://x.invalid/s"},"b":{"$ref":"#/$defs/no"},"c":{"$ref":"#anchor","type":"string"}}}`,
			`{"type":"object","properties":{"a":{"type":"object"},"b":{"type":"object"},"c":{"type":"string"}}}`},
		{"circular", `{"type":"object","properties":{"n":{"$ref":"#/$defs/N"}},"$defs":{"N":{"type":"object","description":"d","properties":{"next":{"$ref":"#/$defs/N"}},"required":["next"]}}}`,
			`{"type":"object","properties":{"n":{"type":"object","description":"d","required":["next"],"properties":{"next":{"type":"object","description":"d","required":["next"],"properties":{"next":{"type":"object","description":"d"}}}}}}}`},
		{"reference to itself only", `{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`,
			`{"type":"object","properties":{"a":{"type":"object"}}}`},
		{"allOf", `{"type":"object","allOf":[{"properties":{"a":{"type":"string"}}},{"required":["a","b"]}],"properties":{"b":{}}}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{}},"required":["b","a"]}`},
		{"true and false", `{"type":"object","properties":{"a":true,"b":false,"l":{"type":"array","items":true}},"additionalProperties":false,"required":["b"]}`,
			`{"type":"object","properties":{"a":{},"l":{"type":"array","items":{}}},"additionalProperties":false}`},
		{"bounds that would be rounded", `{"type":"object","properties":{"a":{"type":"integer","minimum":-9223372036854775808,"maximum":10,"default":9007199254740993,"exclusiveMinimum":true}}}`,
			`{"type":"object","properties":{"a":{"type":"integer","maximum":10}}}`},
		{"null in an enum", `{"type":"object","properties":{"a":{"enum":[1,"x",null]}}}`,
			`{"type":"object","properties":{"a":{"type":["string","null"],"enum":["1","x"]}}}`},
		{"64-bit integer", `{"type":"object","properties":{"a":{"type":["integer","null"],"format":"int64","minimum":0,"description":"the id"}}}`,
			`{"type":"object","properties":{"a":{"type":["string","null"],"description":"the id (a whole number, written as decimal digits)"}}}`},
		{"enum of objects", `{"type":"object","properties":{"a":{"enum":[{"x":1}]}}}`, `{"type":"object","properties":{"a":{}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := expand(json.RawMessage(c.in))
			if err != nil {
				t.Fatal(err)
			}
			var want any
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			var got any
			if err := json.Unmarshal([]byte(encoded(s.textual())), &got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got, cmp.Transformer("set", func(in []any) map[string]bool {
				out := map[string]bool{}
				for _, v := range in {
					out[encoded(v)] = true
				}
				return out
			})); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestSchemaStaysSmall(t *testing.T) {
	var defs []string
	for i := range 30 {
		next := string(rune('a'+(i+1)%26)) + strings.Repeat("x", i+1)
		name := string(rune('a'+i%26)) + strings.Repeat("x", i)
		defs = append(defs, `"`+name+`":{"type":"object","properties":{"l":{"$ref":"#/$defs/`+next+`"},"r":{"$ref":"#/$defs/`+next+`"}}}`)
	}
	s, err := expand(json.RawMessage(`{"$ref":"#/$defs/a","$defs":{` + strings.Join(defs, ",") + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(encoded(s)); n > 512<<10 {
		t.Errorf("a schema that doubles 30 times was written out to %d bytes", n)
	}
}

func TestArgumentsGoThereAndBack(t *testing.T) {
	const raw = `{"type":"object","properties":{
		"level":{"type":"integer","enum":[1,2]},"flag":{"type":"boolean","enum":[true]},
		"mixed":{"enum":[1,"1"]},"list":{"type":"array","items":{"type":"number","enum":[0.5,1]}},
		"either":{"anyOf":[{"type":"null"},{"type":"integer","enum":[7]}]},
		"free":{"anyOf":[{"type":"string"},{"type":"integer","enum":[7]}]},
		"map":{"type":"object","additionalProperties":{"const":3}},
		"pair":{"type":"array","prefixItems":[{"const":true},{"type":"string"}],"items":{"enum":[9]}},
		"id":{"type":"integer","format":"uint64"}, "name":{"type":"string"}}}`
	s, err := expand(json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	var said map[string]any
	if err := json.Unmarshal([]byte(`{"level":"2","flag":"true","mixed":"1","list":["0.5","1","x"],"either":"7","free":"7",
		"map":{"k":"3"},"pair":["true","true","9"],"id":"18446744073709551615","name":"2","other":"2"}`), &said); err != nil {
		t.Fatal(err)
	}
	before := encoded(said)
	meant, doubtful := s.fromModel(said)
	if doubtful != nil {
		t.Errorf("doubtful: %v", doubtful)
	}
	if encoded(said) != before {
		t.Error("the model's own arguments were changed")
	}
	wantJSON(t, encoded(meant), `{"level":2,"flag":true,"mixed":"1","list":[0.5,1,"x"],"either":7,"free":"7",
		"map":{"k":3},"pair":[true,"true",9],"id":18446744073709551615,"name":"2","other":"2"}`)
	if meant["id"] != json.Number("18446744073709551615") {
		t.Errorf("id is %v", meant["id"])
	}
	exact := map[string]any{}
	if err := decodeNumbers(encoded(meant), &exact); err != nil {
		t.Fatal(err)
	}
	wantJSON(t, encoded(s.toModel(exact)), before)
}

func TestNumbersThatMayBeRoundedAreNamed(t *testing.T) {
	s, err := expand(json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"f":{"type":"number"},"l":{"type":"array","items":{"type":"integer"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	_, got := s.fromModel(map[string]any{"n": float64(1 << 53), "f": 1e300, "l": []any{1.0, -9.3e18}, "un/known": 1e17, "small": float64(1<<53 - 1)})
	if d := cmp.Diff([]string{"/l/1", "/n", "/un~1known"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func decodeNumbers(text string, v any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}

// FuzzSchema checks that no schema and no arguments break the conversion, and that it stays bounded.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#"}}}`), []byte(`{"a":{"a":"1"}}`))
	f.Add([]byte(`{"properties":{"a":{"enum":[1,true]}},"allOf":[{"$ref":"#/properties/a"}]}`), []byte(`{"a":"1"}`))
	f.Add([]byte(`{"type":["object"],"anyOf":[{"items":{"const":1}}],"required":[1,"a"]}`), []byte(`{"a":[["1"],1e300]}`))
	f.Fuzz(func(t *testing.T, raw, args []byte) {
		s, err := expand(json.RawMessage(raw))
		if err != nil {
			return
		}
		if _, err := json.Marshal(s.textual()); err != nil {
			t.Errorf("the declaration cannot be encoded: %v", err)
		}
		var said map[string]any
		if json.Unmarshal(args, &said) != nil || said == nil {
			return
		}
		meant, _ := s.fromModel(said)
		s.toModel(meant)
	})
}
