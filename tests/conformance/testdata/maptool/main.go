// A tool on maps, and a runner whose events are printed.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/model/gemini"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/functiontool"
	"google.golang.org/genai"
)

func main() {
	ctx := context.Background()
	model, err := gemini.NewModel(ctx, "gemini-2.5-flash", &genai.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	upper, err := functiontool.New(functiontool.Config{Name: "upper", Description: "Writes values in capitals."},
		func(ctx tool.Context, in map[string]any) (map[string]any, error) {
			out := map[string]any{"user": ctx.UserID(), "session": ctx.SessionID()}
			for key, v := range in {
				text, ok := v.(string)
				if !ok {
					return nil, fmt.Errorf("%s is a %T, not a text", key, v)
				}
				out[key] = strings.ToUpper(text)
			}
			return out, ctx.State().Set("last", in["word"])
		})
	if err != nil {
		log.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{Name: "shouter", Model: model, Instruction: "Shout.", Tools: []tool.Tool{upper}})
	if err != nil {
		log.Fatal(err)
	}
	sessions := session.InMemoryService()
	created, err := sessions.Create(ctx, &session.CreateRequest{AppName: "shouting", UserID: "ann@example.com", SessionID: "first"})
	if err != nil {
		log.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "shouting", Agent: a, SessionService: sessions})
	if err != nil {
		log.Fatal(err)
	}
	for _, text := range []string{"shout hello", "shout 7"} {
		for event, err := range r.Run(ctx, "ann@example.com", created.Session.ID(), genai.NewContentFromText(text, genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				log.Fatal(err)
			}
			for _, p := range event.Content.Parts {
				switch {
				case p.FunctionCall != nil:
					fmt.Printf("[%s] calls %s(%v)\n", event.Author, p.FunctionCall.Name, p.FunctionCall.Args)
				case p.FunctionResponse != nil:
					fmt.Printf("[%s] got %v\n", event.Author, p.FunctionResponse.Response)
				default:
					fmt.Printf("[%s] says %s (final: %v)\n", event.Author, p.Text, event.IsFinalResponse())
				}
			}
		}
	}
	got, err := sessions.Get(ctx, &session.GetRequest{AppName: "shouting", UserID: "ann@example.com", SessionID: "first"})
	if err != nil {
		log.Fatal(err)
	}
	last, err := got.Session.State().Get("last")
	fmt.Println("events:", got.Session.Events().Len(), "last:", last, err)
}
