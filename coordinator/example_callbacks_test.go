package coordinator_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model/gemini"
	"github.com/toolfabric/toolfabric/toolkit/plugin"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// askAboveLimit holds payments above a limit until somebody agrees.
func askAboveLimit(ctx agent.Context, t tool.Tool, args map[string]any) (map[string]any, error) {
	amount, _ := args["amount"].(float64)
	if t.Name() != "pay" || amount <= 100 || ctx.ToolConfirmation() != nil {
		return nil, nil // it goes on; where people were asked, as they decided
	}
	return nil, ctx.RequestConfirmation(fmt.Sprintf("Pay %v?", amount), nil)
}

// advise tells the model what it can do about a failure.
func advise(_ agent.Context, t tool.Tool, _ map[string]any, err error) (map[string]any, error) {
	return map[string]any{"error": err.Error(), "advice": "try " + t.Name() + " with other arguments, or tell the user"}, nil
}

func coordinate() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	conn, err := natswire.Connect(ctx, natswire.Config{URL: os.Getenv("TOOLFABRIC_NATS")})
	if err != nil {
		return err
	}
	defer conn.Close()
	llm, err := gemini.NewModel(ctx, "gemini-2.5-flash", &genai.ClientConfig{})
	if err != nil {
		return err
	}
	clerk, err := llmagent.New(llmagent.Config{
		Name: "clerk", Model: llm, Tools: []tool.Tool{tool.Pool("pay")},
		BeforeToolCallbacks: []llmagent.BeforeToolCallback{askAboveLimit},
	})
	if err != nil {
		return err
	}
	advice, err := plugin.New(plugin.Config{Name: "advice", OnToolErrorCallback: advise})
	if err != nil {
		return err
	}
	c, err := coordinator.New(coordinator.Config{Bus: conn, Names: conn.Names(), Agents: []agent.Agent{clerk}, Plugins: []*plugin.Plugin{advice}})
	if err != nil {
		return err
	}
	return c.Run(ctx) // until an interrupt
}

func Example_callbacks() {
	if err := coordinate(); err != nil {
		log.Fatal(err)
	}
}
