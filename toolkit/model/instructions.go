package model

import (
	"slices"
	"strings"

	"google.golang.org/genai"
)

// AppendInstructions adds texts to the system instruction, each after a blank line: to its last text part, or as its first.
// Empty texts are left out. Nothing that r's config pointed to before is written: the config and the instruction may be
// shared with other requests.
func (r *LLMRequest) AppendInstructions(texts ...string) {
	texts = slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return s == "" })
	if len(texts) == 0 {
		return
	}
	config := genai.GenerateContentConfig{}
	if r.Config != nil {
		config = *r.Config
	}
	system := genai.Content{Role: genai.RoleUser}
	if config.SystemInstruction != nil {
		system = *config.SystemInstruction
		system.Parts = slices.Clone(system.Parts)
	}
	added := strings.Join(texts, "\n\n")
	last := -1
	for i, p := range system.Parts {
		if p != nil && p.Text != "" {
			last = i
		}
	}
	if last >= 0 {
		part := *system.Parts[last]
		part.Text += "\n\n" + added
		system.Parts[last] = &part
	} else {
		system.Parts = append(system.Parts, &genai.Part{Text: added})
	}
	config.SystemInstruction = &system
	r.Config = &config
}
