package model_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolfabric/toolfabric/toolkit/model"
)

func TestInexactSurvivesJSON(t *testing.T) {
	want := []model.InexactArg{{Call: 1, Pointer: "/id"}}
	r := &model.LLMResponse{CustomMetadata: map[string]any{model.InexactArgs: want}}
	if d := cmp.Diff(want, r.Inexact()); d != "" {
		t.Errorf("as set (-want +got):\n%s", d)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var again model.LLMResponse
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, again.Inexact()); d != "" {
		t.Errorf("after JSON (-want +got):\n%s", d)
	}
	if got := (&model.LLMResponse{}).Inexact(); got != nil {
		t.Errorf("without any: %v", got)
	}
}
