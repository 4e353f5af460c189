package agentfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/exitlooptool"
)

func TestATreeOfAgentsIsReadFromItsFiles(t *testing.T) {
	agents, err := Load("testdata/good", models)
	if err != nil {
		t.Fatal(err)
	}
	front := agents["front"]
	below := func(name string) llmagent.Config {
		a, ok := front.FindAgent(name).(*llmagent.LLMAgent)
		if !ok {
			t.Fatalf("no agent %s in the tree", name)
		}
		return a.Config()
	}
	for name, model := range map[string]string{"billing": "gemini-2.5-flash", "shipping": "gemini-2.5-pro", "customs": "gemini-2.5-pro"} {
		if got := below(name).Model.Name(); got != model {
			t.Errorf("%s has the model %s, want %s", name, got, model)
		}
	}
	billing, shipping := below("billing"), below("shipping")
	if !billing.DisallowTransferToPeers || billing.DisallowTransferToParent || !shipping.DisallowTransferToParent || shipping.DisallowTransferToPeers {
		t.Errorf("billing %+v, shipping %+v", billing, shipping)
	}
	if !tool.IsPool(billing.Tools[0]) || !exitlooptool.Is(billing.Tools[1]) {
		t.Errorf("the tools are %v", billing.Tools)
	}
}

// folder writes files, which all begin as a legal agent named after them.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		agent := strings.TrimSuffix(filepath.Base(name), ".yaml")
		if err := os.WriteFile(file, fmt.Appendf(nil, "name: %s\nmodel: m\ninstruction: x\nsub_agents:\n%s", agent, text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFaultsOfATreeNameTheFileTheyAreIn(t *testing.T) {
	dir := folder(t, map[string]string{"outside.yaml": "  []", "in/loop.yaml": "  - config_path: loop.yaml"})
	if err := os.Symlink(filepath.Join(dir, "outside.yaml"), filepath.Join(dir, "in", "link.yaml")); err != nil {
		t.Fatal(err)
	}
	const root = "name: root\nmodel: m\ninstruction: x\nsub_agents:\n"
	for _, c := range []struct{ text, want string }{
		{"  - config_path: loop.yaml\n", "loop.yaml:5:18: config_path loop.yaml leads back to itself: root.yaml -> loop.yaml -> loop.yaml"},
		{"  - config_path: ../outside.yaml\n", `root.yaml:5:18: config_path "../outside.yaml": it is the path of a file below the folder`},
		{"  - config_path: /etc/passwd\n", `root.yaml:5:18: config_path "/etc/passwd": it is`},
		{"  - config_path: link.yaml\n", "root.yaml:5:18: config_path link.yaml cannot be read: path escapes from parent"},
		{"  - config_path: .\n", "root.yaml:5:18: config_path . cannot be read: it is no file"},
		{"  - code: lib.agent\n", "root.yaml:5:5: code: a file cannot bring code"},
		{"  - {config_path: x.yaml, name: other}\n", `root.yaml:5:27: unknown key "name"`},
		{"  - just text\n", "root.yaml:5:5: sub_agents[0] is text, want an agent, or {config_path: FILE}"},
		{"  - {name: root, instruction: x}\n", "root.yaml:5:5: sub_agents[0]: agent root appears twice in the tree"},
		{"  - {name: a, instruction: x}\n  - {name: b, instruction: x, colour: red}\n", `root.yaml:6:31: unknown key "colour"`},
		{"  - {name: a}\n", "root.yaml:5:5: instruction is missing"},
		{"  - {name: a, instruction: x, tools: [{name: transfer_to_agent}]}\n", "tools[0].name: the fabric offers a tool of this name itself"},
	} {
		_, err := ParseFile(filepath.Join(dir, "in", "root.yaml"), []byte(root+c.text), models)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.text, err, c.want)
		} else if n := strings.Count(err.Error(), "\n"); n > 0 {
			t.Errorf("%s has more faults than one:\n%v", c.text, err)
		}
	}
}

func TestFilesThatNameEachOtherEndSomewhere(t *testing.T) {
	files := map[string]string{}
	for i := range 40 { // read without a limit: 2^40 times
		files[fmt.Sprintf("a%d.yaml", i)] = fmt.Sprintf("  - config_path: a%d.yaml\n  - config_path: a%d.yaml\n", i+1, i+1)
	}
	files["a40.yaml"] = "  []"
	dir := folder(t, files)
	data, err := os.ReadFile(filepath.Join(dir, "a0.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = ParseFile(filepath.Join(dir, "a0.yaml"), data, models)
	if err == nil || !strings.Contains(err.Error(), "a file makes 64 agents at most") {
		t.Errorf("got %v", err)
	}
}
