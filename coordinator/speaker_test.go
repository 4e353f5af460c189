package coordinator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

func calling(name string, args map[string]any) *genai.Part {
	return &genai.Part{FunctionCall: &genai.FunctionCall{Name: name, Args: args}}
}

// handsOver is a model that hands every run over to an agent.
func handsOver(to string) *oracle {
	return &oracle{answer: func(context.Context, *model.LLMRequest) ([]*genai.Part, error) {
		return []*genai.Part{calling(llmagent.TransferTool, map[string]any{"agent_name": to})}, nil
	}}
}

func (f *fabric) speakers(app, session string) string {
	f.Helper()
	var all []string
	for _, e := range f.log(app, session) {
		if e.Turn != nil {
			all = append(all, e.Turn.Agent)
		}
	}
	return strings.Join(all, " ")
}

func TestTheLimitsAreThoseOfTheAgentThatSpeaks(t *testing.T) {
	for name, c := range map[string]struct {
		root, sub llmagent.Limits
		after     time.Duration // of the sub-agent's model
		problem   string
	}{
		"its time, from the input on":       {sub: llmagent.Limits{WallTime: 5 * time.Second}, after: time.Minute, problem: "has taken longer than 5s"},
		"not the time of who spoke before":  {root: llmagent.Limits{WallTime: 5 * time.Second}, after: 10 * time.Second},
		"its model calls, of the whole run": {sub: llmagent.Limits{ModelCalls: 1}, problem: "the run has asked the model once"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fabric) {
				sub := f.agent(llmagent.Config{Name: "sub", Model: says("done", c.after), Limits: c.sub})
				f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "root", Model: handsOver("sub"), Limits: c.root, SubAgents: []agent.Agent{sub}})}})
				f.say("root", "s1", "hi")
				s := f.rests("root", "s1", 2*time.Minute)
				switch {
				case c.problem == "" && s.Problem != nil, c.problem != "" && (s.Problem == nil || !strings.Contains(s.Problem.Message, c.problem)):
					t.Errorf("it ended as %+v, want %q", s.Problem, c.problem)
				}
			})
		})
	}
}

func TestTheRootSpeaksForAnAgentThatIsGoneAndSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		sub := f.agent(llmagent.Config{Name: "sub", Model: says("never", time.Hour)})
		_, stop := f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "root", Model: handsOver("sub"), SubAgents: []agent.Agent{sub}})}})
		f.say("root", "s1", "hi")
		f.until(time.Second, "the transfer", func() bool { return f.speakers("root", "s1") == "root" })
		stop() // while the sub-agent is asked
		f.start("c2", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "root", Model: says("alone", 0)})}})
		if s := f.rests("root", "s1", time.Minute); s.Kind != protocol.StopDone || s.Problem != nil {
			t.Errorf("it ended as %+v", s)
		}
		if got := f.speakers("root", "s1"); got != "root root" {
			t.Errorf("who spoke: %s", got)
		}
		if f.logs.count("not among the app's any more") != 1 {
			t.Errorf("the log has %v", f.logs.lines)
		}
	})
}

// The answers of a turn that ends its run go into the log with its stop, as large as they may be.
func TestLargeResultsOfATurnThatEndsTheRunFitTheLog(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fabric) {
		const calls = 8
		llm := &oracle{answer: func(context.Context, *model.LLMRequest) ([]*genai.Part, error) {
			var parts []*genai.Part
			for range calls {
				parts = append(parts, calling("hash", nil))
			}
			return parts, nil
		}}
		f.beat("w1", declaration("hash", "Hashes"))
		f.start("c1", coordinator.Config{Agents: []agent.Agent{f.agent(llmagent.Config{Name: "root", Model: llm, Tools: pools("hash")})}})
		f.say("root", "s1", "hi")
		f.until(time.Second, "the turn", func() bool { return f.speakers("root", "s1") == "root" })
		for _, e := range f.log("root", "s1") {
			if e.Turn == nil {
				continue
			}
			for _, c := range e.Turn.Calls {
				r := protocol.Result{V: protocol.Version, Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(fmt.Sprintf(`{"r":"%0*d"}`, 120<<10, 0)),
					Worker: "w1", Attempt: 1, Actions: &protocol.Actions{SkipSummarization: true}}
				data, err := protocol.Encode(r)
				if err != nil {
					t.Fatal(err)
				}
				f.publish(natswire.Msg{Subject: f.names.ResultSubject("hash", "s1", c.ID, 0), Data: data})
			}
		}
		if s := f.rests("root", "s1", time.Minute); s.Kind != protocol.StopDone || s.Problem != nil {
			t.Errorf("it ended as %+v", s)
		}
		log := f.log("root", "s1")
		if last := log[len(log)-1]; len(last.Answers) != calls || last.Turn != nil {
			t.Errorf("the last event has %d answers and the turn %v", len(last.Answers), last.Turn)
		}
		if n, _ := llm.requests(); n != 1 {
			t.Errorf("the model was asked %d times", n)
		}
	})
}
