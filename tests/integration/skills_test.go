package integration

import (
	"context"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/toolfabric/toolfabric/coordinator/skills"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset"
)

// told is a model that remembers what it was instructed.
type told struct {
	model.LLM
	mu   sync.Mutex
	told []string
}

func (m *told) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	m.mu.Lock()
	var b strings.Builder
	for _, p := range req.Config.SystemInstruction.Parts {
		b.WriteString(p.Text)
	}
	m.told = append(m.told, b.String())
	m.mu.Unlock()
	return m.LLM.GenerateContent(ctx, req, stream)
}

// What is put on the bus is in the next request of every coordinator.
func TestAnAgentIsToldWhichSkillsAreShared(t *testing.T) {
	f := newFabric(t)
	script, err := scripted.Parse([]byte("rules:\n  - user: load\n    calls: [{tool: load_skill, args: {name: pdf}}]\n  - user: load\n    after: [load_skill]\n    text: 'read {{ (index .results.load_skill 0).value.instructions }}'\n"))
	if err != nil {
		t.Fatal(err)
	}
	m := &told{LLM: scripted.New("m", script)}
	store := skills.New(f.conn)
	set, err := skilltoolset.New(t.Context(), skilltoolset.Config{Source: store.Source()})
	if err != nil {
		t.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{Name: "helper", Model: m, Instruction: "Help.", Toolsets: []tool.Toolset{set}})
	if err != nil {
		t.Fatal(err)
	}
	tools, err := set.Tools(nil)
	if err != nil {
		t.Fatal(err)
	}
	f.coordinate(a)
	f.work(tools...)
	p, err := skills.Pack(fstest.MapFS{"SKILL.md": {Data: []byte("---\nname: pdf\ndescription: Fills <forms>.\n---\nStep one.\n")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	out := f.ask("helper", "", "load it")
	if out.Text != "read Step one.\n" {
		t.Errorf("%+v", out)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, text := range m.told {
		if !strings.HasPrefix(text, "Help.\n\n") || !strings.Contains(text, "`load_skill`") || !strings.Contains(text, "<name>\npdf\n</name>") || !strings.Contains(text, "Fills &lt;forms&gt;.") {
			t.Errorf("the model is told %s", text)
		}
	}
	if len(m.told) != 2 {
		t.Errorf("%d requests", len(m.told))
	}
}
