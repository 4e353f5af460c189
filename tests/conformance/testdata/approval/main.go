// Vacation approval behind WithConfirmation: only long vacations are asked about.
package main

import (
	"context"
	"fmt"
	"log"

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

type vacationArgs struct {
	Days int `json:"days"`
}

type vacationResult struct {
	Booked int `json:"booked"`
}

// vacationTools is a toolset of one's own.
type vacationTools struct{ tools []tool.Tool }

func (vacationTools) Name() string { return "vacation" }

func (v vacationTools) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { return v.tools, nil }

func longOnly(name string, input any) bool {
	days, _ := input.(map[string]any)["days"].(float64)
	return name == "book_vacation" && days > 3
}

func main() {
	ctx := context.Background()
	model, err := gemini.NewModel(ctx, "gemini-2.5-flash", &genai.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	book, err := functiontool.New(functiontool.Config{Name: "book_vacation", Description: "Books days off."},
		func(_ tool.Context, args vacationArgs) (vacationResult, error) {
			return vacationResult{Booked: args.Days}, nil
		})
	if err != nil {
		log.Fatal(err)
	}
	set := tool.WithConfirmation(vacationTools{[]tool.Tool{book}}, false, longOnly)
	a, err := llmagent.New(llmagent.Config{Name: "planner", Model: model, Toolsets: []tool.Toolset{set}})
	if err != nil {
		log.Fatal(err)
	}
	sessions := session.InMemoryService()
	created, err := sessions.Create(ctx, &session.CreateRequest{AppName: "vacation", UserID: "u"})
	if err != nil {
		log.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "vacation", Agent: a, SessionService: sessions})
	if err != nil {
		log.Fatal(err)
	}
	say := func(msg *genai.Content) (question *genai.FunctionCall) {
		for event, err := range r.Run(ctx, "u", created.Session.ID(), msg, agent.RunConfig{}) {
			if err != nil {
				log.Fatal(err)
			}
			for _, p := range event.Content.Parts {
				switch {
				case p.FunctionCall != nil && p.FunctionCall.Name == toolconfirmation.FunctionCallName:
					question = p.FunctionCall
					fmt.Println("asked")
				case p.FunctionResponse != nil:
					fmt.Println("response", p.FunctionResponse.Response)
				case p.Text != "":
					fmt.Println("answer", p.Text)
				}
			}
		}
		return question
	}
	say(genai.NewContentFromText("book 2 days", genai.RoleUser))
	question := say(genai.NewContentFromText("book 10 days", genai.RoleUser))
	say(&genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
		ID: question.ID, Name: question.Name, Response: map[string]any{"confirmed": true},
	}}}})
}
