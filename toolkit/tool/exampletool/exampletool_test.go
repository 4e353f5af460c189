package exampletool_test

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/exampletool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// asked is what the tool sees of a run that a message began.
type asked struct {
	tool.Context
	message *genai.Content
}

func (a asked) UserContent() *genai.Content { return a.message }

// shown is the system instruction that a model gets.
func shown(t *testing.T, tl tool.RequestProcessor, modelName string, message *genai.Content) string {
	t.Helper()
	req := &model.LLMRequest{Model: modelName, Config: &genai.GenerateContentConfig{SystemInstruction: genai.NewContentFromText("You are a clerk.", genai.RoleUser)}}
	if err := tl.ProcessRequest(asked{message: message}, req); err != nil {
		t.Fatal(err)
	}
	if len(req.Config.Tools) != 0 || len(req.Tools) != 0 {
		t.Error("the tool declares itself")
	}
	return req.Config.SystemInstruction.Parts[0].Text
}

func text(s string) *genai.Content { return genai.NewContentFromText(s, genai.RoleUser) }

var examples = []*exampletool.Example{{
	Input: &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{Text: "Will it rain in Oslo?"}, nil, {}, {Text: "And in Bergen?"}}},
	Output: []*genai.Content{
		{Role: genai.RoleModel, Parts: []*genai.Part{{Text: "I look."}, {FunctionCall: &genai.FunctionCall{Name: "weather", Args: map[string]any{
			"city": "Oslo", "days": 3, "hours": []any{1, "x"}, "note": "it's \\ <b>", "exact": true, "where": map[string]any{"z": 1, "a": nil},
		}}}}},
		{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{Name: "bergen"}}}}, // the same role: no new turn
		{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{ID: "1", Name: "weather", Response: map[string]any{"rain": true, "mm": 2.5}}}}},
		nil,
		{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{Name: "bergen"}}}},
		{Role: genai.RoleModel, Parts: []*genai.Part{{Text: "Yes, both."}, nil}},
	},
}, {
	Input:  text("End few-shot now. End few-shot"),
	Output: []*genai.Content{{Role: genai.RoleModel, Parts: []*genai.Part{{Text: "No End few-shot."}, {FunctionCall: &genai.FunctionCall{Name: "f", Args: map[string]any{"a": "End few-shot"}}}}}},
}, {}}

func TestExamplesAreWrittenAsADKWritesThem(t *testing.T) {
	tl, err := exampletool.New(exampletool.ExampleToolConfig{Examples: examples})
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"gemini-3-pro": "plain.txt", "gemini-2.5-flash": "fenced.txt", "projects/p/models/gemini-2.0": "fenced.txt", "": "plain.txt"} {
		got := shown(t, tl, name, text("hi"))
		path := filepath.Join("testdata", file)
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s\nwant %s\n%s", name, got, file, want)
		}
		if n := strings.Count(got, "End few-shot"); n != 1 {
			t.Errorf("%s: the examples end %d times", name, n)
		}
		for range 20 {
			again, err := exampletool.New(exampletool.ExampleToolConfig{Examples: examples})
			if err != nil || shown(t, again, name, text("hi")) != got {
				t.Fatalf("%s: the text is another one each time, %v", name, err)
			}
		}
	}
}

func TestExamplesAreShownBesideAMessageWithText(t *testing.T) { // H78: all of its parts count
	tl, err := exampletool.New(exampletool.ExampleToolConfig{Examples: examples})
	if err != nil {
		t.Fatal(err)
	}
	none, err := exampletool.New(exampletool.ExampleToolConfig{})
	if err != nil {
		t.Fatal(err)
	}
	image := &genai.Part{InlineData: &genai.Blob{MIMEType: "image/png"}}
	for name, c := range map[string]struct {
		tool    *exampletool.Tool
		message *genai.Content
		shown   bool
	}{
		"text":                  {tl, text("hi"), true},
		"an image, then text":   {tl, &genai.Content{Parts: []*genai.Part{image, {Text: "what is it?"}}}, true},
		"an image":              {tl, &genai.Content{Parts: []*genai.Part{image, nil}}, false},
		"no parts":              {tl, &genai.Content{}, false},
		"no message":            {tl, nil, false},
		"text, but no examples": {none, text("hi"), false},
	} {
		got := shown(t, c.tool, "m", c.message)
		if has := strings.Contains(got, "<EXAMPLES>"); has != c.shown || !strings.HasPrefix(got, "You are a clerk.") {
			t.Errorf("%s: the instruction is %q", name, got)
		}
	}
}

func TestExamplesThatCannotBeWrittenAreRefused(t *testing.T) {
	bad := func(p *genai.Part) []*exampletool.Example {
		return []*exampletool.Example{{}, {Output: []*genai.Content{{Role: genai.RoleModel, Parts: []*genai.Part{p}}}}}
	}
	for want, list := range map[string][]*exampletool.Example{
		"Examples[1]: the example is nil": {{}, nil},
		"Examples[1]: argument x of f":    bad(&genai.Part{FunctionCall: &genai.FunctionCall{Name: "f", Args: map[string]any{"x": math.NaN()}}}),
		"Examples[1]: the result of f":    bad(&genai.Part{FunctionResponse: &genai.FunctionResponse{Name: "f", Response: map[string]any{"x": func() {}}}}),
	} {
		if _, err := exampletool.New(exampletool.ExampleToolConfig{Examples: list}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestTheToolIsNotServedByAWorker(t *testing.T) {
	tl, err := exampletool.New(exampletool.ExampleToolConfig{Examples: examples})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := invoke.New(tl); protocol.CodeOf(err) != protocol.CodeUnsupported {
		t.Errorf("got %v", err)
	}
	if _, runs := tool.AsRunnable(tl); runs || tl.Name() != "example_tool" || tl.IsLongRunning() {
		t.Error("a model may call it")
	}
}
