// A toolset of which an agent may use some tools only.
package main

import (
	"context"
	"fmt"
	"log"
	"slices"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/model"
	"google.golang.org/adk/model/gemini"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/functiontool"
	"google.golang.org/genai"
)

type files struct{}

func (files) Name() string { return "files" }

func (files) Tools(agent.ReadonlyContext) ([]tool.Tool, error) {
	var all []tool.Tool
	for _, name := range []string{"read_file", "write_file", "list_files"} {
		t, err := functiontool.New(functiontool.Config{Name: name, Description: "Does " + name + "."},
			func(_ tool.Context, args map[string]any) (map[string]any, error) {
				return map[string]any{"did": name}, nil
			})
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

func main() {
	ctx := context.Background()
	llm, err := gemini.NewModel(ctx, "gemini-2.5-flash", &genai.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	var declared [][]string // of each request of the newest run
	a, err := llmagent.New(llmagent.Config{
		Name: "reader", Model: llm,
		Toolsets: []tool.Toolset{tool.FilterToolset(files{}, tool.StringPredicate([]string{"read_file", "list_files"}))},
		BeforeModelCallbacks: []llmagent.BeforeModelCallback{func(_ agent.CallbackContext, req *model.LLMRequest) (*model.LLMResponse, error) {
			var names []string
			for _, t := range req.Config.Tools {
				for _, d := range t.FunctionDeclarations {
					names = append(names, d.Name)
				}
			}
			slices.Sort(names)
			declared = append(declared, names)
			return nil, nil
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "files", Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true})
	if err != nil {
		log.Fatal(err)
	}
	for _, text := range []string{"use read_file", "use write_file"} {
		declared = nil
		for event, err := range r.Run(ctx, "u", "s", genai.NewContentFromText(text, genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				log.Fatal(err)
			}
			for _, p := range event.Content.Parts {
				if fr := p.FunctionResponse; fr != nil {
					_, failed := fr.Response["error"]
					fmt.Println(fr.Name, "did:", fr.Response["did"], "failed:", failed)
				}
			}
		}
		fmt.Println("declared:", declared)
	}
}
