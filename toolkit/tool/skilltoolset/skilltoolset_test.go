package skilltoolset_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
	"github.com/toolfabric/toolfabric/toolkit/tooltest"
)

var scripts = skilltoolset.Scripts{Interpreters: map[string][]string{".sh": {"sh"}, "#!sh": {"sh", "-e"}}}

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func here(t *testing.T) tool.Context {
	return tooltest.NewContext(t, t.Context(), tooltest.ContextConfig{})
}

// logging is a context whose log is kept.
type logging struct {
	tool.Context
	log *slog.Logger
}

func (l logging) Logger() *slog.Logger { return l.log }

func set(t *testing.T, cfg skilltoolset.Config) *skilltoolset.SkillToolset {
	t.Helper()
	if cfg.Source == nil {
		cfg.Source = folder(t)
	}
	s, err := skilltoolset.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func folder(t *testing.T) skill.Source {
	t.Helper()
	s, err := skill.NewDirectorySource("testdata/skills")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func named(t *testing.T, s *skilltoolset.SkillToolset, name string) tool.Tool {
	t.Helper()
	tools, err := s.Tools(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range tools {
		if one.Name() == name {
			return one
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}

// suite holds one tool of the set that cfg describes to the rules of all tools.
func suite(t *testing.T, cfg skilltoolset.Config, name string, cases ...tooltest.Case) {
	t.Helper()
	tooltest.Run(t, func() tool.Tool { return named(t, set(t, cfg), cfg.Prefix+name) }, cases...)
}

// failed is how a call fails with an error code.
func failed(name, args, text, code string) tooltest.Case {
	want, _ := json.Marshal(map[string]string{"error": text, "error_code": code})
	return tooltest.Case{Name: name, Args: args, Outcome: protocol.OutcomeFailed, Want: string(want)}
}

const list = "<available_skills>\n<skill>\n<name>\ngreeting-skill\n</name>\n<description>\nGreets people.\n</description>\n</skill>\n" +
	"<skill>\n<name>\nweather-skill\n</name>\n<description>\nTells the weather of a city from the table in its references. Use it when somebody asks about temperature, rain or " +
	"&#34;humidity&#34; &lt;anywhere&gt; &amp; any time.\n</description>\n</skill>\n</available_skills>"

func TestListSkills(t *testing.T) {
	want, _ := json.Marshal(map[string]string{"skills": list})
	suite(t, skilltoolset.Config{}, skilltoolset.ListSkills,
		tooltest.Case{Name: "all but the broken one", Args: `{}`, Want: string(want)},
		tooltest.Case{Name: "with an argument", Args: `{"x":1}`, Refused: true})
}

func TestLoadSkill(t *testing.T) {
	suite(t, skilltoolset.Config{}, skilltoolset.LoadSkill,
		tooltest.Case{Name: "one", Args: `{"name":"greeting-skill"}`,
			Want: `{"skill_name":"greeting-skill","instructions":"Say hello.\n","frontmatter":{"name":"greeting-skill","description":"Greets people."}}`},
		tooltest.Case{Name: "no name", Args: `{}`, Refused: true},
		failed("an empty name", `{"name":""}`, "a skill's name is needed", "MISSING_SKILL_NAME"),
		failed("a slip", `{"name":"wether-skill"}`, `there is no skill "wether-skill"; skills: weather-skill, greeting-skill`, "SKILL_NOT_FOUND"),
		failed("a path", `{"name":"../skills/weather-skill"}`, `there is no skill "../skills/weather-skill"; skills: weather-skill, greeting-skill`, "SKILL_NOT_FOUND"),
		failed("a broken one", `{"name":"broken-skill"}`,
			`skill "broken-skill" is broken and cannot be used until its author mends it: SKILL.md:3: invalid frontmatter: not YAML: mapping value is not allowed in this context`, "INVALID_SKILL"),
	)
}

func TestLoadSkillResource(t *testing.T) {
	files := fstest.MapFS{
		"big/SKILL.md":            {Data: []byte("---\nname: big\ndescription: x\n---\n")},
		"big/references/long.md":  {Data: bytes.Repeat([]byte("x"), skilltoolset.MaxText+1)},
		"big/assets/photo.jpg":    {Data: append([]byte("\xff\xd8\xff"), make([]byte, skilltoolset.MaxBinary)...)},
		"big/assets/a.docx":       {Data: []byte("PK\x03\x04\x00\x00\xff")},
		"big/assets/empty.txt":    {},
		"big/assets/enormous.bin": {Data: make([]byte, skill.MaxResource+1)},
	}
	suite(t, skilltoolset.Config{Source: skill.NewMergedSource(folder(t), skill.NewFileSystemSource(files))}, skilltoolset.LoadSkillResource,
		tooltest.Case{Name: "a text", Args: `{"skill_name":"weather-skill","resource_path":"references/weather_info.md"}`,
			Want: `{"skill_name":"weather-skill","path":"references/weather_info.md","content":"| city | weather |\n|---|---|\n| San Francisco | 17 °C, fog |\n| Tokyo | 22 °C, rain |\n"}`},
		tooltest.Case{Name: "an image", Args: `{"skill_name":"weather-skill","resource_path":"assets/icon.png"}`,
			Want: `{"skill_name":"weather-skill","path":"assets/icon.png","media_type":"image/png","size_bytes":16,"content_base64":"iVBORw0KGgoAAAANSUhEUg=="}`},
		tooltest.Case{Name: "a document", Args: `{"skill_name":"big","resource_path":"assets/a.docx"}`,
			Want: `{"skill_name":"big","path":"assets/a.docx","media_type":"application/vnd.openxmlformats-officedocument.wordprocessingml.document","size_bytes":7,"content_base64":"UEsDBAAA/w=="}`},
		tooltest.Case{Name: "an empty file", Args: `{"skill_name":"big","resource_path":"assets/empty.txt"}`, Want: `{"skill_name":"big","path":"assets/empty.txt","content":""}`},
		failed("a long text", `{"skill_name":"big","resource_path":"references/long.md"}`, "references/long.md is a text of 262145 bytes, more than the 262144 that can be shown", "RESOURCE_TOO_LARGE"),
		failed("a large image", `{"skill_name":"big","resource_path":"assets/photo.jpg"}`,
			"assets/photo.jpg is no text but image/jpeg of 65539 bytes, more than the 65536 that can be shown; scripts of the skill find it by its path", "RESOURCE_TOO_LARGE"),
		failed("a huge file", `{"skill_name":"big","resource_path":"assets/enormous.bin"}`, "too large: assets/enormous.bin has more than 10485760 bytes", "RESOURCE_TOO_LARGE"),
		failed("no skill", `{"skill_name":"","resource_path":"x"}`, "a skill's name is needed", "MISSING_SKILL_NAME"),
		failed("no path", `{"skill_name":"big","resource_path":""}`, `the path of a file of skill "big" is needed`, "MISSING_RESOURCE_PATH"),
		failed("another skill", `{"skill_name":"nosuch","resource_path":"assets/x"}`, `there is no skill "nosuch"; skills: big, greeting-skill, weather-skill`, "SKILL_NOT_FOUND"),
		failed("another file", `{"skill_name":"weather-skill","resource_path":"references/wether.md"}`,
			`skill weather-skill has no file "references/wether.md"; its files: references/weather_info.md, assets/icon.png, scripts/get_humidity.sh`, "RESOURCE_NOT_FOUND"),
		failed("out of the folders", `{"skill_name":"weather-skill","resource_path":"references/../../../../etc/passwd"}`,
			`invalid resource path: "references/../../../../etc/passwd" is not within references/, assets/ or scripts/`, "INVALID_RESOURCE_PATH"),
		failed("the instructions", `{"skill_name":"weather-skill","resource_path":"SKILL.md"}`, `invalid resource path: "SKILL.md" is not within references/, assets/ or scripts/`, "INVALID_RESOURCE_PATH"),
		failed("an absolute path", `{"skill_name":"weather-skill","resource_path":"/etc/passwd"}`, `invalid resource path: "/etc/passwd" is absolute; write it relative to the skill's folder`, "INVALID_RESOURCE_PATH"),
		failed("a NUL", `{"skill_name":"weather-skill","resource_path":"references/\u0000"}`, `invalid resource path: "references/\x00" is no text`, "INVALID_RESOURCE_PATH"),
	)
}

// keeping is a context with an object store.
type keeping struct {
	tool.Context
	kept *[]byte
}

func (k keeping) Keep(data []byte, mediaType string) (protocol.Ref, error) {
	*k.kept = data
	return protocol.Ref{Name: "n", SHA256: "s", Size: int64(len(data)), Type: mediaType}, nil
}

func TestALargeFileIsKeptWhereThereIsAStore(t *testing.T) {
	photo := append([]byte("\xff\xd8\xff"), make([]byte, skilltoolset.MaxBinary)...)
	s := set(t, skilltoolset.Config{Source: skill.NewFileSystemSource(fstest.MapFS{
		"big/SKILL.md": {Data: []byte("---\nname: big\ndescription: x\n---\n")}, "big/assets/photo.jpg": {Data: photo},
	})})
	var kept []byte
	got, err := named(t, s, skilltoolset.LoadSkillResource).(tool.RunnerJSON).RunJSON(
		keeping{here(t), &kept}, json.RawMessage(`{"skill_name":"big","resource_path":"assets/photo.jpg"}`))
	want := `{"skill_name":"big","path":"assets/photo.jpg","media_type":"image/jpeg","size_bytes":65539,"reference":{"name":"n","sha256":"s","size":65539,"type":"image/jpeg"}}`
	if err != nil || string(got) != want || !bytes.Equal(kept, photo) {
		t.Errorf("%s, %v, %d bytes kept", got, err, len(kept))
	}
}

// closed is a source that cannot be reached.
type closed struct{ skill.Source }

func (closed) ListFrontmatters(context.Context) ([]*skill.Frontmatter, error) {
	return nil, protocol.Errorf(protocol.CodeUnreachable, "nobody answers")
}

func (closed) LoadFrontmatter(context.Context, string) (*skill.Frontmatter, error) {
	return nil, protocol.Errorf(protocol.CodeUnreachable, "nobody answers")
}

func TestASourceThatCannotBeReachedIsTriedAgain(t *testing.T) {
	s := set(t, skilltoolset.Config{Source: closed{}})
	for name, args := range map[string]string{skilltoolset.ListSkills: `{}`, skilltoolset.LoadSkill: `{"name":"a"}`} {
		_, err := named(t, s, name).(tool.RunnerJSON).RunJSON(here(t), json.RawMessage(args))
		_, fabric := errors.AsType[*protocol.Error](err)
		if !tool.IsRetryable(t.Context(), err) || tool.ErrorCode(err) != "SKILLS_UNAVAILABLE" || fabric {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.ProcessRequest(here(t), &model.LLMRequest{}); protocol.CodeOf(err) != protocol.CodeUnreachable {
		t.Error(err)
	}
}

func TestASetNeedsASource(t *testing.T) {
	if _, err := skilltoolset.New(t.Context(), skilltoolset.Config{}); err == nil {
		t.Error("a set without a source")
	}
	if _, err := skilltoolset.New(t.Context(), skilltoolset.Config{Source: folder(t), Prefix: "a.b"}); protocol.CodeOf(err) != protocol.CodeBadName {
		t.Errorf("a prefix that is not legal: %v", err)
	}
}

func request(t *testing.T, s *skilltoolset.SkillToolset, req *model.LLMRequest) string {
	t.Helper()
	if err := s.ProcessRequest(here(t), req); err != nil {
		t.Fatal(err)
	}
	if req.Config == nil || req.Config.SystemInstruction == nil {
		return ""
	}
	var texts []string
	for _, p := range req.Config.SystemInstruction.Parts {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "|")
}

func TestAModelIsToldWhichSkillsThereAre(t *testing.T) {
	s := set(t, skilltoolset.Config{Prefix: "helper_", Scripts: scripts})
	before := &genai.Content{Role: "user", Parts: []*genai.Part{{Text: "You help."}}}
	req := &model.LLMRequest{Config: &genai.GenerateContentConfig{SystemInstruction: before}}
	got := request(t, s, req)
	const golden = "testdata/request.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || got != string(want) {
		t.Errorf("got %s\nwant %s, %v", got, want, err)
	}
	if before.Parts[0].Text != "You help." {
		t.Error("somebody else's instruction was changed")
	}
	if got := request(t, set(t, skilltoolset.Config{SystemInstruction: "Use them."}), &model.LLMRequest{}); got != "Use them.\n\n"+list {
		t.Errorf("an instruction of its own: %s", got)
	}
}

func declaring(names ...string) *model.LLMRequest {
	var list []*genai.FunctionDeclaration
	for _, n := range names {
		list = append(list, &genai.FunctionDeclaration{Name: n})
	}
	return &model.LLMRequest{Config: &genai.GenerateContentConfig{Tools: []*genai.Tool{{FunctionDeclarations: list}}}}
}

func TestAModelIsNotToldOfToolsThatItDoesNotHave(t *testing.T) {
	s := set(t, skilltoolset.Config{Scripts: scripts})
	got := request(t, s, declaring("load_skill", "other"))
	if !strings.Contains(got, "`load_skill`") || strings.Contains(got, "load_skill_resource") || strings.Contains(got, "run_skill_script") || strings.Contains(got, "list_skills") {
		t.Errorf("%s", got)
	}
	if got := request(t, s, declaring("fs_load_skill", "other", "a_list_skills", "b_list_skills")); !strings.Contains(got, "`fs_load_skill`") || strings.Contains(got, "list_skills`") {
		t.Errorf("behind a prefix: %s", got)
	}
	if got := request(t, s, declaring("other")); got != "" {
		t.Errorf("none of the tools, and yet: %s", got)
	}
	empty := set(t, skilltoolset.Config{Source: skill.NewFileSystemSource(fstest.MapFS{})})
	if got := request(t, empty, declaring("load_skill")); got != "" {
		t.Errorf("no skill, and yet: %s", got)
	}
}

func TestABrokenSkillIsLoggedOnce(t *testing.T) {
	s := set(t, skilltoolset.Config{})
	var log bytes.Buffer
	ctx := logging{here(t), slog.New(slog.NewTextHandler(&log, nil))}
	for range 3 {
		if err := s.ProcessRequest(ctx, &model.LLMRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "testdata/skills/broken-skill/SKILL.md:3:"); n != 1 {
		t.Errorf("told %d times: %s", n, log.String())
	}
}

func TestTheToolsSayWhatTheyDo(t *testing.T) {
	s := set(t, skilltoolset.Config{Scripts: scripts})
	tools, err := s.Tools(nil)
	if err != nil || len(tools) != 4 || s.Name() != "SkillToolset" {
		t.Fatalf("%d tools of %s, %v", len(tools), s.Name(), err)
	}
	for i, want := range []struct {
		name    string
		effect  tool.Effect
		confirm bool
	}{{"list_skills", tool.Read, false}, {"load_skill", tool.Read, false}, {"load_skill_resource", tool.Read, false}, {"run_skill_script", tool.AtMostOnce, true}} {
		settings := tools[i].(tool.Configured).Settings()
		if tools[i].Name() != want.name || settings.Effect != want.effect || settings.Confirm != want.confirm {
			t.Errorf("%s: %+v", tools[i].Name(), settings)
		}
	}
	without, err := set(t, skilltoolset.Config{}).Tools(nil)
	if err != nil || len(without) != 3 {
		t.Errorf("%d tools without interpreters, %v", len(without), err)
	}
}
