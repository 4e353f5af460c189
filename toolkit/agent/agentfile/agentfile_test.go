package agentfile

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

var update = flag.Bool("update", false, "rewrite the golden files")

type named struct {
	model.LLM
	name string
}

func (m named) Name() string { return m.name }

func models(_, name string) (model.LLM, error) {
	if name == "missing-model" {
		return nil, errors.New("no such model; known prefixes are gemini- and scripted:")
	}
	return named{name: name}, nil
}

func TestFaultsAreListedAllAtOnceWithTheirPlaces(t *testing.T) {
	files, err := filepath.Glob("testdata/faults/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			a, err := ParseFile(filepath.Base(file), data, models)
			if err == nil {
				t.Fatalf("accepted as %s", a.Name())
			}
			if _, ok := errors.AsType[Errors](err); !ok {
				t.Errorf("error is %T, want Errors", err)
			}
			if code := protocol.CodeOf(err); code != protocol.CodeUsage {
				t.Errorf("code %s, want usage", code)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			got := err.Error() + "\n"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadReadsFoldersAndFiles(t *testing.T) {
	agents, err := Load("testdata/good", models)
	if err != nil {
		t.Fatal(err)
	}
	if len(agents) != 3 {
		t.Fatalf("%d agents, want front, helper and judge", len(agents))
	}
	cfg := agents["helper"].Config()
	if cfg.Model.Name() != "gemini-2.5-flash" || cfg.Instruction != "Greet {name?}.\nUse the tools.\n" || cfg.OutputKey != "last_answer" {
		t.Errorf("config %+v", cfg)
	}
	var tools []string
	for _, tool := range cfg.Tools {
		tools = append(tools, tool.Name())
	}
	if diff := cmp.Diff([]string{"word_count", "sha256_sum"}, tools); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(llmagent.Limits{ModelCalls: 7, CallsPerTurn: 3, WallTime: 90 * time.Second}, cfg.Limits); diff != "" {
		t.Error(diff)
	}
	want := &genai.GenerateContentConfig{
		Temperature: new(float32(0.1)), TopP: new(float32(1)), MaxOutputTokens: 512, StopSequences: []string{"END", "42"},
		ThinkingConfig: &genai.ThinkingConfig{IncludeThoughts: true, ThinkingBudget: new(int32(128))},
		SafetySettings: []*genai.SafetySetting{{Category: genai.HarmCategoryHarassment, Threshold: genai.HarmBlockThresholdBlockNone}},
		Labels:         map[string]string{"team": "files"},
	}
	if diff := cmp.Diff(want, cfg.GenerateContentConfig); diff != "" {
		t.Errorf("generate_content_config (-want +got):\n%s", diff)
	}
	judge := agents["judge"]
	if _, err := judge.ParseOutput(`{"verdict":"good","score":1}`); err != nil {
		t.Errorf("fitting answer: %v", err)
	}
	if _, err := judge.ParseOutput(`{"verdict":"odd"}`); err == nil {
		t.Error("an answer outside the enum was accepted")
	}
	if got := judge.Config().Limits; got != (llmagent.Limits{ModelCalls: llmagent.DefaultModelCalls, CallsPerTurn: llmagent.DefaultCallsPerTurn, WallTime: llmagent.DefaultWallTime}) {
		t.Errorf("limits %+v, want the defaults", got)
	}
}

func TestLoadTellsTheFaultsOfAllFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "name: same\nmodel: m\ninstruction: x\n",
		"b.yaml": "name: same\nmodel: m\ninstruction: x\n",
		"c.yaml": "name: c\nmodel: m\n",
		"d.yaml": "name: d\nmodel: m\ninstruction: x\ncolour: red\n" + strings.Repeat("#", MaxFile),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Load(dir, models)
	faults, ok := errors.AsType[Errors](err)
	if !ok || len(faults) != 3 {
		t.Fatalf("faults %v, want one each for b, c and d", err)
	}
	for i, name := range []string{"b.yaml", "c.yaml", "d.yaml"} {
		if filepath.Base(faults[i].File) != name {
			t.Errorf("fault %d is of %s, want %s", i, faults[i].File, name)
		}
	}
}

func TestLoadRefusesAFolderWithoutAgents(t *testing.T) {
	for _, dir := range []string{t.TempDir(), "testdata/none"} {
		if _, err := Load(dir, models); protocol.CodeOf(err) != protocol.CodeUsage {
			t.Errorf("%s: %v, want code usage", dir, err)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	for _, pattern := range []string{"testdata/faults/*.yaml", "testdata/good/*.yaml", "testdata/good/*/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ParseFile("f.yaml", data, models)
		if (a == nil) == (err == nil) {
			t.Fatalf("agent %v and error %v", a, err)
		}
		if err == nil {
			if err := protocol.CheckName(a.Name()); err != nil {
				t.Fatal(err)
			}
			return
		}
		faults, ok := errors.AsType[Errors](err)
		if !ok || len(faults) == 0 {
			t.Fatalf("error %T without faults", err)
		}
		for _, fault := range faults {
			if fault.Line < 1 || fault.Column < 1 || fault.Message == "" {
				t.Fatalf("fault without a place or a message: %+v", fault)
			}
		}
	})
}
