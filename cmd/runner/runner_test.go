package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/cmd/runner"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
	"github.com/toolfabric/toolfabric/toolkit/session"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func script(t *testing.T, text string) model.LLM {
	t.Helper()
	s, err := scripted.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return scripted.New("scripted", s)
}

func newAgent(t *testing.T, name string, llm model.LLM, tools ...tool.Tool) agent.Agent {
	t.Helper()
	a, err := llmagent.New(llmagent.Config{Name: name, Model: llm, Instruction: "Use the tools.", Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func function[A, R any](t *testing.T, cfg functiontool.Config, f functiontool.Func[A, R]) tool.Tool {
	t.Helper()
	made, err := functiontool.New(cfg, f)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func newRunner(t *testing.T, cfg runner.Config) *runner.Runner {
	t.Helper()
	r, err := runner.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// begin creates a session.
func begin(t *testing.T, s session.Service, req session.CreateRequest) session.Session {
	t.Helper()
	resp, err := s.Create(t.Context(), &req)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Session
}

// run collects what a run yields.
func run(ctx context.Context, r *runner.Runner, user, id string, msg *genai.Content, cfg agent.RunConfig, opts ...runner.RunOption) ([]*session.Event, error) {
	var events []*session.Event
	for ev, err := range r.Run(ctx, user, id, msg, cfg, opts...) {
		if err != nil {
			return events, err
		}
		events = append(events, ev)
	}
	return events, nil
}

func say(text string) *genai.Content { return genai.NewContentFromText(text, genai.RoleUser) }

// lines is what people see of events.
func lines(events []*session.Event) string {
	var b strings.Builder
	for _, ev := range events {
		fmt.Fprintf(&b, "%s:", ev.Author)
		if ev.Partial {
			b.WriteString(" partial")
		}
		for _, p := range ev.Content.Parts {
			switch {
			case p.FunctionCall != nil:
				args, _ := json.Marshal(p.FunctionCall.Args)
				if p.FunctionCall.Name == "adk_request_confirmation" {
					args = nil
				}
				fmt.Fprintf(&b, " FC(%s %s)", p.FunctionCall.Name, args)
			case p.FunctionResponse != nil:
				response, _ := json.Marshal(p.FunctionResponse.Response)
				fmt.Fprintf(&b, " FR(%s %s)", p.FunctionResponse.Name, response)
			default:
				fmt.Fprintf(&b, " T(%s)", p.Text)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

type sumArgs struct {
	A int `json:"a"`
	B int `json:"b"`
}

type sumResult struct {
	Sum int `json:"sum"`
}

func sum(_ tool.Context, in sumArgs) (sumResult, error) { return sumResult{in.A + in.B}, nil }

const sumScript = `
rules:
  - user: '(?P<a>\d+) and (?P<b>\d+)'
    calls: [{tool: sum, args: {a: {json: '{{ .a }}'}, b: {json: '{{ .b }}'}}}]
  - after: [sum]
    text: 'It is {{ (index .results.sum 0).value.sum }}.'
`

func TestRunYieldsTheEventsOfARun(t *testing.T) {
	t.Parallel()
	service := session.InMemoryService()
	r := newRunner(t, runner.Config{AppName: "sums", Agent: newAgent(t, "adder", script(t, sumScript), function(t, functiontool.Config{Name: "sum"}, sum)), SessionService: service})
	s := begin(t, service, session.CreateRequest{AppName: "sums", UserID: "u"})
	events, err := run(t.Context(), r, "u", s.ID(), say("add 2 and 3"), agent.RunConfig{})
	if err != nil {
		t.Fatal(err)
	}
	want := "adder: FC(sum {\"a\":2,\"b\":3})\nadder: FR(sum {\"sum\":5})\nadder: T(It is 5.)\n"
	if got := lines(events); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	if !events[2].IsFinalResponse() || events[0].IsFinalResponse() || events[1].IsFinalResponse() {
		t.Error("the last event, and no other, is a final response")
	}
	if _, err := run(t.Context(), r, "u", "nobody", say("add 2 and 3"), agent.RunConfig{}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a session that nobody created: %v", err)
	}
}
