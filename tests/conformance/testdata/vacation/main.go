// The vacation example: a tool that asks by itself and is told how many days a manager grants.
package main

import (
	"context"
	"encoding/json"
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

type requestArgs struct {
	Days   int    `json:"days"`
	UserID string `json:"user_id"`
}

type grant struct {
	DaysApproved int `json:"days_approved"`
}

type requestResult struct {
	Status       string `json:"status"`
	DaysApproved int    `json:"days_approved"`
}

func request(ctx tool.Context, args requestArgs) (*requestResult, error) {
	if args.Days <= 0 {
		return nil, fmt.Errorf("invalid days to request %d", args.Days)
	}
	word := ctx.ToolConfirmation()
	if word == nil {
		if err := ctx.RequestConfirmation("Please approve or reject the time off.", grant{}); err != nil {
			return nil, err
		}
		return &requestResult{Status: "Manager approval is required."}, nil
	}
	if !word.Confirmed {
		return &requestResult{Status: "The time off request is rejected."}, nil
	}
	raw, err := json.Marshal(word.Payload)
	if err != nil {
		return nil, err
	}
	var g grant
	if err := json.Unmarshal(raw, &g); err != nil {
		return nil, err
	}
	return &requestResult{Status: "The time off request is accepted.", DaysApproved: min(g.DaysApproved, args.Days)}, nil
}

func main() {
	ctx := context.Background()
	model, err := gemini.NewModel(ctx, "gemini-2.5-flash", &genai.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	vacation, err := functiontool.New(functiontool.Config{Name: "request_vacation_days", Description: "Requests vacation days for a user."}, request)
	if err != nil {
		log.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{
		Name: "vacation_agent", Model: model, Tools: []tool.Tool{vacation},
		Instruction: "You are a helpful assistant for requesting vacation days.",
	})
	if err != nil {
		log.Fatal(err)
	}
	sessions := session.InMemoryService()
	created, err := sessions.Create(ctx, &session.CreateRequest{AppName: "console_app", UserID: "user"})
	if err != nil {
		log.Fatal(err)
	}
	question := turn(ctx, a, sessions, created.Session.ID(), genai.NewContentFromText("I want 5 days off", genai.RoleUser))
	turn(ctx, a, sessions, created.Session.ID(), answer(question, true, grant{DaysApproved: 3}))
	question = turn(ctx, a, sessions, created.Session.ID(), genai.NewContentFromText("I want 9 days off", genai.RoleUser))
	turn(ctx, a, sessions, created.Session.ID(), answer(question, false, grant{}))
}

func answer(question *genai.FunctionCall, approved bool, payload grant) *genai.Content {
	return &genai.Content{Role: string(genai.RoleUser), Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
		Name: toolconfirmation.FunctionCallName, ID: question.ID,
		Response: map[string]any{"confirmed": approved, "payload": payload},
	}}}}
}

// turn makes a runner of its own each time, as programs with a menu do.
func turn(ctx context.Context, a agent.Agent, sessions session.Service, id string, msg *genai.Content) (question *genai.FunctionCall) {
	r, err := runner.New(runner.Config{AppName: "console_app", Agent: a, SessionService: sessions})
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range r.Run(ctx, "user", id, msg, agent.RunConfig{StreamingMode: agent.StreamingModeNone}) {
		if err != nil {
			fmt.Printf("AGENT_ERROR: %v\n", err)
			continue
		}
		if event.LLMResponse.Content == nil {
			continue
		}
		for _, part := range event.LLMResponse.Content.Parts {
			if part.Text != "" {
				fmt.Printf("[%s_TEXT]: %s\n", event.Author, part.Text)
			}
			if fc := part.FunctionCall; fc != nil {
				if fc.Name == toolconfirmation.FunctionCallName {
					question = fc
					fmt.Printf("[%s_CALL]: %s\n", event.Author, fc.Name)
					continue
				}
				fmt.Printf("[%s_CALL]: %s(%v)\n", event.Author, fc.Name, fc.Args)
			}
			if fr := part.FunctionResponse; fr != nil {
				fmt.Printf("[%s_RESPONSE]: %s(%v)\n", event.Author, fr.Name, fr.Response)
			}
		}
	}
	return question
}
