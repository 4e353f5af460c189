package scripted

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

func mustParse(t *testing.T, script string) *Script {
	t.Helper()
	s, err := Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func user(text string) *genai.Content { return genai.NewContentFromText(text, genai.RoleUser) }

func called(calls ...*genai.FunctionCall) *genai.Content {
	c := &genai.Content{Role: genai.RoleModel}
	for _, f := range calls {
		c.Parts = append(c.Parts, &genai.Part{FunctionCall: f})
	}
	return c
}

func answered(responses ...*genai.FunctionResponse) *genai.Content {
	c := &genai.Content{Role: genai.RoleUser}
	for _, f := range responses {
		c.Parts = append(c.Parts, &genai.Part{FunctionResponse: f})
	}
	return c
}

// says is the whole answer as JSON of its parts.
func says(t *testing.T, s *Script, contents ...*genai.Content) string {
	t.Helper()
	for r, err := range New("m", s).GenerateContent(t.Context(), &model.LLMRequest{Contents: contents}, false) {
		if err != nil {
			t.Fatal(err)
		}
		return encode(r.Content.Parts)
	}
	return ""
}

const counting = `
rules:
  - name: count
    user: 'count words in (?P<files>.+)'
    calls:
      - tool: word_count
        each: {of: '{{ .files }}', as: file}
        args: {path: '{{ .file }}', n: 3, big: 9007199254740993, deep: {ok: true, at: {json: '{{ .index }}'}, none: null}}
  - name: retry
    results: {word_count: '"error":"(?P<why>[^"]+)"'}
    turn: 1
    text: 'It failed: {{ .why }}.'
  - name: report
    user: count
    after: [word_count]
    text: '{{ range .results.word_count }}{{ .args.path }}={{ .value.words }} {{ end }}by {{ .user | upper }}'
  - name: total
    user: '^sum'
    turn: 1
    text: '{{ sum 1 2.5 "3" }}'
  - user: '^sum'
    calls: [{tool: t}]
`

func TestRulesWorkOnInputTheyWereNeverShown(t *testing.T) {
	s := mustParse(t, counting)
	calls := says(t, s, user("hi"), called(), user("please count words in x.txt, y.txt z.md"))
	want := `[`
	for i, f := range []string{"x.txt", "y.txt", "z.md"} {
		if i > 0 {
			want += ","
		}
		want += `{"functionCall":{"args":{"big":9007199254740993,"deep":{"at":` + string(rune('0'+i)) + `,"none":null,"ok":true},"n":3,"path":"` + f + `"},"name":"word_count"}}`
	}
	if d := cmp.Diff(want+"]", calls); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	a := &genai.FunctionCall{ID: "1", Name: "word_count", Args: map[string]any{"path": "a"}}
	b := &genai.FunctionCall{ID: "2", Name: "word_count", Args: map[string]any{"path": "b"}}
	got := says(t, s, user("count words in a,b"), called(a, b), answered(
		&genai.FunctionResponse{ID: "2", Name: "word_count", Response: map[string]any{"words": 1234567.0}},
		&genai.FunctionResponse{ID: "1", Name: "word_count", Response: map[string]any{"result": map[string]any{"words": 1}}}))
	if want := `[{"text":"b=1234567 a=1 by COUNT WORDS IN A,B"}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	got = says(t, s, user("count words in a"), called(a), answered(&genai.FunctionResponse{Name: "word_count", Response: map[string]any{"error": "no such file"}}))
	if want := `[{"text":"It failed: no such file."}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := says(t, s, user("sum"), called(a), answered(&genai.FunctionResponse{Name: "t"})); got != `[{"text":"6.5"}]` {
		t.Errorf("got %s", got)
	}
}

func TestEarlierTurnsDoNotCount(t *testing.T) {
	s := mustParse(t, `rules: [{after: [w], text: old}, {text: 'fresh {{ len .results }}'}]`)
	w := &genai.FunctionCall{Name: "w"}
	history := []*genai.Content{user("one"), called(w), answered(&genai.FunctionResponse{Name: "w"}), genai.NewContentFromText("old", genai.RoleModel), user("two")}
	if got := says(t, s, history...); got != `[{"text":"fresh 0"}]` {
		t.Errorf("got %s", got)
	}
}

func TestWhatOtherAgentsSaidIsNotTheUsersWord(t *testing.T) {
	s := mustParse(t, `rules: [{user: '^one', text: 'turn {{ .turn }}'}]`)
	told := &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{Text: "For context:"}, {Text: "[other] said: two"}}}
	if got := says(t, s, user("one"), told); got != `[{"text":"turn 0"}]` {
		t.Errorf("got %s", got)
	}
}

func TestNoRuleIsARefusal(t *testing.T) {
	for script, says := range map[string]string{
		`rules: [{user: x, text: y}]`:                                     `no rule of the script matches turn 0 after "hello"`,
		`rules: [{text: '{{ .missing }}'}]`:                               `cannot answer`,
		`rules: [{calls: [{tool: t, args: {a: {json: '{{ .user }}'}}}]}]`: `is no JSON`,
		`turns: [{error: {status: 500, times: 1}, parts: [{text: x}]}]`:   "",
	} {
		p := NewPlayer(mustParse(t, script))
		_, err := p.Reply([]*genai.Content{user("hello")})
		if says == "" {
			if err != nil {
				t.Errorf("%s: %v", script, err)
			}
			continue
		}
		if protocol.CodeOf(err) != protocol.CodeModelRefused || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want model_refused saying %q", script, err, says)
		}
	}
	p := NewPlayer(mustParse(t, `turns: [{parts: [{text: x}], finishReason: STOP}]`))
	if _, err := p.Reply([]*genai.Content{user("a"), called(), user("b")}); protocol.CodeOf(err) != protocol.CodeModelRefused {
		t.Errorf("beyond the last turn: %v", err)
	}
}

