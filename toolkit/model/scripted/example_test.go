package scripted_test

import (
	"context"
	"fmt"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
)

func Example() {
	script, err := scripted.Parse([]byte(`
rules:
  - name: count
    user: 'count words in (?P<files>.+)'
    calls:
      - tool: word_count
        each: {of: '{{ .files }}', split: ',', as: file}
        args: {path: '{{ .file }}', length: {json: '{{ len .file }}'}}
  - name: report
    after: [word_count]
    text: '{{ range .results.word_count }}{{ .args.path }} has {{ .value.words }} words. {{ end }}'
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	llm := scripted.New("scripted", script)
	history := []*genai.Content{genai.NewContentFromText("count words in a.md, b.md", genai.RoleUser)}
	for range 2 {
		answers := &genai.Content{Role: genai.RoleUser}
		for r, err := range llm.GenerateContent(context.Background(), &model.LLMRequest{Contents: history}, false) {
			if err != nil {
				fmt.Println(err)
				return
			}
			history = append(history, r.Content)
			for _, p := range r.Content.Parts {
				if p.FunctionCall == nil {
					fmt.Println(p.Text)
					continue
				}
				fmt.Println(p.FunctionCall.Name, p.FunctionCall.Args)
				answers.Parts = append(answers.Parts, genai.NewPartFromFunctionResponse(p.FunctionCall.Name, map[string]any{"words": 7}))
			}
		}
		history = append(history, answers)
	}
	// Output:
	// word_count map[length:4 path:a.md]
	// word_count map[length:4 path:b.md]
	// a.md has 7 words. b.md has 7 words.
}
