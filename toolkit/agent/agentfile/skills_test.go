package agentfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
)

func TestAnAgentHasTheSkillsOfItsFile(t *testing.T) {
	dir := t.TempDir()
	files := fstest.MapFS{"skills/pdf/SKILL.md": {Data: []byte("---\nname: pdf\ndescription: x\n---\n")}}
	if err := os.CopyFS(filepath.Join(dir, "helper"), files); err != nil {
		t.Fatal(err)
	}
	var asked [][]string
	shared := WithSharedSkills(func(names []string) skill.Source {
		asked = append(asked, names)
		return skill.NewFileSystemSource(fstest.MapFS{"weather/SKILL.md": {Data: []byte("---\nname: weather\ndescription: x\n---\n")}})
	})
	const begin = "name: helper\nmodel: m\ninstruction: Help.\ntoolfabric:\n  skills:\n"
	for name, c := range map[string]struct {
		text    string
		tools   string
		confirm bool
		asked   string
	}{
		"a folder":           {"    folder: skills\n", "helper_list_skills helper_load_skill helper_load_skill_resource", false, ""},
		"shared ones":        {"    shared: [weather, pdf]\n", "helper_list_skills helper_load_skill helper_load_skill_resource", false, "[[weather pdf]]"},
		"all shared ones":    {"    folder: ./skills\n    shared: ['*']\n", "helper_list_skills helper_load_skill helper_load_skill_resource", false, "[[]]"},
		"scripts":            {"    folder: skills\n    scripts: {.sh: [sh], '#!sh': [sh, -e]}\n", "helper_list_skills helper_load_skill helper_load_skill_resource helper_run_skill_script", true, ""},
		"scripts unasked":    {"    folder: skills\n    scripts: {.sh: [sh]}\n    confirm_scripts: false\n", "helper_list_skills helper_load_skill helper_load_skill_resource helper_run_skill_script", false, ""},
		"an absolute folder": {"    folder: " + filepath.Join(dir, "helper", "skills") + "\n", "helper_list_skills helper_load_skill helper_load_skill_resource", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			asked = nil
			a, err := ParseFile(filepath.Join(dir, "helper", "root_agent.yaml"), []byte(begin+c.text), models, shared)
			if err != nil {
				t.Fatal(err)
			}
			if len(a.Config().Toolsets) != 1 {
				t.Fatalf("%d toolsets", len(a.Config().Toolsets))
			}
			tools, err := a.Config().Toolsets[0].Tools(nil)
			var names []string
			for _, one := range tools {
				names = append(names, one.Name())
			}
			last := tools[len(tools)-1].(tool.Configured).Settings()
			if err != nil || strings.Join(names, " ") != c.tools || last.Confirm != c.confirm {
				t.Errorf("%v, %v, confirm %v", names, err, last.Confirm)
			}
			if got := fmt.Sprint(asked); got != c.asked && !(got == "[]" && c.asked == "") {
				t.Errorf("asked for %s, want %s", got, c.asked)
			}
		})
	}
}

func TestAnAgentWithoutSkillsHasNoToolset(t *testing.T) {
	a, err := ParseFile("a.yaml", []byte("name: a\nmodel: m\ninstruction: x\ntoolfabric: {limits: {model_calls: 3}}\n"), models)
	if err != nil || len(a.Config().Toolsets) != 0 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestSharedSkillsHaveLegalNames(t *testing.T) {
	text := "name: a\nmodel: m\ninstruction: x\ntoolfabric: {skills: {shared: ['*', ../b]}}\n"
	_, err := ParseFile("a.yaml", []byte(text), models, WithSharedSkills(func([]string) skill.Source { return nil }))
	if err == nil || strings.Count(err.Error(), "a.yaml:4:") != 2 {
		t.Error(err)
	}
}
