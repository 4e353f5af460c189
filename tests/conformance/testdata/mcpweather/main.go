// Weather over MCP: the server is in the same process.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/cmd/launcher"
	"google.golang.org/adk/cmd/launcher/full"
	"google.golang.org/adk/model/gemini"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/mcptoolset"
	"google.golang.org/genai"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type input struct {
	City string `json:"city" jsonschema:"the name of the city"`
}

type output struct {
	Summary string `json:"weather_summary" jsonschema:"the weather in the city"`
}

func weather(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, output, error) {
	return nil, output{Summary: fmt.Sprintf("Today in %q is sunny", in.City)}, nil
}

func main() {
	ctx := context.Background()
	clientTransport, serverTransport := mcp.NewInMemoryTransports()
	server := mcp.NewServer(&mcp.Implementation{Name: "weather_server", Version: "v1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "get_weather", Description: "Returns the weather in a city."}, weather)
	if _, err := server.Connect(ctx, serverTransport, nil); err != nil {
		log.Fatal(err)
	}
	set, err := mcptoolset.New(mcptoolset.Config{Transport: clientTransport})
	if err != nil {
		log.Fatal(err)
	}
	model, err := gemini.NewModel(ctx, "gemini-2.5-flash", &genai.ClientConfig{APIKey: os.Getenv("GOOGLE_API_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{
		Name: "helper_agent", Model: model, Description: "Tells the weather.",
		Instruction: "You tell the weather.", Toolsets: []tool.Toolset{set},
	})
	if err != nil {
		log.Fatal(err)
	}
	l := full.NewLauncher()
	if err := l.Execute(ctx, &launcher.Config{AgentLoader: agent.NewSingleLoader(a)}, os.Args[1:]); err != nil {
		log.Fatalf("run: %v\n\n%s", err, l.CommandLineSyntax())
	}
}
