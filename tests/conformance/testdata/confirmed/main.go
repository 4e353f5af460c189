// A tool that a person must agree to: once yes, once no, and an answer that comes twice.
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

type refundArgs struct {
	Order string `json:"order"`
}

type refundResult struct {
	Refunded string `json:"refunded"`
}

func main() {
	ctx := context.Background()
	model, err := gemini.NewModel(ctx, "gemini-2.5-flash", &genai.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	refund, err := functiontool.New(functiontool.Config{Name: "refund", Description: "Refunds an order.", RequireConfirmation: true},
		func(_ tool.Context, args refundArgs) (refundResult, error) {
			fmt.Println("the tool refunds", args.Order)
			return refundResult{Refunded: args.Order}, nil
		})
	if err != nil {
		log.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{Name: "clerk", Model: model, Tools: []tool.Tool{refund}})
	if err != nil {
		log.Fatal(err)
	}
	sessions := session.InMemoryService()
	created, err := sessions.Create(ctx, &session.CreateRequest{AppName: "shop", UserID: "u"})
	if err != nil {
		log.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "shop", Agent: a, SessionService: sessions})
	if err != nil {
		log.Fatal(err)
	}
	say := func(msg *genai.Content) (question *genai.FunctionCall) {
		for event, err := range r.Run(ctx, "u", created.Session.ID(), msg, agent.RunConfig{}) {
			if err != nil {
				fmt.Println("error:", err != nil)
				continue
			}
			for _, p := range event.Content.Parts {
				switch {
				case p.FunctionCall != nil && p.FunctionCall.Name == toolconfirmation.FunctionCallName:
					question = p.FunctionCall
					original, err := toolconfirmation.OriginalCallFrom(question)
					if err != nil {
						log.Fatal(err)
					}
					fmt.Printf("asked about %s(%v), final: %v\n", original.Name, original.Args, event.IsFinalResponse())
				case p.FunctionCall != nil:
					fmt.Printf("call of %s\n", p.FunctionCall.Name)
				case p.FunctionResponse != nil:
					fmt.Printf("response %v\n", p.FunctionResponse.Response)
				default:
					fmt.Printf("answer %s\n", p.Text)
				}
			}
		}
		return question
	}
	answer := func(question *genai.FunctionCall, confirmed bool) *genai.Content {
		return &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
			ID: question.ID, Name: question.Name, Response: map[string]any{"confirmed": confirmed},
		}}}}
	}
	first := say(genai.NewContentFromText("refund o-1", genai.RoleUser))
	say(answer(first, true))
	fmt.Println("once more:")
	say(answer(first, true))
	second := say(genai.NewContentFromText("refund o-2", genai.RoleUser))
	say(answer(second, false))
}
