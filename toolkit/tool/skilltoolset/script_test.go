//go:build unix

package skilltoolset_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
	"github.com/toolfabric/toolfabric/toolkit/tooltest"
)

func scripted(files map[string]string) skill.Source {
	fsys := fstest.MapFS{"s/SKILL.md": {Data: []byte("---\nname: s\ndescription: x\n---\n")}}
	for name, text := range files {
		fsys["s/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return skill.NewFileSystemSource(fsys)
}

func TestRunSkillScript(t *testing.T) {
	suite(t, skilltoolset.Config{Scripts: scripts}, skilltoolset.RunSkillScript,
		tooltest.Case{Name: "well", Args: `{"skill_name":"weather-skill","script_name":"get_humidity.sh","args":["Tokyo"]}`,
			Want: `{"skill_name":"weather-skill","script_name":"get_humidity.sh","status":"success","stdout":"71 %\n","stderr":""}`},
		tooltest.Case{Name: "by its path", Args: `{"skill_name":"weather-skill","script_name":"scripts/get_humidity.sh","args":["Tokyo"]}`,
			Want: `{"skill_name":"weather-skill","script_name":"scripts/get_humidity.sh","status":"success","stdout":"71 %\n","stderr":""}`},
		tooltest.Case{Name: "an exit code", Args: `{"skill_name":"weather-skill","script_name":"get_humidity.sh","args":["$(touch x); Bonn"]}`,
			Want: `{"skill_name":"weather-skill","script_name":"get_humidity.sh","status":"error","exit":"exit 3","stdout":"","stderr":"no humidity of $(touch x); Bonn"}`},
		failed("no skill", `{"skill_name":"","script_name":"x"}`, "a skill's name is needed", "MISSING_SKILL_NAME"),
		failed("no script", `{"skill_name":"weather-skill","script_name":""}`, `the name of a script of skill "weather-skill" is needed`, "MISSING_SCRIPT_NAME"),
		failed("another skill", `{"skill_name":"nosuch","script_name":"x.sh"}`, `there is no skill "nosuch"; skills: greeting-skill, weather-skill`, "SKILL_NOT_FOUND"),
		failed("another script", `{"skill_name":"weather-skill","script_name":"nosuch.sh"}`,
			`skill weather-skill has no script "nosuch.sh"; its files: scripts/get_humidity.sh, assets/icon.png, references/weather_info.md`, "SCRIPT_NOT_FOUND"),
		failed("out of the folder", `{"skill_name":"weather-skill","script_name":"../../../../bin/sh"}`,
			`invalid resource path: "scripts/../../../../bin/sh" is not within references/, assets/ or scripts/`, "INVALID_RESOURCE_PATH"),
		failed("no script at all", `{"skill_name":"weather-skill","script_name":"../references/weather_info.md"}`,
			`invalid resource path: "../references/weather_info.md" is not within scripts/`, "INVALID_RESOURCE_PATH"),
		failed("a NUL", `{"skill_name":"weather-skill","script_name":"get_humidity.sh","args":["a","\u0000"]}`, "/args/1: holds a NUL byte", "INVALID_ARGUMENTS"),
	)
}

func TestAScriptIsStoppedWithItsCall(t *testing.T) {
	suite(t, skilltoolset.Config{Source: scripted(map[string]string{"scripts/long.sh": "sleep 1000 & wait"}), Scripts: scripts}, skilltoolset.RunSkillScript,
		tooltest.Case{Name: "endless", Args: `{"skill_name":"s","script_name":"long.sh"}`, Blocks: true})
}

func runScript(t *testing.T, cfg skilltoolset.Config, args string) (map[string]any, error) {
	t.Helper()
	out, err := named(t, set(t, cfg), skilltoolset.RunSkillScript).(tool.RunnerJSON).RunJSON(here(t), json.RawMessage(args))
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatal(err)
	}
	return m, nil
}

func TestAScriptSeesItsSkillAndNothingOfTheWorker(t *testing.T) {
	t.Setenv("SECRET", "s3cret")
	t.Setenv("TMPDIR", t.TempDir())
	cfg := skilltoolset.Config{Scripts: skilltoolset.Scripts{Interpreters: scripts.Interpreters, Env: []string{"LEVEL=3"}}, Source: scripted(map[string]string{
		"scripts/look.sh": `echo "$1 $2 $0 $LEVEL $SECRET"; cat references/a/b.md; [ "$HOME" = "$(pwd -P)" ] || [ "$HOME" = "$PWD" ] && echo home; echo x > made; ls`, "references/a/b.md": "read\n",
	})}
	got, err := runScript(t, cfg, `{"skill_name":"s","script_name":"look.sh","args":["--flag","-x"]}`)
	if err != nil || got["stdout"] != "--flag -x scripts/look.sh 3 \nread\nhome\nmade\nreferences\nscripts\n" {
		t.Errorf("%v, %v", got, err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAnInterpreterIsChosenByExtensionAndThenByTheFirstLine(t *testing.T) {
	cfg := skilltoolset.Config{Scripts: scripts, Source: scripted(map[string]string{
		"scripts/env": "#!/usr/bin/env -S sh -u\necho $-", "scripts/plain": "#! /bin/sh\r\necho $-", "scripts/UPPER.SH": "#!/bin/nosuch\necho $-",
		"scripts/other.py": "#!/usr/bin/env python3\n", "scripts/none": "echo x", "scripts/empty": "", "scripts/hash": "#!", "scripts/long": "#!" + strings.Repeat("x", 1000),
	})}
	for script, strict := range map[string]bool{"env": true, "plain": true, "UPPER.SH": false} {
		got, err := runScript(t, cfg, `{"skill_name":"s","script_name":"`+script+`"}`)
		if err != nil || strings.Contains(got["stdout"].(string), "e") != strict {
			t.Errorf("%s: %v, %v", script, got, err)
		}
	}
	for _, script := range []string{"other.py", "none", "empty", "hash", "long"} {
		got, err := runScript(t, cfg, `{"skill_name":"s","script_name":"`+script+`"}`)
		if tool.ErrorCode(err) != "UNSUPPORTED_SCRIPT_TYPE" || !strings.HasSuffix(err.Error(), "these can: #!sh, .sh") {
			t.Errorf("%s: %v, %v", script, got, err)
		}
	}
}

func TestTheOutputOfAScriptIsCapped(t *testing.T) {
	cfg := skilltoolset.Config{Scripts: skilltoolset.Scripts{Interpreters: scripts.Interpreters, MaxOutput: 10}, Source: scripted(map[string]string{
		"scripts/endless.sh": "while :; do echo 0123456789; done", "scripts/bytes.sh": `printf '\377\376'`,
	})}
	if got, err := runScript(t, cfg, `{"skill_name":"s","script_name":"endless.sh"}`); tool.ErrorCode(err) != "EXECUTION_ERROR" || !strings.Contains(err.Error(), "more than 10 bytes") {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := runScript(t, cfg, `{"skill_name":"s","script_name":"bytes.sh"}`); err != nil || got["stdout"] != "data:application/octet-stream;base64,//4=" {
		t.Errorf("%v, %v", got, err)
	}
	many, _ := json.Marshal(make([]string, 65))
	if _, err := runScript(t, cfg, `{"skill_name":"s","script_name":"bytes.sh","args":`+string(many)+`}`); tool.ErrorCode(err) != "INVALID_ARGUMENTS" {
		t.Error(err)
	}
}

func TestScriptsThatCannotRunAreFoundBefore(t *testing.T) {
	for name, s := range map[string]skilltoolset.Scripts{
		"no dot":          {Interpreters: map[string][]string{"py": {"sh"}}},
		"capitals":        {Interpreters: map[string][]string{".PY": {"sh"}}},
		"a path":          {Interpreters: map[string][]string{"#!/bin/sh": {"sh"}}},
		"no program":      {Interpreters: map[string][]string{".sh": {}}},
		"missing program": {Interpreters: map[string][]string{".sh": {"no-such-program"}}},
		"environment":     {Interpreters: scripts.Interpreters, Env: []string{"X"}},
		"output":          {Interpreters: scripts.Interpreters, MaxOutput: 1 << 30},
	} {
		if _, err := skilltoolset.New(t.Context(), skilltoolset.Config{Source: folder(t), Scripts: s}); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}

func TestScriptsMayRunUnasked(t *testing.T) {
	unasked := scripts
	unasked.Unconfirmed = true
	suite(t, skilltoolset.Config{Scripts: unasked}, skilltoolset.RunSkillScript,
		tooltest.Case{Name: "well", Args: `{"skill_name":"weather-skill","script_name":"get_humidity.sh","args":["Tokyo"]}`, Outcome: protocol.OutcomeCompleted})
}

// The way of ADK's page on skills: the list, the instructions, the file and the script that they name.
func TestASkillIsFollowedStepByStep(t *testing.T) {
	s := set(t, skilltoolset.Config{Scripts: scripts})
	if told := request(t, s, &model.LLMRequest{}); !strings.Contains(told, "weather-skill") {
		t.Errorf("the model is told %s", told)
	}
	for _, step := range []struct{ name, args, key, want string }{
		{skilltoolset.LoadSkill, `{"name":"weather-skill"}`, "instructions", "references/weather_info.md"},
		{skilltoolset.LoadSkillResource, `{"skill_name":"weather-skill","resource_path":"references/weather_info.md"}`, "content", "| Tokyo | 22 °C, rain |"},
		{skilltoolset.RunSkillScript, `{"skill_name":"weather-skill","script_name":"get_humidity.sh","args":["Tokyo"]}`, "stdout", "71 %"},
	} {
		var args map[string]any
		if err := json.Unmarshal([]byte(step.args), &args); err != nil {
			t.Fatal(err)
		}
		got, err := named(t, s, step.name).(tool.Runnable).Run(here(t), args)
		if text, _ := got[step.key].(string); err != nil || !strings.Contains(text, step.want) {
			t.Errorf("%s: %v, %v", step.name, got, err)
		}
	}
}
