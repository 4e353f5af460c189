// A program that is killed while it waits for a person, and goes on when it is started again with the same data.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/model/gemini"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/functiontool"
	"google.golang.org/adk/tool/toolconfirmation"
	"google.golang.org/genai"
)

type deployArgs struct {
	Version string `json:"version"`
}

func main() {
	ctx := context.Background()
	model, err := gemini.NewModel(ctx, "gemini-2.5-flash", &genai.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	deploy, err := functiontool.New(functiontool.Config{Name: "deploy", Description: "Deploys a version.", RequireConfirmation: true},
		func(_ tool.Context, args deployArgs) (string, error) {
			fmt.Println("the tool deploys", args.Version)
			return "deployed", nil
		})
	if err != nil {
		log.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{Name: "operator", Model: model, Tools: []tool.Tool{deploy}})
	if err != nil {
		log.Fatal(err)
	}
	sessions := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "ops", Agent: a, SessionService: sessions, AutoCreateSession: true})
	if err != nil {
		log.Fatal(err)
	}
	msg := genai.NewContentFromText("deploy v7", genai.RoleUser)
	if before, err := sessions.Get(ctx, &session.GetRequest{AppName: "ops", UserID: "u", SessionID: "release"}); err == nil {
		fmt.Println("the session has", before.Session.Events().Len(), "events")
		for event := range before.Session.Events().All() {
			for _, p := range event.Content.Parts {
				if p.FunctionCall != nil && p.FunctionCall.Name == toolconfirmation.FunctionCallName {
					msg = &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
						ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Response: map[string]any{"confirmed": true},
					}}}}
				}
			}
		}
	}
	for event, err := range r.Run(ctx, "u", "release", msg, agent.RunConfig{}) {
		if err != nil {
			log.Fatal(err)
		}
		for _, p := range event.Content.Parts {
			switch {
			case p.FunctionCall != nil && p.FunctionCall.Name == toolconfirmation.FunctionCallName:
				fmt.Println("asked, and killed")
				self, err := os.FindProcess(os.Getpid())
				if err != nil {
					log.Fatal(err)
				}
				_ = self.Kill()
				select {}
			case p.FunctionCall != nil:
				fmt.Println("call of", p.FunctionCall.Name)
			case p.Text != "":
				fmt.Println("answer:", p.Text)
			}
		}
	}
}