func TestEachConversationMeetsItsFaults(t *testing.T) {
	p := NewPlayer(mustParse(t, `rules: [{text: x, error: {status: 429, retry_after: 2s, times: 2}}]`))
	var wg sync.WaitGroup
	for _, text := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			for try := range 4 {
				r, err := p.Reply([]*genai.Content{user(text)})
				if err != nil {
					t.Error(err)
				} else if (r.Fault != nil) != (try < 2) || r.Fault != nil && r.Fault.RetryAfter != 2*time.Second {
					t.Errorf("%s: attempt %d got %+v", text, try+1, r.Fault)
				}
			}
		})
	}
	wg.Wait()
}

func TestDelaysAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustParse(t, `rules: [{text: ab, chunks: 2, delay: 3s, error: {status: 503, retry_after: 5s, times: 1}}]`)
		from := time.Now()
		says(t, s, user("go"))
		if d := time.Since(from); d != 14*time.Second { // the fault, then three chunks
			t.Errorf("it took %v, want 14s", d)
		}
	})
}

func TestAnswersAreNotShared(t *testing.T) {
	s := mustParse(t, `turns: [{parts: [{functionCall: {name: w, args: {a: 1}}, thoughtSignature: AQ==}], finishReason: STOP}]`)
	p := NewPlayer(s)
	for range 2 {
		r, err := p.Reply(nil)
		if err != nil {
			t.Fatal(err)
		}
		part := r.Chunks[0].Parts[0]
		if got := encode(part); got != `{"functionCall":{"args":{"a":1},"name":"w"},"thoughtSignature":"AQ=="}` {
			t.Fatalf("got %s", got)
		}
		part.FunctionCall.ID, part.FunctionCall.Args["a"], part.ThoughtSignature[0] = "x", 2, 9
	}
}

func TestEveryFaultOfAScriptIsNamed(t *testing.T) {
	const script = `name: bad
rules:
  - user: '('
    turn: -1
    text: '{{ .x'
    sorry: 1
  - name: empty
  - text: a
    text: b
    chunks: many
    signature: '???'
    error: {retry_after: soon}
  - calls:
      - args: [1]
        each: {split: ','}
      - {tool: t, args: {a: &x 1, b: *x}}
extra: 1
`
	_, err := Parse([]byte(script))
	if protocol.CodeOf(err) != protocol.CodeUsage {
		t.Fatalf("got %v", err)
	}
	want := []string{"3:11: user:", "4:", "turn is a whole number", "5:", "6:5: a rule has no key \"sorry\"", "7:", "empty has neither text nor calls",
		"9:5: a rule has the key \"text\" twice", "10:", "chunks is a whole number", "11:", "base64", "12:", "retry_after is a duration", "error has no status",
		"14:", "args is a mapping", "each has no of", "a call names its tool", "16:", "anchors", "17:1: a script has no key \"extra\""}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not in\n%v", w, err)
		}
	}
	for text, says := range map[string]string{
		"":            "1:1: the script is empty",
		"# nothing\n": "the script is empty",
		"a: [":        "1:",
		"rules: []":   "nothing to say",
		"{}":          "a script has",
		"rules: [{text: a}]\nturns: [{parts: []}]": "either rules or turns",
		"turns: [{}]":                                 "parts or chunks",
		"turns: [{parts: [{txt: a}]}]":                `unknown field "txt"`,
		"turns: [{parts: [], chunks: [{parts: []}]}]": "either chunks or parts",
		"rules: [{text: a}]\n---\nrules: []":          "one document",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want %q", text, err, says)
		}
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(path, []byte("rules:\n  - tex: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path+":2:5: ") {
		t.Errorf("got %v", err)
	}
	if _, err := Load(path + "x"); protocol.CodeOf(err) != protocol.CodeUsage || !strings.HasSuffix(err.Error(), path+"x cannot be read: no such file or directory") {
		t.Errorf("got %v", err)
	}
}

// FuzzParse checks that no script breaks the parser, and that what it takes can be played.
func FuzzParse(f *testing.F) {
	f.Add(counting, "count words in a b")
	f.Add(`turns: [{chunks: [{parts: [{functionCall: {name: a, partialArgs: [{jsonPath: $.a}]}}]}], error: {status: 429}}]`, "")
	f.Add("rules:\n- {partial_args: true, signature: AQ==, thought: t, calls: [{tool: a, args: {x: [1, {}, .inf], y: {json: '1'}}}]}", "x")
	f.Add("a: &b\n  <<: *b\n", "")
	f.Fuzz(func(t *testing.T, script, text string) {
		s, err := Parse([]byte(script))
		if err != nil {
			return
		}
		r, err := NewPlayer(s).Reply([]*genai.Content{user(text)})
		if err != nil {
			return
		}
		for _, c := range r.Chunks {
			if _, err := json.Marshal(c.Response("m")); err != nil {
				t.Errorf("the answer cannot be encoded: %v", err)
			}
		}
	})
}
