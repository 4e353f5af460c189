// Package modeltest is the suite that every model adapter passes. It drives the adapter with scripts, so an adapter that
// speaks to a server is opened against a server that plays the script.
package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/model/scripted"
)

// Run runs the suite. open gives a model that answers as the script says; it is called once per test and cleans up with
// t.Cleanup. Retries must be quick: a fault asks for 10 ms.
func Run(t *testing.T, open func(t *testing.T, script *scripted.Script) model.LLM) {
	for _, c := range []struct {
		name   string
		script string
		check  func(t *testing.T, m model.LLM)
	}{
		{"TextArrivesWhole", text, textArrivesWhole},
		{"StreamEndsInTheSameAnswer", everything, streamEndsInTheSameAnswer},
		{"PartialsAreTheStartOfTheFinal", everything, partialsAreTheStartOfTheFinal},
		{"ParallelCallsKeepTheirOrder", parallel, parallelCallsKeepTheirOrder},
		{"ArgumentsInFragmentsArePutTogether", fragments, argumentsInFragments},
		{"SignaturesComeBackByteExact", signed, signaturesComeBack},
		{"UsageIsReported", text, usageIsReported},
		{"TransientFaultIsAskedAgain", transient, transientFaultIsAskedAgain},
		{"LastingTransientFaultIsModelFailed", "rules: [{text: x, error: {status: 503, retry_after: 1ms}}]", fails(protocol.CodeModelFailed)},
		{"RefusalIsModelRefused", "rules: [{text: x, error: {status: 400, message: no such thing}}]", fails(protocol.CodeModelRefused)},
		{"BrokenCallIsAnError", brokenCall, fails(protocol.CodeModelFailed)},
		{"CutAnswerIsAnErrorAndNoFinal", "rules: [{text: one two three four, chunks: 4, cut: true}]", fails(protocol.CodeModelFailed)},
		{"MissingFinishIsAnErrorAndNoFinal", "turns: [{parts: [{text: half}]}]", fails(protocol.CodeModelFailed)},
		{"WithheldAnswerIsModelRefused", "turns: [{parts: [], finishReason: SAFETY}]", fails(protocol.CodeModelRefused)},
		{"CancelEndsTheWait", "rules: [{text: x, delay: 1h}]", cancelEndsTheWait},
		{"ReaderMayStop", everything, readerMayStop},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := scripted.Parse([]byte(c.script))
			if err != nil {
				t.Fatalf("the suite's own script: %v", err)
			}
			c.check(t, open(t, s))
		})
	}
}

const (
	text     = `rules: [{user: 'say (?P<what>.+)', text: '{{ .what }} ünd more', chunks: 5}]`
	parallel = `rules: [{user: 'cities (?P<list>.+)', split_calls: true, calls: [{tool: w, each: {of: '{{ .list }}', as: city}, args: {city: '{{ .city }}', days: 3}}]}]`
	signed   = `
rules:
  - {turn: 0, signature: AP8Q+/8=, calls: [{tool: p, args: {}}, {tool: q, args: {n: 1}}]}
  - {after: [p, q], text: 'fin'}
`
	everything = `
rules:
  - thought: let me see
    text: I will look at both of them
    chunks: 4
    signature: c2lnLTE=
    split_calls: true
    calls: [{tool: a, args: {x: 1, s: "é"}}, {tool: b, args: {list: [1, two, true]}}, {tool: a, args: {x: 2}}]
`
	fragments = `
rules:
  - signature: c2lnLTE=
    partial_args: true
    calls:
      - {tool: write_doc, args: {title: Report, opts: {tags: [a, b]}, draft: false, n: 0, "odd.key": x, none: {}}}
      - {tool: write_doc, args: {}}
`
	transient  = `rules: [{text: here, error: {status: 429, retry_after: 10ms, times: 2}}]`
	brokenCall = `turns: [{chunks: [{parts: [{functionCall: {name: w, willContinue: true}}]}, {parts: [], finishReason: STOP}]}]`
)

func question(text string) *model.LLMRequest {
	return &model.LLMRequest{Contents: []*genai.Content{genai.NewContentFromText(text, genai.RoleUser)}}
}

