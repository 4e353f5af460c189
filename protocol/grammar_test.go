package protocol

import (
	"encoding/json"
	"strings"
	"testing"
)

// checkGrammar compares with encoding/json: without limits Check refuses what is no JSON, and says so.
func checkGrammar(t *testing.T, data []byte) {
	t.Helper()
	err := Check(data, Limits{})
	if valid := json.Valid(data); !valid && err == nil {
		t.Fatalf("%.100q is taken and no JSON", data)
	} else if valid && err != nil && strings.Contains(err.Error(), "invalid JSON") {
		t.Fatalf("%.100q is JSON: %v", data, err)
	}
}

func TestCheckTakesNothingButJSON(t *testing.T) {
	docs := append([]string{
		`{"a":1,}`, `{,}`, `{"a" 1}`, `{"a":}`, `{"a":1 "b":2}`, `{a:1}`, `[1 2]`, `[,]`, `]`, `}`, `{"a":1]`, `[1}`, `"\x"`, `"\u12g4"`, `"\u12`, `"\`, "\"\x1f\"",
		`-`, `-0`, `00`, `-01`, `1.`, `.5`, `1.e1`, `1e`, `1e+`, `1e+-1`, `1E-07`, `1-1`, `+1`, `1.2.3`, `tru`, `trueish`, `nulll`, `falsey`, "null\x00", "\x00",
		strings.Repeat("[", 10_002) + strings.Repeat("]", 10_002),
	}, treeDocuments...)
	for _, doc := range docs {
		checkGrammar(t, []byte(doc))
	}
}

func FuzzGrammar(f *testing.F) {
	for _, doc := range treeDocuments {
		f.Add([]byte(doc))
	}
	f.Fuzz(checkGrammar)
}
