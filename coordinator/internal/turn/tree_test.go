package turn

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/exitlooptool"
)

func node(t *testing.T, name string, change func(*llmagent.Config), subs ...agent.Agent) agent.Agent {
	t.Helper()
	return newAgent(t, func(c *llmagent.Config) {
		c.Name, c.Description, c.SubAgents = name, "Knows "+name+".", subs
		if change != nil {
			change(c)
		}
	})
}

func noParent(c *llmagent.Config) { c.DisallowTransferToParent = true }
func noPeers(c *llmagent.Config)  { c.DisallowTransferToPeers = true }
func alone(c *llmagent.Config)    { noParent(c); noPeers(c) }

// family is root over a (over a1 and a2), b, c and d, who may hand over to fewer and fewer.
func family(t *testing.T) *Tree {
	t.Helper()
	tree, err := NewTree(node(t, "root", nil,
		node(t, "a", nil, node(t, "a1", nil), node(t, "a2", noParent)),
		node(t, "b", noParent), node(t, "c", noPeers), node(t, "d", alone)))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestWhoMayHandOverToWhom(t *testing.T) {
	tree := family(t)
	for name, want := range map[string]string{
		"root": "a b c d", "a": "a1 a2 root b c d", "a1": "a a2", "a2": "a1", "b": "a c d", "c": "root", "d": "",
	} {
		var got []string
		for _, a := range tree.members[name].targets() {
			got = append(got, a.Name())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s may hand over to %v, want %s", name, got, want)
		}
		if offers := tree.Offers(tree.members[name].LLMAgent, nil); (len(offers) > 0) != (want != "") {
			t.Errorf("%s is offered %d tools", name, len(offers))
		}
	}
}

func TestWhoIsAskedFirst(t *testing.T) {
	tree := family(t)
	for _, c := range []struct{ active, last, want, missing string }{
		{"", "", "root", ""},
		{"", "root", "root", ""},
		{"", "a1", "a1", ""},
		{"", "a2", "root", ""}, // it may not pass on what it is not the one for
		{"", "b", "root", ""},
		{"", "c", "c", ""},
		{"b", "root", "b", ""}, // but it goes on with a run that it has
		{"a2", "a2", "a2", ""},
		{"", "gone", "root", "gone"},
		{"gone", "a", "root", "gone"},
	} {
		if a, missing := tree.Speaker(c.active, c.last); a.Name() != c.want || missing != c.missing {
			t.Errorf("active %q, last %q: %s and %q, want %s and %q", c.active, c.last, a.Name(), missing, c.want, c.missing)
		}
	}
}

func TestATransferIsAnsweredByItsTurn(t *testing.T) {
	tree := family(t)
	a := tree.members["a"].LLMAgent
	offers := tree.Offers(a, []Offer{offer("look", nil)})
	resp := finalResponse(
		calling(llmagent.TransferTool, map[string]any{"agent_name": "b"}), calling("look", nil),
		calling(llmagent.TransferTool, map[string]any{"agent_name": "a"}), calling(llmagent.TransferTool, map[string]any{"agent": "b"}),
		calling(llmagent.TransferTool, nil), calling(llmagent.TransferTool, map[string]any{"agent_name": 7}))
	d, err := Decide(a, offers, desk(), callID, resp)
	if err != nil {
		t.Fatal(err)
	}
	c := d.Calls[0]
	if c.Verdict != protocol.VerdictAnswer || c.Confirmation != nil || c.AnswersTo != "" || c.Budget != 0 {
		t.Errorf("the transfer is recorded as %+v", c)
	}
	want := &protocol.Result{V: 1, Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`{}`), Actions: &protocol.Actions{TransferToAgent: "b"}}
	if diff := cmp.Diff(want, c.Answer); diff != "" {
		t.Errorf("its answer (-want +got):\n%s", diff)
	}
	if c := d.Calls[1]; c.Verdict != protocol.VerdictRun || c.Answer != nil {
		t.Errorf("its neighbour is recorded as %+v", c)
	}
	const legal = "one of: a1, a2, root, b, c, d"
	for i, want := range []string{`there is no agent "a" to transfer to.`, `agent_name`, `agent_name`, `agent_name`} {
		c := d.Calls[i+2]
		if c.Verdict != protocol.VerdictRefuse || c.Answer != nil || c.Refusal == nil {
			t.Errorf("%s is recorded as %+v", c.Args, c)
			continue
		}
		if text := string(c.Refusal.Value); !strings.Contains(text, legal) || !strings.Contains(text, strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("%s: the model reads %s", c.Args, text)
		}
	}
}

