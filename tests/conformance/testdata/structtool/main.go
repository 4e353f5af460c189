// An agent with a tool on a struct, in the terminal.
package main

import (
	"context"
	"log"
	"os"
	"strings"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/cmd/launcher"
	"google.golang.org/adk/cmd/launcher/full"
	"google.golang.org/adk/model/gemini"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/functiontool"
	"google.golang.org/genai"
)

type countArgs struct {
	Text string `json:"text" jsonschema:"the text whose words are counted"`
}

type countResult struct {
	Words int `json:"words"`
}

func count(_ tool.Context, args countArgs) (countResult, error) {
	return countResult{Words: len(strings.Fields(args.Text))}, nil
}

func main() {
	ctx := context.Background()
	model, err := gemini.NewModel(ctx, "gemini-2.5-flash", &genai.ClientConfig{APIKey: os.Getenv("GOOGLE_API_KEY")})
	if err != nil {
		log.Fatalf("model: %v", err)
	}
	counter, err := functiontool.New(functiontool.Config{Name: "count_words", Description: "Counts the words of a text."}, count)
	if err != nil {
		log.Fatalf("tool: %v", err)
	}
	a, err := llmagent.New(llmagent.Config{
		Name:        "counter",
		Model:       model,
		Description: "Counts words.",
		Instruction: "Count with the tool, never by yourself.",
		Tools:       []tool.Tool{counter},
	})
	if err != nil {
		log.Fatalf("agent: %v", err)
	}
	config := &launcher.Config{AgentLoader: agent.NewSingleLoader(a)}
	l := full.NewLauncher()
	if err := l.Execute(ctx, config, os.Args[1:]); err != nil {
		log.Fatalf("run: %v\n\n%s", err, l.CommandLineSyntax())
	}
}
