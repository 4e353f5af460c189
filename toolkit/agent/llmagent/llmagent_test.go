package llmagent

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/session"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

type fakeModel struct{ model.LLM }

func (fakeModel) Name() string { return "fake" }

type fakeContext struct {
	agent.ReadonlyContext
	state map[string]any
}

func (c fakeContext) ReadonlyState() session.ReadonlyState { return fakeState(c.state) }

type fakeState map[string]any

func (s fakeState) Get(key string) (any, error) {
	if v, ok := s[key]; ok {
		return v, nil
	}
	return nil, session.ErrStateKeyNotExist
}
func (s fakeState) All() iter.Seq2[string, any] { return nil }

func build(t *testing.T, change func(*Config)) *LLMAgent {
	t.Helper()
	cfg := Config{Name: "helper", Model: fakeModel{}}
	if change != nil {
		change(&cfg)
	}
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a.(*LLMAgent)
}

func TestNewNamesEveryFaultyField(t *testing.T) {
	_, err := New(Config{
		Name: "a b", Instruction: "{artifact.x}", GlobalInstruction: "x",
		InstructionProvider:       func(agent.ReadonlyContext) (string, error) { return "", nil },
		GlobalInstructionProvider: func(agent.ReadonlyContext) (string, error) { return "", nil },
		GenerateContentConfig:     &genai.GenerateContentConfig{CandidateCount: 2},
		IncludeContents:           "some", OutputKey: "app:x", OutputJSONSchema: json.RawMessage(`{"type":12}`),
		Tools: []tool.Tool{tool.Pool("a"), nil, tool.Pool("a"), tool.Pool("b c"), tool.Pool(TransferTool)}, Toolsets: []tool.Toolset{nil},
		SubAgents:            []agent.Agent{build(t, nil), nil, build(t, nil), build(t, func(c *Config) { c.Name, c.SubAgents = "other", []agent.Agent{build(t, nil)} })},
		BeforeAgentCallbacks: []agent.BeforeAgentCallback{nil},
		AfterToolCallbacks: []AfterToolCallback{func(agent.Context, tool.Tool, map[string]any, map[string]any, error) (map[string]any, error) {
			return nil, nil
		}, nil},
		Limits: Limits{ModelCalls: -1},
	})
	var fields []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		fault, _ := errors.AsType[*FieldError](e)
		fields = append(fields, fault.Field)
		if strings.Contains(fault.Error(), "\n") {
			t.Errorf("%s takes several lines: %v", fault.Field, fault)
		}
	}
	want := []string{
		"Name", "Model", "Instruction", "InstructionProvider", "GlobalInstructionProvider", "GenerateContentConfig", "IncludeContents",
		"OutputKey", "OutputSchema", "Tools[1]", "Tools[2]", "Tools[3]", "Tools[4]", "SubAgents[1]", "SubAgents[2]", "SubAgents[3]", "Toolsets[0]", "BeforeAgentCallbacks[0]", "AfterToolCallbacks[1]", "Limits",
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestModelSettingsThatHaveFieldsOfTheirOwnAreRefused(t *testing.T) {
	for name, c := range map[string]genai.GenerateContentConfig{
		"system instruction": {SystemInstruction: &genai.Content{}},
		"tools":              {Tools: []*genai.Tool{{}}},
		"schema":             {ResponseSchema: &genai.Schema{}},
		"json schema":        {ResponseJsonSchema: map[string]any{}},
	} {
		if _, err := New(Config{Name: "a", Model: fakeModel{}, GenerateContentConfig: &c}); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestTemplates(t *testing.T) {
	state := map[string]any{
		"name": "Ada", "n": json.Number("9007199254740993"), "none": nil, "list": []any{json.Number("1"), "x"}, "yes": true,
		"app:x": "A", "user:x": "U", "temp:x": "T",
	}
	for _, c := range []struct{ template, want, fault string }{
		{"Hi {name}!", "Hi Ada!", ""},
		{"{{name}} { name }", "Ada Ada", ""},
		{"{app:x}{user:x}{temp:x}", "AUT", ""},
		{"{n} {yes} {list}", `9007199254740993 true [1,"x"]`, ""},
		{"[{none}][{gone?}][{temp:gone?}]", "[][][]", ""},
		{"{gone}", "", `no key "gone"`},
		{"{other:x} {a-b} {1} {} {\"a\": 1}", "{other:x} {a-b} {1} {} {\"a\": 1}", ""},
		{"{unclosed name}", "{unclosed name}", ""},
	} {
		got, err := fill(c.template, fakeState(state))
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%q: error %v, want %q", c.template, err, c.fault)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%q: %q, %v, want %q", c.template, got, err, c.want)
		}
	}
}

func TestInstructionsAreGlobalThenOwnThenIdentity(t *testing.T) {
	a := build(t, func(c *Config) {
		c.Description, c.GlobalInstruction, c.Instruction = "helps", "Be kind to {name}.", "Count."
	})
	got, err := a.Instructions(fakeContext{state: map[string]any{"name": "Ada"}}, nil)
	want := "Be kind to Ada.\n\nCount.\n\nYou are an agent. Your internal name is \"helper\". The description about you is \"helps\"."
	if err != nil || got != want {
		t.Errorf("%q, %v\nwant %q", got, err, want)
	}
	_, err = a.Instructions(fakeContext{}, nil)
	if protocol.CodeOf(err) != protocol.CodeModelFailed || !strings.Contains(err.Error(), "global instruction") {
		t.Errorf("missing key: %v", err)
	}
}

func TestProvidersBypassTemplates(t *testing.T) {
	a := build(t, func(c *Config) {
		c.InstructionProvider = func(agent.ReadonlyContext) (string, error) { return "Keep {this}.", nil }
	})
	if got, err := a.Instructions(fakeContext{}, nil); err != nil || !strings.HasPrefix(got, "Keep {this}.") {
		t.Errorf("%q, %v", got, err)
	}
	cause := context.Canceled
	a = build(t, func(c *Config) {
		c.InstructionProvider = func(agent.ReadonlyContext) (string, error) { return "", cause }
	})
	if _, err := a.Instructions(fakeContext{}, nil); !errors.Is(err, cause) {
		t.Errorf("a provider's error is lost: %v", err)
	}
}

func TestOutputSchemas(t *testing.T) {
	own := &genai.Schema{
		Type: genai.TypeObject, Required: []string{"n"}, PropertyOrdering: []string{"n"},
		Properties: map[string]*genai.Schema{
			"n":    {Type: genai.TypeInteger, Nullable: new(true)},
			"tags": {Type: genai.TypeArray, Items: &genai.Schema{AnyOf: []*genai.Schema{{Type: genai.TypeString}, {Type: genai.TypeBoolean}}}},
		},
	}
	plain := json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":["integer","null"]},"tags":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"boolean"}]}}}}`)
	for name, a := range map[string]*LLMAgent{
		"genai": build(t, func(c *Config) { c.OutputSchema = own }),
		"json":  build(t, func(c *Config) { c.OutputJSONSchema = plain }),
	} {
		for answer, want := range map[string]string{
			`{"n":9007199254740993}`:                `{"n":9007199254740993}`,
			" {\"n\":null,\"tags\":[\"a\",true]}\n": `{"n":null,"tags":["a",true]}`,
			"```json\n{\"n\":1}\n```":               `{"n":1}`,
			`{"n":"1"}`:                             "",
			`{}`:                                    "",
			`{"n":1,"tags":[1]}`:                    "",
			`{"n":1,"n":2}`:                         "",
			`Here: {"n":1}`:                         "",
			"":                                      "",
		} {
			got, err := a.ParseOutput(answer)
			if string(got) != want || (err == nil) != (want != "") {
				t.Errorf("%s: %q gives %s, %v", name, answer, got, err)
			}
			if err != nil && protocol.CodeOf(err) != protocol.CodeModelFailed {
				t.Errorf("%s: %q: code of %v", name, answer, err)
			}
		}
	}
	if build(t, nil).OutputSchema() != nil {
		t.Error("an agent without an output schema has one")
	}
}

func TestOutputSchemaDoesNotLeaveItsDocument(t *testing.T) {
	_, err := New(Config{Name: "a", Model: fakeModel{}, OutputJSONSchema: json.RawMessage(`{"$ref":"file:///etc/hostname"}`)})
	if err == nil || !strings.Contains(err.Error(), "not followed") {
		t.Errorf("got %v", err)
	}
}

func TestDigestChangesWithTheDefinitionOnly(t *testing.T) {
	first := build(t, nil)
	if again := build(t, func(c *Config) { c.Limits.ModelCalls = DefaultModelCalls }); again.Digest() != first.Digest() {
		t.Error("a default that was written out changed the digest")
	}
	seen := map[string]string{first.Digest(): "nothing"}
	for name, change := range map[string]func(*Config){
		"instruction": func(c *Config) { c.Instruction = "x" },
		"tools":       func(c *Config) { c.Tools = []tool.Tool{tool.Pool("x")} },
		"schema":      func(c *Config) { c.OutputJSONSchema = json.RawMessage(`{"type":"string"}`) },
		"settings":    func(c *Config) { c.GenerateContentConfig = &genai.GenerateContentConfig{TopK: new(float32(1))} },
		"limits":      func(c *Config) { c.Limits.CallsPerTurn = 1 },
		"description": func(c *Config) { c.Description = "x" },
		"sub-agents":  func(c *Config) { c.SubAgents = []agent.Agent{build(t, func(c *Config) { c.Name = "below" })} },
		"no parent":   func(c *Config) { c.DisallowTransferToParent = true },
		"no peers":    func(c *Config) { c.DisallowTransferToPeers = true },
		"callbacks": func(c *Config) {
			c.BeforeAgentCallbacks = []agent.BeforeAgentCallback{func(agent.Context) (*genai.Content, error) { return nil, nil }}
		},
	} {
		d := build(t, change).Digest()
		if other, twice := seen[d]; twice {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[d] = name
	}
}

func TestFindAgentReturnsTheKind(t *testing.T) {
	a := build(t, nil)
	if got, ok := a.FindAgent("helper").(*LLMAgent); !ok || got != a {
		t.Errorf("FindAgent gives %T", a.FindAgent("helper"))
	}
	if got := a.FindAgent("other"); got != nil {
		t.Errorf("other: %v", got)
	}
	above := build(t, func(c *Config) { c.Name, c.SubAgents = "above", []agent.Agent{a} })
	if got, ok := above.FindAgent("helper").(*LLMAgent); !ok || got != a {
		t.Errorf("FindAgent gives %T for an agent below", above.FindAgent("helper"))
	}
}
