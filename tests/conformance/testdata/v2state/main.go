// A program for adk-go v2: one context for everything, state, and pieces of text as they come.
package main

import (
	"context"
	"fmt"
	"log"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model/gemini"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"
)

type noteArgs struct {
	Text string `json:"text"`
}

func note(ctx agent.Context, args noteArgs) (string, error) {
	n := 0.0
	if v, err := ctx.State().Get("notes"); err == nil {
		n = v.(float64)
	}
	if err := ctx.State().Set("notes", n+1); err != nil {
		return "", err
	}
	return fmt.Sprintf("note %d: %s", int(n)+1, args.Text), nil
}

func main() {
	ctx := context.Background()
	llm, err := gemini.NewModel(ctx, "gemini-2.5-flash", nil)
	if err != nil {
		log.Fatal(err)
	}
	notes, err := functiontool.New(functiontool.Config{Name: "note", Description: "Takes a note."}, note)
	if err != nil {
		log.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{Name: "secretary", Model: llm, Instruction: "You write for {who}.", OutputKey: "answer", Tools: []tool.Tool{notes}})
	if err != nil {
		log.Fatal(err)
	}
	sessions := session.InMemoryService()
	created, err := sessions.Create(ctx, &session.CreateRequest{AppName: "notes", UserID: "u", State: map[string]any{"who": "Ann", "notes": 5}})
	if err != nil {
		log.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "notes", Agent: a, SessionService: sessions})
	if err != nil {
		log.Fatal(err)
	}
	text := ""
	for event, err := range r.Run(ctx, "u", created.Session.ID(), genai.NewContentFromText("note: milk", genai.RoleUser),
		agent.RunConfig{StreamingMode: agent.StreamingModeSSE}, runner.WithStateDelta(map[string]any{"who": "Bob"})) {
		if err != nil {
			log.Fatal(err)
		}
		if event.Content == nil {
			continue
		}
		for _, p := range event.Content.Parts {
			switch {
			case event.Partial:
				text += p.Text
			case p.FunctionResponse != nil:
				fmt.Println("response:", p.FunctionResponse.Response)
			case p.Text != "":
				fmt.Println("whole:", p.Text, "same as its pieces:", p.Text == text)
			}
		}
	}
	got, err := sessions.Get(ctx, &session.GetRequest{AppName: "notes", UserID: "u", SessionID: created.Session.ID()})
	if err != nil {
		log.Fatal(err)
	}
	for key, value := range got.Session.State().All() {
		fmt.Println("state:", key, value)
	}
}
