package model_test

import (
	"testing"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/model"
)

func TestInstructionsAreAppendedToTheLastText(t *testing.T) {
	image := &genai.Part{InlineData: &genai.Blob{MIMEType: "image/png"}}
	for name, c := range map[string]struct {
		config *genai.GenerateContentConfig
		texts  []string
		want   []string // the texts of the parts after it
	}{
		"no config":      {nil, []string{"a", "", "b"}, []string{"a\n\nb"}},
		"no instruction": {&genai.GenerateContentConfig{}, []string{"a"}, []string{"a"}},
		"one text":       {&genai.GenerateContentConfig{SystemInstruction: &genai.Content{Parts: []*genai.Part{{Text: "x"}}}}, []string{"a"}, []string{"x\n\na"}},
		"text and image": {&genai.GenerateContentConfig{SystemInstruction: &genai.Content{Parts: []*genai.Part{{Text: "x"}, image, nil}}}, []string{"a"}, []string{"x\n\na", "", ""}},
		"only an image":  {&genai.GenerateContentConfig{SystemInstruction: &genai.Content{Parts: []*genai.Part{image}}}, []string{"a"}, []string{"", "a"}},
	} {
		before := ""
		if c.config != nil && c.config.SystemInstruction != nil {
			before = c.config.SystemInstruction.Parts[0].Text
		}
		req := &model.LLMRequest{Config: c.config}
		req.AppendInstructions(c.texts...)
		parts := req.Config.SystemInstruction.Parts
		if len(parts) != len(c.want) {
			t.Errorf("%s: %d parts, want %d", name, len(parts), len(c.want))
			continue
		}
		for i, want := range c.want {
			if parts[i] != nil && parts[i].Text != want {
				t.Errorf("%s: part %d is %q, want %q", name, i, parts[i].Text, want)
			}
		}
		if before != "" && c.config.SystemInstruction.Parts[0].Text != before {
			t.Errorf("%s: the shared config was written", name)
		}
	}
	untouched := &model.LLMRequest{}
	if untouched.AppendInstructions("", ""); untouched.Config != nil {
		t.Error("nothing was appended, and yet there is a config")
	}
}
