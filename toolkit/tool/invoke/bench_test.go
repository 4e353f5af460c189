package invoke_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// validations are schemas of growing weight, with arguments that fit. allocs is what checking may cost; plain schemas, types
// and required properties alone, cost nothing.
var validations = []struct {
	name, schema, args string
	allocs             float64
}{
	{"plain", `{"type":"object","properties":{"order":{"type":"string"},"full":{"type":"boolean"}},"required":["order"],"additionalProperties":false}`,
		`{"order":"10042","full":true}`, 0},
	{"plain, 20 lines", `{"type":"object","properties":{"lines":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string"},"count":{"type":"integer"}},"required":["sku","count"],"additionalProperties":false}}},"required":["lines"]}`,
		listOf(20), 0},
	{"with bounds, 20 lines", `{"type":"object","properties":{"lines":{"type":"array","maxItems":100,"items":{"type":"object","properties":{"sku":{"type":"string","pattern":"^A-[0-9]+$"},"count":{"type":"integer","minimum":0}},"required":["sku","count"],"additionalProperties":false}}},"required":["lines"]}`,
		listOf(20), 600},
	{"recursive", `{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["name"]}},"type":"object"}`,
		`{"name":"a","kids":[{"name":"b","kids":[{"name":"c"},{"name":"d"}]},{"name":"e"}]}`, 82},
}

func listOf(n int) string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"sku":"A-%d","count":%d}`, i, i)
	}
	return `{"lines":[` + strings.Join(lines, ",") + `]}`
}

func compiled(t testing.TB, schema string) *invoke.Schema {
	t.Helper()
	s, err := invoke.CompileSchema(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func BenchmarkValidate(b *testing.B) {
	for _, c := range validations {
		b.Run(c.name, func(b *testing.B) {
			s, args := compiled(b, c.schema), json.RawMessage(c.args)
			b.ReportAllocs()
			b.SetBytes(int64(len(args)))
			for b.Loop() {
				if _, err := s.Normalize(args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What a coordinator pays for each new declaration, and a worker for each of its tools.
func BenchmarkCompile(b *testing.B) {
	for _, c := range validations {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				compiled(b, c.schema)
			}
		})
	}
}
