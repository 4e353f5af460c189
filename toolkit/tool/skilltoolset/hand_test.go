package skilltoolset_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
)

func TestSkillsWrittenBadlyAndPathsThatLeadOut(t *testing.T) { // h18, H55, H56, H57, H58
	folder := filepath.Join("testdata", "hand", "h18-skills-yaml-and-paths")
	source, err := skill.NewDirectorySource(filepath.Join(folder, "skills"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := source.ListFrontmatters(t.Context())
	faults, err := skill.Broken(err)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]*skill.Frontmatter{}
	for _, fm := range list {
		got[fm.Name] = fm
	}
	block, crlf := got["block-scalar"], got["crlf"]
	if block == nil || block.Description != "Reads tables. Use it: when asked for tables." || block.Metadata["version"] != "1.20" || len(block.AllowedTools) != 2 {
		t.Errorf("block-scalar: %+v", block)
	}
	body, err := source.LoadInstructions(t.Context(), "crlf")
	if crlf == nil || crlf.Description != "From Windows" || err != nil || strings.Contains(crlf.Name, "\r") || strings.HasPrefix(body, "\r") || !strings.Contains(body, "Body line") {
		t.Errorf("crlf: %+v, %q, %v", crlf, body, err)
	}
	reported := map[string]string{}
	for _, f := range faults {
		reported[f.Skill] = f.Error()
	}
	for _, name := range []string{"colon", "flow", "no-front"} {
		if got[name] == nil && !strings.Contains(reported[name], filepath.Join(name, "SKILL.md")) {
			t.Errorf("%s is silently absent: %q", name, reported[name])
		}
	}

	set, err := skilltoolset.New(t.Context(), skilltoolset.Config{Source: source})
	if err != nil {
		t.Fatal(err)
	}
	load, runs := tool.AsRunnable(named(t, set, "load_skill_resource"))
	if !runs {
		t.Fatal("it does not run")
	}
	data, err := os.ReadFile(filepath.Join(folder, "load-resource.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ Skill, Path, Want string }
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	var schema struct{ Required []string }
	parameters, err := json.Marshal(load.Declaration().ParametersJsonSchema)
	if err != nil || json.Unmarshal(parameters, &schema) != nil || len(schema.Required) != 2 {
		t.Fatalf("%s, %v", parameters, err)
	}
	for _, c := range cases {
		args := map[string]any{}
		for _, name := range schema.Required { // of the skill, and of the file in it
			if args[name] = c.Path; strings.Contains(name, "skill") {
				args[name] = c.Skill
			}
		}
		out, err := load.Run(here(t), args)
		value, _ := json.Marshal(out)
		told := string(value)
		if err != nil {
			told += err.Error()
		}
		if c.Want == "refused" {
			if err == nil || strings.Contains(told, "root:") || strings.Contains(told, "inside") {
				t.Errorf("%+v: %s", c, told)
			}
		} else if err != nil || !strings.Contains(told, "inside") {
			t.Errorf("%+v: %s", c, told)
		}
	}
}