// ask returns the partials and the final, and fails the test when there is not exactly one final, at the end.
func ask(t *testing.T, m model.LLM, req *model.LLMRequest, stream bool) (partials []*model.LLMResponse, final *model.LLMResponse) {
	t.Helper()
	for r, err := range m.GenerateContent(t.Context(), req, stream) {
		switch {
		case err != nil:
			t.Fatalf("GenerateContent(stream=%v): %v", stream, err)
		case final != nil:
			t.Fatalf("a response came after the final one")
		case r.Partial:
			partials = append(partials, r)
		default:
			final = r
		}
	}
	if final == nil {
		t.Fatalf("no final response came")
	}
	if !stream && len(partials) > 0 {
		t.Fatalf("%d partial responses came without a stream", len(partials))
	}
	return partials, final
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	g, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatalf("%s cannot be encoded: %v", what, err)
	}
	w, _ := json.MarshalIndent(want, "", " ")
	if d := cmp.Diff(string(w), string(g)); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func textOf(c *genai.Content, thought bool) string {
	var out string
	for _, p := range c.Parts {
		if p.Thought == thought {
			out += p.Text
		}
	}
	return out
}

func callsOf(c *genai.Content) []*genai.FunctionCall {
	out := []*genai.FunctionCall{}
	for _, p := range c.Parts {
		if p.FunctionCall != nil {
			out = append(out, p.FunctionCall)
		}
	}
	return out
}

func textArrivesWhole(t *testing.T, m model.LLM) {
	for _, stream := range []bool{false, true} {
		partials, final := ask(t, m, question("say hello"), stream)
		same(t, "parts", final.Content, genai.NewContentFromText("hello ünd more", genai.RoleModel))
		if final.FinishReason != genai.FinishReasonStop || !final.TurnComplete {
			t.Errorf("finish %q, turn complete %v", final.FinishReason, final.TurnComplete)
		}
		if stream && len(partials) != 5 {
			t.Errorf("%d partials, want the script's 5", len(partials))
		}
	}
}

func streamEndsInTheSameAnswer(t *testing.T, m model.LLM) {
	_, whole := ask(t, m, question("go"), false)
	_, streamed := ask(t, m, question("go"), true)
	same(t, "streamed answer", streamed, whole)
	if n := len(callsOf(whole.Content)); n != 3 {
		t.Errorf("%d calls, want 3", n)
	}
	if got := textOf(whole.Content, true); got != "let me see" {
		t.Errorf("thought %q", got)
	}
}

func partialsAreTheStartOfTheFinal(t *testing.T, m model.LLM) {
	partials, final := ask(t, m, question("go"), true)
	var text, thought string
	whole := callsOf(final.Content)
	for _, p := range partials {
		text += textOf(p.Content, false)
		thought += textOf(p.Content, true)
		calls := callsOf(p.Content)
		if len(calls) > len(whole) {
			t.Fatalf("a partial has %d calls, the final %d", len(calls), len(whole))
		}
		same(t, "calls of a partial", calls, whole[:len(calls):len(calls)])
		for _, c := range calls {
			c.ID = "set by the reader"
		}
	}
	if text != textOf(final.Content, false) || thought != textOf(final.Content, true) {
		t.Errorf("the partials say %q and %q, the final %q and %q", text, thought, textOf(final.Content, false), textOf(final.Content, true))
	}
	if len(whole) > 0 && whole[0].ID != "" {
		t.Errorf("a partial's call is the final's: an id set on one shows on the other")
	}
}

func parallelCallsKeepTheirOrder(t *testing.T, m model.LLM) {
	for _, stream := range []bool{false, true} {
		_, final := ask(t, m, question("cities A, B, C,D"), stream)
		var want []*genai.FunctionCall
		for _, city := range []string{"A", "B", "C", "D"} {
			want = append(want, &genai.FunctionCall{Name: "w", Args: map[string]any{"city": city, "days": 3}})
		}
		same(t, "calls", callsOf(final.Content), want)
	}
}

