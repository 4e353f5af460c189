package client

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
)

func TestAnIDOfAnotherCallIsRefusedByNameOfTheDifference(t *testing.T) {
	f := newFabric(t)
	f.serve(protocol.CallsApp)
	args := `{"text":"a","n":1.0,"deep":{"x":[1,2]}}`
	f.append(protocol.CallsApp, "in", protocol.Event{Inputs: []protocol.FoldedInput{
		{ID: "in", Kind: protocol.InputCall, Call: &protocol.ClientCall{Tool: "hash", Args: json.RawMessage(args)}}}})
	for _, c := range []struct{ tool, args, says string }{
		{"hash", args, ""},
		{"hash", ` { "deep": {"x":[1,2]}, "n":1.0, "text":"a" } `, ""},
		{"count", args, "was of tool hash, not of count"},
		{"hash", `{"text":"b","n":1.0,"deep":{"x":[1,2]}}`, `its /text was "a", not "b"`},
		{"hash", `{"text":"a","n":1.0,"deep":{"x":[2,1]}}`, `its /deep was {"x":[1,2]}, not {"x":[2,1]}`},
		{"hash", `{"text":"a","deep":{"x":[1,2]}}`, "it had /n"},
		{"hash", `{"text":"a","n":1.0,"deep":{"x":[1,2]},"more":null}`, "it had no /more"},
	} {
		_, err := f.SendCall(t.Context(), c.tool, json.RawMessage(c.args), WithInputID("in"))
		if c.says == "" {
			if err != nil {
				t.Errorf("%s %s: %v", c.tool, c.args, err)
			}
			continue
		}
		if protocol.CodeOf(err) != protocol.CodeUsage || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s: %v, want it to say %q", c.tool, c.args, err, c.says)
		}
	}
	if n := len(f.inputs(protocol.CallsApp)); n != 2 {
		t.Errorf("%d inputs were sent, want the two that are the same call", n)
	}
}
