// A long-running tool: a ticket at once, the result later.
package main

import (
	"context"
	"fmt"
	"log"
	"slices"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/model/gemini"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/functiontool"
	"google.golang.org/genai"
)

type ticketArgs struct {
	Urgency string `json:"urgency" jsonschema:"how urgent it is"`
}

type ticketResult struct {
	Status string `json:"status"`
	Ticket string `json:"ticket_id"`
}

func main() {
	ctx := context.Background()
	model, err := gemini.NewModel(ctx, "gemini-2.5-flash", &genai.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	create, err := functiontool.New(functiontool.Config{Name: "create_ticket", Description: "Opens a ticket.", IsLongRunning: true},
		func(_ tool.Context, args ticketArgs) (ticketResult, error) {
			return ticketResult{Status: "started", Ticket: "T-" + args.Urgency}, nil
		})
	if err != nil {
		log.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{Name: "desk", Model: model, Tools: []tool.Tool{create}})
	if err != nil {
		log.Fatal(err)
	}
	sessions := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "desk", Agent: a, SessionService: sessions, AutoCreateSession: true})
	if err != nil {
		log.Fatal(err)
	}
	var pending *genai.FunctionResponse
	say := func(msg *genai.Content) {
		var long []string
		for event, err := range r.Run(ctx, "u", "s", msg, agent.RunConfig{StreamingMode: agent.StreamingModeNone}) {
			if err != nil {
				fmt.Println("error:", err != nil)
				continue
			}
			long = append(long, event.LongRunningToolIDs...)
			for _, p := range event.Content.Parts {
				if fr := p.FunctionResponse; fr != nil {
					fmt.Printf("%s: %v, long-running: %v\n", fr.Name, fr.Response, slices.Contains(long, fr.ID))
					pending = fr
				}
				if p.Text != "" {
					fmt.Printf("%s: %s\n", event.Author, p.Text)
				}
			}
		}
	}
	say(genai.NewContentFromText("open a ticket: high", genai.RoleUser))
	say(genai.NewContentFromText("and?", genai.RoleUser))
	done := &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
		ID: pending.ID, Name: pending.Name, Response: map[string]any{"status": "resolved", "ticket_id": "T-high"},
	}}}}
	say(done)
	fmt.Println("once more:")
	say(done)
}
