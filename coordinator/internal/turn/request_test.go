package turn

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
)

func TestRequests(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	tools := []Offer{
		offer("zeta", func(d *protocol.Declaration) {
			d.Parameters = json.RawMessage(`{"type":"object","properties":{"b":{"$ref":"#/$defs/x"},"a":{"type":["string","null"]}},"$defs":{"x":{"type":"integer"}}}`)
		}),
		offer("alpha", nil),
	}
	for _, c := range []struct {
		name   string
		change func(*llmagent.Config)
		tools  []Offer
	}{
		{"plain", nil, nil},
		{"tools", func(c *llmagent.Config) {
			c.Description, c.GlobalInstruction, c.Instruction = "helps", "Speak to {user:name}.", "Round {n}, {temp:gone?}done."
			c.GenerateContentConfig = &genai.GenerateContentConfig{Temperature: new(float32(0.5)), MaxOutputTokens: 100}
		}, tools},
		{"schema", func(c *llmagent.Config) { c.OutputJSONSchema = schema }, nil},
		{"schema_and_tools", func(c *llmagent.Config) { c.OutputJSONSchema = schema }, tools},
		{"one_run", func(c *llmagent.Config) { c.IncludeContents = llmagent.IncludeContentsNone }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := logOf(said("hello"), join(asked(1, "hi"), stopped(protocol.StopDone)), said("count"), asked(3, "alpha#1:c1"))
			run := Run{App: "helper", User: "ada", Session: "s1", State: map[string]json.RawMessage{"user:name": json.RawMessage(`"Ada"`), "n": json.RawMessage(`12`)}}
			req, err := h.Request(t.Context(), newAgent(t, c.change), run, c.tools, []protocol.Answer{answer("c1", `{"n":1}`)})
			if err != nil {
				t.Fatal(err)
			}
			raw, err := encode(req)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := json.Indent(&got, raw, "", "  "); err != nil {
				t.Fatal(err)
			}
			golden := "testdata/request_" + c.name + ".json"
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARequestLeavesTheAgentAsItIs(t *testing.T) {
	settings := &genai.GenerateContentConfig{TopK: new(float32(3))}
	a := newAgent(t, func(c *llmagent.Config) { c.GenerateContentConfig = settings })
	if _, err := logOf(said("go")).Request(t.Context(), a, Run{}, []Offer{offer("a", nil)}, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&genai.GenerateContentConfig{TopK: new(float32(3))}, settings); diff != "" {
		t.Errorf("the agent's settings changed:\n%s", diff)
	}
}

func TestProvidersSeeTheRun(t *testing.T) {
	a := newAgent(t, func(c *llmagent.Config) {
		c.InstructionProvider = func(ctx agent.ReadonlyContext) (string, error) {
			n, err := ctx.ReadonlyState().Get("n")
			keys := 0
			for range ctx.ReadonlyState().All() {
				keys++
			}
			if n != json.Number("12") || err != nil || keys != 1 {
				t.Errorf("state n is %v, %v, of %d keys", n, err, keys)
			}
			return strings.Join([]string{ctx.AppName(), ctx.UserID(), ctx.SessionID(), ctx.InvocationID(), ctx.AgentName(), ctx.UserContent().Parts[0].Text}, "/"), ctx.Err()
		}
	})
	run := Run{App: "app", User: "ada", Session: "s1", Invocation: "r1", State: map[string]json.RawMessage{"n": json.RawMessage(`12`), "broken": json.RawMessage(`{`)}}
	req, err := logOf(said("go")).Request(t.Context(), a, run, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := req.Config.SystemInstruction.Parts[0].Text; !strings.HasPrefix(got, "app/ada/s1/r1/helper/go\n") {
		t.Errorf("instruction %q", got)
	}
}

func TestRequestsThatCannotBeMade(t *testing.T) {
	needy := newAgent(t, func(c *llmagent.Config) { c.Instruction = "{gone}" })
	for name, c := range map[string]struct {
		history *History
		agent   *llmagent.LLMAgent
		code    protocol.Code
	}{
		"empty log":            {logOf(), newAgent(t, nil), protocol.CodeInternal},
		"nothing to answer":    {logOf(said("go"), asked(1, "done")), newAgent(t, nil), protocol.CodeInternal},
		"missing state":        {logOf(said("go")), needy, protocol.CodeModelFailed},
		"unreadable recording": {logOf(protocol.Event{Turn: &protocol.Turn{Content: json.RawMessage(`1`)}}), newAgent(t, nil), protocol.CodeInternal},
	} {
		if _, err := c.history.Request(t.Context(), c.agent, Run{}, nil, nil); protocol.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
}

func TestMessagesAreCheckedAtTheDoor(t *testing.T) {
	for raw, fault := range map[string]string{
		`{"role":"user","parts":[{"text":"hi"}]}`:                                        "",
		`{"parts":[{"inlineData":{"mimeType":"image/png","data":"AQ=="}}]}`:              "",
		`{"role":"model","parts":[{"text":"hi"}]}`:                                       "/content/role",
		`{"role":"user","parts":[{"text":"hi"},{"functionCall":{"name":"a"}}]}`:          "/content/parts/1",
		`{"role":"user","parts":[{"functionResponse":{"name":"a","response":{"n":1}}}]}`: "/content/parts/0",
		`{"role":"user","parts":[{"text":""},{},null]}`:                                  "empty",
		`{"role":"user"}`:                      "empty",
		`"hi"`:                                 "genai.Content",
		`{"role":"user","parts":[{"text":1}]}`: "genai.Content",
		`{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"!!!"}}]}`:  "genai.Content",
		`{"role":"user","parts":[{"text":"hi"}]} {"role":"user","parts":[{"text":"hi"}]}`: "genai.Content",
	} {
		err := CheckMessage(json.RawMessage(raw))
		if fault == "" {
			if err != nil {
				t.Errorf("%s: %v", raw, err)
			}
			continue
		}
		if protocol.CodeOf(err) != protocol.CodeBadMessage || !strings.Contains(err.Error(), fault) {
			t.Errorf("%s: %v, want %q", raw, err, fault)
		}
	}
}
