package integration

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"

	"github.com/toolfabric/toolfabric/coordinator/policy"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// server is a toolset whose tools have names that were never meant for a model.
type server struct {
	name  string
	stubs []*stub
}

func (s *server) Name() string { return s.name }

func (s *server) Tools(agent.ReadonlyContext) ([]tool.Tool, error) {
	var all []tool.Tool
	for _, one := range s.stubs {
		all = append(all, one)
	}
	return all, nil
}

func TestNamesFromSeveralServersAreOneToPolicyRegistryAndModel(t *testing.T) { // h16, H45, H46
	t.Parallel()
	f := newFabric(t)
	var cases []struct{ Server, Tool string }
	if err := json.Unmarshal(hand(t, "h16-tool-names/names.json"), &cases); err != nil {
		t.Fatal(err)
	}
	servers := map[string]*server{}
	var sets []tool.Toolset
	for _, c := range cases {
		if servers[c.Server] == nil {
			servers[c.Server] = &server{name: c.Server}
			sets = append(sets, tool.Prefix(servers[c.Server], c.Server))
		}
		servers[c.Server].stubs = append(servers[c.Server].stubs, answering(c.Tool, fmt.Sprintf(`{"from":%q}`, c.Server), tool.AtMostOnce))
	}
	tools, faults := tool.Gather(nil, nil, sets)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var names []string
	legal := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	for _, one := range tools {
		if names = append(names, one.Name()); !legal.MatchString(one.Name()) {
			t.Errorf("%q is offered", one.Name())
		}
	}
	script := `turns:
- parts:
  - functionCall: {id: c1, name: fs_read_file}
  - functionCall: {id: c2, name: git_read_file}
  - functionCall: {id: c3, name: read_file}
  - functionCall: {id: c4, name: ` + tool.Alias("web_get/page") + `}
  finishReason: STOP
- parts: [{text: done}]
  finishReason: STOP
`
	p := provide(t, []byte(script), nil)
	var err error
	if f.policy, err = policy.Compile([]policy.Rule{{Name: "git", When: `tool == "git_read_file"`}}); err != nil {
		t.Fatal(err)
	}
	f.coordinate(newAgent(t, "h16", p.llm, append(names, "read_file")...))
	f.work(tools...)
	r := f.send(t.Context(), "h16", "", "read")
	f.untilParked("h16", r.Session)
	questions := f.asked("h16", r.Session)
	if len(questions) != 1 || questions["c2"] == "" {
		t.Fatalf("people are asked %v, want about git_read_file only", questions)
	}
	fs, git, page := servers["fs"].stubs[0], servers["git"].stubs[0], servers["web"].stubs[0]
	fs.wantRuns(t, 1)
	git.wantRuns(t, 0)
	page.wantRuns(t, 1)
	f.wantReceipt("h16", r.Session, questions["c2"], "ann", yes, "", "")
	contains(t, "the answer", f.wait(r).Text, "done")
	git.wantRuns(t, 1)
	fs.wantRuns(t, 1)
	for k, want := range []string{"fs", "git", "", "web"} {
		response := p.response(2, k)
		if want == "" {
			contains(t, "what the model reads of the bare name", fmt.Sprint(response["error"]), "read_file")
			continue
		}
		if response["from"] != want {
			t.Errorf("call %d: %v, want it from %s", k+1, response, want)
		}
	}
}
