package turn

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/model"
)

func TestAClonedRequestSharesNothingThatCanBeChanged(t *testing.T) {
	seed := int32(7)
	req := &model.LLMRequest{
		Model: "m",
		Contents: []*genai.Content{{Role: "user", Parts: []*genai.Part{
			{Text: "hi", InlineData: &genai.Blob{Data: []byte{1, 2}, MIMEType: "x/y"}},
			{FunctionResponse: &genai.FunctionResponse{Response: map[string]any{"a": []any{map[string]any{"b": json.Number("1")}}}}},
			nil,
		}}},
		Config: &genai.GenerateContentConfig{Seed: &seed, Labels: map[string]string{"a": "b"}, StopSequences: []string{"x"},
			Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "t", ParametersJsonSchema: json.RawMessage(`{}`)}}}}},
		Tools: map[string]any{"t": t},
	}
	want, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	c := cloneRequest(req)
	if !reflect.DeepEqual(c, req) {
		t.Fatalf("got %+v", c)
	}
	c.Contents[0].Parts[0].InlineData.Data[0] = 9
	c.Contents[0].Parts[1].FunctionResponse.Response["a"].([]any)[0].(map[string]any)["b"] = "changed"
	c.Contents[0].Parts = append(c.Contents[0].Parts[:1], &genai.Part{Text: "more"})
	*c.Config.Seed = 8
	c.Config.Labels["a"], c.Config.StopSequences[0] = "c", "y"
	c.Config.Tools[0].FunctionDeclarations[0].ParametersJsonSchema.(json.RawMessage)[0] = 'x'
	delete(c.Tools, "t")
	if got, _ := json.Marshal(req); string(got) != string(want) || len(req.Tools) != 1 {
		t.Errorf("the original is\n%s\nwas\n%s", got, want)
	}
}

func TestCloneTakesWhatIsNoDataAsItIs(t *testing.T) {
	type hidden struct{ secret *int }
	n := 1
	f := func() int { return n }
	in := map[string]any{"time": time.Unix(1, 2), "hidden": hidden{&n}, "func": f, "nil": nil, "array": [2]int{1, 2}}
	out := clone(in)
	if out["hidden"].(hidden).secret != &n || out["func"].(func() int)() != 1 || !out["time"].(time.Time).Equal(time.Unix(1, 2)) || out["nil"] != nil || out["array"] != [2]int{1, 2} {
		t.Errorf("got %v", out)
	}
	if clone[map[string]any](nil) != nil || clone[*genai.Content](nil) != nil {
		t.Error("nil has become something")
	}
}
