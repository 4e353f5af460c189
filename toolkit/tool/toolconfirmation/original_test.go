package toolconfirmation_test

import (
	"encoding/json"
	"testing"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

func TestOriginalCallSurvivesARoundThroughJSON(t *testing.T) {
	request := &genai.FunctionCall{ID: "adk-1", Name: toolconfirmation.FunctionCallName, Args: map[string]any{
		"originalFunctionCall": &genai.FunctionCall{ID: "c1", Name: "refund", Args: map[string]any{"order": "7"}},
	}}
	b, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	var stored genai.FunctionCall
	if err := json.Unmarshal(b, &stored); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]*genai.FunctionCall{"in memory": request, "stored": &stored} {
		got, err := toolconfirmation.OriginalCallFrom(call)
		if err != nil || got.ID != "c1" || got.Name != "refund" || got.Args["order"] != "7" {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func TestOriginalCallRefusesWhatHoldsNone(t *testing.T) {
	for name, call := range map[string]*genai.FunctionCall{
		"nil":            nil,
		"no arguments":   {},
		"no key":         {Args: map[string]any{"x": 1}},
		"another type":   {Args: map[string]any{"originalFunctionCall": "refund"}},
		"nil call":       {Args: map[string]any{"originalFunctionCall": (*genai.FunctionCall)(nil)}},
		"not a call":     {Args: map[string]any{"originalFunctionCall": map[string]any{"args": 1}}},
		"not to be JSON": {Args: map[string]any{"originalFunctionCall": map[string]any{"args": make(chan int)}}},
	} {
		if got, err := toolconfirmation.OriginalCallFrom(call); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