// A pool of the same name, gated or not, does not take its place.
func TestExitLoopNeedsNoPool(t *testing.T) {
	exit, err := exitlooptool.New()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := NewTree(node(t, "root", func(c *llmagent.Config) { c.Tools = []tool.Tool{exit} }))
	if err != nil {
		t.Fatal(err)
	}
	offers := tree.Offers(tree.Root(), []Offer{offer(exitlooptool.Name, func(d *protocol.Declaration) { d.Confirm = true })})
	if len(offers) != 1 {
		t.Fatalf("%d offers of one name", len(offers))
	}
	d, err := Decide(tree.Root(), offers, desk(), callID, finalResponse(calling(exitlooptool.Name, nil), calling(exitlooptool.Name, map[string]any{"x": 1})))
	if err != nil {
		t.Fatal(err)
	}
	want := &protocol.Actions{Escalate: true, SkipSummarization: true}
	if c := d.Calls[0]; c.Verdict != protocol.VerdictAnswer || !cmp.Equal(want, c.Answer.Actions) || string(c.Answer.Value) != `{}` {
		t.Errorf("it is recorded as %+v", c)
	}
	if c := d.Calls[1]; c.Verdict != protocol.VerdictRefuse || c.Refusal.Code != protocol.CodeSchemaViolation {
		t.Errorf("with arguments it is recorded as %+v", c)
	}
}

func TestTheModelIsToldOfTheOthers(t *testing.T) {
	tree := family(t)
	for _, name := range []string{"root", "a1", "b"} {
		a := tree.members[name].LLMAgent
		req, err := logOf(said("hi")).Request(t.Context(), a, Run{Root: tree.Root()}, tree.Offers(a, []Offer{offer("look", nil)}), nil)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		b.WriteString(req.Config.SystemInstruction.Parts[0].Text + "\n")
		for _, d := range req.Config.Tools[0].FunctionDeclarations {
			raw, _ := encode(d.ParametersJsonSchema)
			b.WriteString("\n" + d.Name + ": " + d.Description + "\n" + string(raw) + "\n")
		}
		golden := "testdata/transfer_" + name + ".golden"
		if *update {
			if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheRootsGlobalInstructionIsForAll(t *testing.T) {
	below := node(t, "below", func(c *llmagent.Config) { c.GlobalInstruction, c.Instruction = "Not this.", "Be below." })
	tree, err := NewTree(node(t, "root", func(c *llmagent.Config) { c.GlobalInstruction = "Be polite." }, below))
	if err != nil {
		t.Fatal(err)
	}
	req, err := logOf(said("hi")).Request(t.Context(), below.(*llmagent.LLMAgent), Run{Root: tree.Root()}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := req.Config.SystemInstruction.Parts[0].Text; !strings.HasPrefix(text, "Be polite.\n\nBe below.\n\n") {
		t.Errorf("the instruction is %q", text)
	}
}

func TestATreeOfOtherAgentsIsRefused(t *testing.T) {
	other, err := agent.New(agent.Config{Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewTree(node(t, "root", nil, other)); protocol.CodeOf(err) != protocol.CodeUnsupported || !strings.Contains(err.Error(), "other") {
		t.Errorf("got %v, want unsupported", err)
	}
	if names := family(t).Names(); !slices.Equal(names, []string{"root", "a", "a1", "a2", "b", "c", "d"}) {
		t.Errorf("the names are %v", names)
	}
}