func argumentsInFragments(t *testing.T, m model.LLM) {
	_, final := ask(t, m, question("go"), true)
	calls := callsOf(final.Content)
	if len(calls) != 2 {
		t.Fatalf("%d calls, want 2", len(calls))
	}
	same(t, "args", calls[0].Args, map[string]any{
		"title": "Report", "opts": map[string]any{"tags": []string{"a", "b"}}, "draft": false, "n": 0, "odd.key": "x", "none": map[string]any{},
	})
	if calls[1].Args == nil || len(calls[1].Args) != 0 {
		t.Errorf("args of a call without arguments: %v, want an empty map", calls[1].Args)
	}
	if calls[0].WillContinue != nil || calls[0].PartialArgs != nil {
		t.Errorf("the call still looks like a fragment")
	}
	if got := final.Content.Parts[0].ThoughtSignature; !bytes.Equal(got, []byte("sig-1")) {
		t.Errorf("signature %q", got)
	}
}

func signaturesComeBack(t *testing.T, m model.LLM) {
	for _, stream := range []bool{false, true} {
		req := question("go")
		_, first := ask(t, m, req, stream)
		if len(first.Content.Parts) != 2 {
			t.Fatalf("%d parts, want 2", len(first.Content.Parts))
		}
		if got, want := first.Content.Parts[0].ThoughtSignature, []byte{0, 0xff, 0x10, 0xfb, 0xff}; !bytes.Equal(got, want) {
			t.Errorf("signature % x, want % x", got, want)
		}
		if got := first.Content.Parts[1].ThoughtSignature; got != nil {
			t.Errorf("a signature % x was invented", got)
		}
		answers := &genai.Content{Role: genai.RoleUser}
		for _, c := range callsOf(first.Content) {
			answers.Parts = append(answers.Parts, genai.NewPartFromFunctionResponse(c.Name, map[string]any{"result": 1}))
		}
		req.Contents = append(req.Contents, first.Content, answers)
		_, second := ask(t, m, req, stream) // a server that checks refuses a signature that was touched
		if got := textOf(second.Content, false); got != "fin" {
			t.Errorf("the second answer is %q", got)
		}
	}
}

func usageIsReported(t *testing.T, m model.LLM) {
	for _, stream := range []bool{false, true} {
		_, final := ask(t, m, question("say hello"), stream)
		u := final.UsageMetadata
		if u == nil || u.PromptTokenCount == 0 || u.CandidatesTokenCount == 0 || u.TotalTokenCount != u.PromptTokenCount+u.CandidatesTokenCount {
			t.Errorf("usage %+v", u)
		}
	}
}

func transientFaultIsAskedAgain(t *testing.T, m model.LLM) {
	for i, stream := range []bool{false, true} {
		_, final := ask(t, m, question([]string{"plain", "streamed"}[i]), stream)
		if got := textOf(final.Content, false); got != "here" {
			t.Errorf("answer %q", got)
		}
	}
}

// fails wants one error of that code, as the last thing, and no final.
func fails(code protocol.Code) func(*testing.T, model.LLM) {
	return func(t *testing.T, m model.LLM) {
		for _, stream := range []bool{false, true} {
			var failure error
			for r, err := range m.GenerateContent(t.Context(), question("go"), stream) {
				if failure != nil {
					t.Fatalf("something came after the error %v", failure)
				}
				if err == nil && !r.Partial {
					t.Fatalf("a final response came (stream=%v)", stream)
				}
				failure = err
			}
			if failure == nil || protocol.CodeOf(failure) != code {
				t.Errorf("stream=%v: got %v, want %s", stream, failure, code)
			}
		}
	}
}

func cancelEndsTheWait(t *testing.T, m model.LLM) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithTimeout(t.Context(), 20*time.Millisecond) // ends while the answer is waited for
	defer stop()
	for _, c := range []struct {
		ctx  context.Context
		want protocol.Code
	}{{cancelled, protocol.CodeCancelled}, {late, protocol.CodeExpired}} {
		for _, stream := range []bool{false, true} {
			var failure error
			for r, err := range m.GenerateContent(c.ctx, question("go"), stream) {
				if err == nil && !r.Partial {
					t.Fatalf("a final response came")
				}
				failure = err
			}
			if protocol.CodeOf(failure) != c.want {
				t.Errorf("stream=%v: got %v, want %s", stream, failure, c.want)
			}
		}
	}
}

func readerMayStop(t *testing.T, m model.LLM) {
	for r, err := range m.GenerateContent(t.Context(), question("go"), true) {
		if err != nil || !r.Partial {
			t.Fatalf("the first thing of a stream is %+v, %v", r, err)
		}
		return
	}
}
