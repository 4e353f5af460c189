package httptool_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/toolkit/tool/httptool"
)

// BenchmarkOpenAPI reads a document of 1,000 operations, each of which refers to a schema that refers to 20 more.
func BenchmarkOpenAPI(b *testing.B) {
	var paths, schemas []string
	for i := range 1000 {
		paths = append(paths, fmt.Sprintf(`"/p%d/{id}":{"put":{"operationId":"op%d","summary":"Does something","parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string"}}],`+
			`"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/S0"}}}}}}`, i, i))
	}
	for i := range 20 {
		schemas = append(schemas, fmt.Sprintf(`"S%d":{"type":"object","properties":{"name":{"type":"string","description":"A name"},"next":{"$ref":"#/components/schemas/S%d"}}}`, i, (i+1)%20))
	}
	doc := []byte(`{"openapi":"3.0.3","paths":{` + strings.Join(paths, ",") + `},"components":{"schemas":{` + strings.Join(schemas, ",") + `}}}`)
	b.ReportMetric(float64(len(doc)), "doc-bytes")
	for b.Loop() {
		s, err := httptool.OpenAPI(httptool.OpenAPIConfig{Name: "x", Document: doc, BaseURL: "https://api.example.com"})
		if err != nil || len(s.Skipped()) > 0 {
			b.Fatal(err, s.Skipped())
		}
	}
}

// BenchmarkCall is one call of a server on loopback over a kept connection.
func BenchmarkCall(b *testing.B) {
	s := record(b, nil)
	ht := made(b, httptool.Config{URL: s.URL + "/v1/{city}?units={units}"})
	b.ReportAllocs()
	for b.Loop() {
		if r, err := run(b, b.Context(), ht, `{"city":"São Paulo","units":"metric"}`); err != nil {
			b.Fatal(r, err)
		}
	}
}
