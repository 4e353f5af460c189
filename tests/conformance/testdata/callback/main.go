// Callbacks before and after tools and models.
package main

import (
	"context"
	"fmt"
	"log"

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

func main() {
	ctx := context.Background()
	llm, err := gemini.NewModel(ctx, "gemini-2.5-flash", &genai.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	lookup, err := functiontool.New(functiontool.Config{Name: "lookup", Description: "Looks a city up."},
		func(_ tool.Context, args map[string]any) (map[string]any, error) {
			fmt.Println("the tool looks up", args["city"])
			return map[string]any{"from": "tool"}, nil
		})
	if err != nil {
		log.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{
		Name: "guide", Model: llm, Tools: []tool.Tool{lookup},
		BeforeToolCallbacks: []llmagent.BeforeToolCallback{func(_ tool.Context, t tool.Tool, args map[string]any) (map[string]any, error) {
			if args["city"] == "Atlantis" {
				return map[string]any{"from": "callback before " + t.Name()}, nil
			}
			return nil, nil
		}},
		AfterToolCallbacks: []llmagent.AfterToolCallback{func(_ tool.Context, _ tool.Tool, args, result map[string]any, err error) (map[string]any, error) {
			if args["city"] == "Paris" && err == nil {
				return map[string]any{"from": fmt.Sprint(result["from"], " and callback after")}, nil
			}
			return nil, nil
		}},
		BeforeModelCallbacks: []llmagent.BeforeModelCallback{func(ctx agent.CallbackContext, _ *model.LLMRequest) (*model.LLMResponse, error) {
			if c := ctx.UserContent(); c != nil && c.Parts[0].Text == "be quiet" {
				return &model.LLMResponse{Content: genai.NewContentFromText("(silence)", genai.RoleModel)}, nil
			}
			return nil, nil
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "guide", Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true})
	if err != nil {
		log.Fatal(err)
	}
	for _, text := range []string{"city: Rome", "city: Paris", "city: Atlantis", "be quiet"} {
		for event, err := range r.Run(ctx, "u", "s", genai.NewContentFromText(text, genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				log.Fatal(err)
			}
			for _, p := range event.Content.Parts {
				switch {
				case p.FunctionResponse != nil:
					fmt.Println("response", p.FunctionResponse.Response)
				case p.Text != "":
					fmt.Println("answer", p.Text)
				}
			}
		}
	}
}
