package assemble

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

// feed gives the assembler one piece per line of parts, in JSON, and then the finish reason.
func feed(t *testing.T, finish string, pieces ...string) (*model.LLMResponse, error) {
	t.Helper()
	var a Assembler
	for _, piece := range pieces {
		var parts []*genai.Part
		if err := json.Unmarshal([]byte(piece), &parts); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Add(response(parts, "")); err != nil {
			return nil, err
		}
	}
	if _, err := a.Add(response(nil, genai.FinishReason(finish))); err != nil {
		return nil, err
	}
	return a.Final()
}

func response(parts []*genai.Part, finish genai.FinishReason) *genai.GenerateContentResponse {
	return &genai.GenerateContentResponse{Candidates: []*genai.Candidate{{Content: &genai.Content{Parts: parts}, FinishReason: finish}}}
}

func TestPiecesBecomeParts(t *testing.T) {
	for _, c := range []struct {
		name   string
		pieces []string
		want   string
	}{
		{"text is joined", []string{`[{"text":"a"}]`, `[{"text":"b"},{"text":"c"}]`}, `[{"text":"abc"}]`},
		{"thoughts stay apart", []string{`[{"text":"a","thought":true}]`, `[{"text":"b","thought":true}]`, `[{"text":"c"}]`}, `[{"text":"ab","thought":true},{"text":"c"}]`},
		{"signed text stays apart", []string{`[{"text":"a"}]`, `[{"text":"b","thoughtSignature":"AQ=="}]`, `[{"text":"c"}]`}, `[{"text":"a"},{"text":"b","thoughtSignature":"AQ=="},{"text":"c"}]`},
		{"a signature alone is a part", []string{`[{"text":"a"}]`, `[{"text":"","thoughtSignature":"AQ=="}]`}, `[{"text":"a"},{"thoughtSignature":"AQ=="}]`},
		{"empty text is nothing", []string{`[{"text":"a"}]`, `[{"text":""}]`, `[{"functionCall":{"name":"f"}}]`, `[{"text":""}]`}, `[{"text":"a"},{"functionCall":{"name":"f"}}]`},
		{"other parts stay", []string{`[{"text":"a"}]`, `[{"executableCode":{"code":"x"}}]`, `[{"text":"b"}]`}, `[{"text":"a"},{"executableCode":{"code":"x"}},{"text":"b"}]`},
		{"text between fragments", []string{`[{"functionCall":{"name":"f","willContinue":true}}]`, `[{"text":"a"}]`, `[{"functionCall":{}}]`}, `[{"text":"a"},{"functionCall":{"name":"f"}}]`},
		{"whole args and fragments", []string{`[{"functionCall":{"name":"f","args":{"a":1},"partialArgs":[{"jsonPath":"$.b","numberValue":2}]}}]`}, `[{"functionCall":{"name":"f","args":{"a":1,"b":2}}}]`},
		{"an empty fragment ends a string", []string{`[{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.s","stringValue":"x","willContinue":true}],"willContinue":true}}]`, `[{"functionCall":{"partialArgs":[{"jsonPath":"$.s"}]}}]`}, `[{"functionCall":{"name":"f","args":{"s":"x"}}}]`},
		{"fragments with the id", []string{`[{"functionCall":{"name":"f","id":"1","willContinue":true}}]`, `[{"functionCall":{"name":"f","id":"1","partialArgs":[{"jsonPath":"$['a']","nullValue":"NULL_VALUE"}]}}]`}, `[{"functionCall":{"name":"f","id":"1","args":{"a":null}}}]`},
		{"two calls in fragments", []string{`[{"functionCall":{"name":"f","willContinue":true}},{"functionCall":{}},{"functionCall":{"name":"f","willContinue":true}},{"functionCall":{}}]`}, `[{"functionCall":{"name":"f"}},{"functionCall":{"name":"f"}}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := feed(t, "STOP", c.pieces...)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := json.Marshal(r.Content.Parts)
			var g, w any
			_ = json.Unmarshal(got, &g)
			if err := json.Unmarshal([]byte(c.want), &w); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(w, g); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestPiecesThatDoNotFitAreAnError(t *testing.T) {
	path := func(p string) string {
		b, _ := json.Marshal(p)
		return `[{"functionCall":{"name":"f","partialArgs":[{"jsonPath":` + string(b) + `,"stringValue":"x"}]}}]`
	}
	set := func(args string) string { return `[{"functionCall":{"name":"f","partialArgs":[` + args + `]}}]` }
	for _, c := range []struct {
		name, finish, says string
		pieces             []string
	}{
		{"no finish", "", "broke off", []string{`[{"text":"a"}]`}},
		{"open call", "STOP", `inside its call of "f"`, []string{`[{"functionCall":{"name":"f","willContinue":true}}]`}},
		{"open call at the token limit", "MAX_TOKENS", `inside its call of "f"`, []string{`[{"functionCall":{"name":"f","willContinue":true}}]`}},
		{"call inside a call", "STOP", "inside", []string{`[{"functionCall":{"name":"f","willContinue":true}},{"functionCall":{"name":"g"}}]`}},
		{"fragment of nothing", "STOP", "had not begun", []string{`[{"functionCall":{}}]`}},
		{"string without end", "STOP", "no end", []string{set(`{"jsonPath":"$.a","stringValue":"x","willContinue":true}`)}},
		{"hole in an array", "STOP", "lacks element 1 of 3", []string{set(`{"jsonPath":"$.a[0]","stringValue":"x"},{"jsonPath":"$.a[2]","stringValue":"x"}`)}},
		{"written twice", "STOP", "twice", []string{set(`{"jsonPath":"$.a","stringValue":"x"},{"jsonPath":"$.a","stringValue":"y"}`)}},
		{"through a value", "STOP", "through a value", []string{set(`{"jsonPath":"$.a","stringValue":"x"},{"jsonPath":"$.a.b","stringValue":"y"}`)}},
		{"array and object", "STOP", "through a value", []string{set(`{"jsonPath":"$.a[0]","stringValue":"x"},{"jsonPath":"$.a.b","stringValue":"y"}`)}},
		{"object as value", "STOP", "no value", []string{set(`{"jsonPath":"$.a.b","stringValue":"x"},{"jsonPath":"$.a","stringValue":"y"}`)}},
		{"whole", "STOP", "as a whole", []string{path("$")}},
		{"no root", "STOP", "begin with $", []string{path("a")}},
		{"wildcard", "STOP", "not a path", []string{path("$.*")}},
		{"slice", "STOP", "not a path", []string{path("$.a[0:2]")}},
		{"far index", "STOP", "more than", []string{path("$.a[4000000000]")}},
		{"deep", "STOP", "more than 64 steps", []string{path("$" + strings.Repeat(".a", 65))}},
		{"open quote", "STOP", "not a path", []string{path("$['a")}},
		{"empty name", "STOP", "not a path", []string{path("$..a")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := feed(t, c.finish, c.pieces...)
			if protocol.CodeOf(err) != protocol.CodeModelFailed || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %+v, %v, want model_failed saying %q", r, err, c.says)
			}
		})
	}
}

func TestTokenLimitIsAnAnswer(t *testing.T) {
	r, err := feed(t, "MAX_TOKENS", `[{"text":"as far as it we"}]`)
	if err != nil || r.FinishReason != genai.FinishReasonMaxTokens {
		t.Errorf("got %+v, %v", r, err)
	}
}

// FuzzAssemble checks that any pieces end in an answer without fragments, or in an error of the two codes.
func FuzzAssemble(f *testing.F) {
	f.Add([]byte(`[[{"text":"a"}],[{"functionCall":{"name":"f","willContinue":true}}],[{"functionCall":{"partialArgs":[{"jsonPath":"$.a[1].b","numberValue":1},{"jsonPath":"$.a[0]","boolValue":true}]}}]]`))
	f.Add([]byte(`[[{"functionCall":{"name":"f","args":{"a":{}},"partialArgs":[{"jsonPath":"$['a']['b']"}]}}]]`))
	f.Add([]byte(`[[null,{"functionCall":{"name":"f","partialArgs":[null]}}]]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var pieces [][]*genai.Part
		if json.Unmarshal(data, &pieces) != nil {
			return
		}
		var a Assembler
		shown := 0
		for _, parts := range pieces {
			partial, err := a.Add(response(parts, genai.FinishReasonStop))
			if err != nil {
				return
			}
			if partial != nil {
				n := 0
				for _, p := range partial.Content.Parts {
					if p.FunctionCall != nil {
						n++
					}
				}
				shown = max(shown, n)
			}
		}
		r, err := a.Final()
		if err != nil {
			return
		}
		calls := 0
		for _, p := range r.Content.Parts {
			if p.FunctionCall == nil {
				continue
			}
			calls++
			if p.FunctionCall.Args == nil || p.FunctionCall.WillContinue != nil || p.FunctionCall.PartialArgs != nil {
				t.Errorf("a fragment is left: %+v", p.FunctionCall)
			}
		}
		if shown != calls {
			t.Errorf("%d calls were shown, %d are in the answer", shown, calls)
		}
	})
}
