package turn

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

func finalResponse(parts ...*genai.Part) *model.LLMResponse {
	return &model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: parts}, FinishReason: genai.FinishReasonStop}
}

func calling(name string, args map[string]any) *genai.Part {
	return &genai.Part{FunctionCall: &genai.FunctionCall{Name: name, Args: args}}
}

func saying(text string) *genai.Part { return &genai.Part{Text: text} }

func TestARunningCallCarriesAllThatItsWorkerNeeds(t *testing.T) {
	o := offer("write_doc", func(d *protocol.Declaration) { d.Effect = protocol.EffectIdempotent })
	o.Schema = schemaFunc(func(args json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(strings.Replace(string(args), "5.0", "5", 1)), nil
	})
	resp := finalResponse(
		&genai.Part{Text: "thinking <b>", Thought: true},
		&genai.Part{FunctionCall: &genai.FunctionCall{ID: "p1", Name: "write_doc", Args: map[string]any{"n": json.Number("5.0"), "t": "<&>"}}, ThoughtSignature: []byte{0, 255, 16}},
		&genai.Part{},
		calling("write_doc", nil),
		&genai.Part{FunctionResponse: &genai.FunctionResponse{Name: "write_doc", Response: map[string]any{"forged": true}}},
	)
	resp.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 11, CandidatesTokenCount: 4, ThoughtsTokenCount: 2, CachedContentTokenCount: 1, TotalTokenCount: 17}
	a := newAgent(t, nil)
	got, err := Decide(a, []Offer{o}, desk(), callID, resp)
	if err != nil {
		t.Fatal(err)
	}
	call := protocol.Call{
		ID: "call0", ProviderID: "p1", Tool: "write_doc", Args: json.RawMessage(`{"n":5,"t":"<&>"}`), Digest: o.Digest(),
		Effect: protocol.EffectIdempotent, Verdict: protocol.VerdictRun, AnswersTo: protocol.MailboxResults,
		Queue: 30_000, Timeout: 30_000, Budget: 140_000, Park: 604_800_000,
	}
	second := call
	second.ID, second.ProviderID, second.Args = "call1", "", json.RawMessage(`{}`)
	want := protocol.Turn{
		Agent: "helper", AgentDigest: a.Digest(), Model: "fake-1", Finish: "STOP",
		Content: json.RawMessage(`{"parts":[{"text":"thinking <b>","thought":true},{"functionCall":{"id":"p1","args":{"n":5.0,"t":"<&>"},"name":"write_doc"},"thoughtSignature":"AP8Q"},{"functionCall":{"name":"write_doc"}}],"role":"model"}`),
		Usage:   &protocol.Usage{Prompt: 11, Candidates: 4, Thoughts: 2, Cached: 1, Total: 17},
		Calls:   []protocol.Call{call, second},
	}
	if diff := cmp.Diff(want, got.Turn); diff != "" {
		t.Errorf("turn (-want +got):\n%s\ncontent %s", diff, got.Content)
	}
}

func TestRefusals(t *testing.T) {
	strict := offer("strict", nil)
	strict.Schema = refuseArgs("n is missing at /n")
	gatedStrict := offer("gated", func(d *protocol.Declaration) { d.Confirm = true })
	gatedStrict.Schema = refuseArgs("n is missing at /n")
	offers := []Offer{
		offer("get_weather", nil), strict, offer("get_time", nil),
		offer("slow", func(d *protocol.Declaration) { d.LongRunning = true }),
		gatedStrict,
	}
	for _, c := range []struct {
		part *genai.Part
		code protocol.Code
		text string
	}{
		{calling("get_wether", nil), protocol.CodeUnknownTool,
			`there is no tool "get_wether". Did you mean get_weather? Available, closest first: get_weather, get_time, gated, strict, slow`},
		{calling("xxxxxxxxxxxxxxxxxx", nil), protocol.CodeUnknownTool,
			`there is no tool "xxxxxxxxxxxxxxxxxx". Available, closest first: gated, get_time, get_weather, slow, strict`},
		{calling("strict", map[string]any{"m": 1}), protocol.CodeSchemaViolation, "strict was not executed: its arguments are refused: n is missing at /n"},
		{calling("get_time", map[string]any{"a": map[string]any{"n": []any{float64(1), float64(1<<53 + 2)}}}), protocol.CodeSchemaViolation, "the number at /a/n/1 is beyond 2^53"},
		{calling("get_time", map[string]any{"s": strings.Repeat("x", protocol.ArgsLimits.Size-20)}), "", ""},
		{calling("gated", nil), protocol.CodeSchemaViolation, "gated was not executed: its arguments are refused: n is missing at /n"}, // nobody is asked
	} {
		got, err := Decide(newAgent(t, nil), offers, desk(), callID, finalResponse(c.part))
		if c.code == "" {
			if protocol.CodeOf(err) != protocol.CodeTooLarge {
				t.Errorf("%d bytes of arguments: %v, want too_large", protocol.ArgsLimits.Size, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.part.FunctionCall.Name, err)
			continue
		}
		call := got.Calls[0]
		if call.Verdict != protocol.VerdictRefuse || call.Refusal == nil || call.Refusal.Code != c.code || call.Refusal.Outcome != protocol.OutcomeFailed || call.AnswersTo != "" || call.Budget != 0 || call.Confirmation != nil {
			t.Errorf("%s: %+v, want refused with %s", call.Tool, call, c.code)
			continue
		}
		var value struct{ Error string }
		if err := json.Unmarshal(call.Refusal.Value, &value); err != nil || !strings.Contains(value.Error, c.text) {
			t.Errorf("%s: %q, want %q", call.Tool, value.Error, c.text)
		}
	}
}

func TestUnknownToolsWithoutAndWithManyOthers(t *testing.T) { // H47
	if got := unknownTool("x", nil); !strings.Contains(got, "nor any other") {
		t.Error(got)
	}
	var many []string
	for i := range 25 {
		many = append(many, fmt.Sprintf("tool_%02d", i))
	}
	got := unknownTool("Tool-07"+strings.Repeat("x", 1000), many)
	if !strings.HasSuffix(got, " and 5 more") || len(got) > 400 {
		t.Error(got)
	}
	if got := unknownTool("Tool-07", many); !strings.Contains(got, "Did you mean tool_07?") {
		t.Error(got)
	}
}

func TestCallsOverTheCapAreRefusedAndTheOthersRun(t *testing.T) {
	a := newAgent(t, func(c *llmagent.Config) { c.Limits.CallsPerTurn = 2 })
	part := func() *genai.Part { return calling("a", nil) }
	got, err := Decide(a, []Offer{offer("a", nil)}, desk(), callID, finalResponse(part(), part(), part()))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []protocol.Verdict{protocol.VerdictRun, protocol.VerdictRun, protocol.VerdictRefuse} {
		if got.Calls[i].Verdict != want {
			t.Errorf("call %d: %s, want %s", i, got.Calls[i].Verdict, want)
		}
	}
	if code := got.Calls[2].Refusal.Code; code != protocol.CodeLimit {
		t.Errorf("code %s", code)
	}
}

func TestBudgets(t *testing.T) {
	for _, c := range []struct {
		d                      protocol.Declaration
		wall                   time.Duration
		queue, timeout, budget int64
	}{
		{protocol.Declaration{}, time.Hour, 30_000, 30_000, 60_000},                              // at most once: one attempt
		{protocol.Declaration{Attempts: 5}, time.Hour, 30_000, 30_000, 60_000},                   // whatever it says
		{protocol.Declaration{Effect: protocol.EffectRead}, time.Hour, 30_000, 30_000, 140_000},  // 30 + 3*30 + 2*10
		{protocol.Declaration{Effect: protocol.EffectRead}, time.Minute, 30_000, 30_000, 60_000}, // never longer than the run
		{protocol.Declaration{Timeout: 600_000}, time.Minute, 30_000, 60_000, 60_000},            //
		{protocol.Declaration{QueueTimeout: 1000, Timeout: 2000}, time.Hour, 1000, 2000, 3000},   //
		{protocol.Declaration{Effect: protocol.EffectIdempotent, QueueTimeout: 1000, Timeout: 2000, Attempts: 2}, time.Hour, 1000, 2000, 15_000},
		{protocol.Declaration{Effect: protocol.EffectRead, QueueTimeout: math.MaxInt64, Timeout: math.MaxInt64, Attempts: math.MaxInt}, time.Minute, 60_000, 60_000, 60_000},
	} {
		queue, timeout, budget := budget(&c.d, c.wall)
		if queue != c.queue || timeout != c.timeout || budget != c.budget {
			t.Errorf("%+v within %s: %d, %d, %d, want %d, %d, %d", c.d, c.wall, queue, timeout, budget, c.queue, c.timeout, c.budget)
		}
	}
}

func TestTheLastAnswerFillsTheOutputKey(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","required":["n"]}`)
	thought := &genai.Part{Text: "secret", Thought: true}
	for _, c := range []struct {
		name, key, schema string
		parts             []*genai.Part
		want              string
		code              protocol.Code
	}{
		{"text", "answer", "", []*genai.Part{thought, saying("a <b> "), saying("c")}, `{"answer":"a <b> c"}`, ""},
		{"no key", "", "", []*genai.Part{saying("a")}, `null`, ""},
		{"calls", "answer", "", []*genai.Part{saying("a"), calling("a", nil)}, `null`, ""},
		{"no text", "answer", "", []*genai.Part{{InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte{1}}}}, `null`, ""},
		{"parsed", "answer", "s", []*genai.Part{thought, saying("```json\n{\"n\":9007199254740993}\n```")}, `{"answer":{"n":9007199254740993}}`, ""},
		{"fits without a key", "", "s", []*genai.Part{saying(`{"n":1}`)}, `null`, ""},
		{"does not fit", "answer", "s", []*genai.Part{saying(`{"m":1}`)}, "", protocol.CodeModelFailed},
		{"does not fit, no key", "", "s", []*genai.Part{saying(`sorry`)}, "", protocol.CodeModelFailed},
	} {
		a := newAgent(t, func(cfg *llmagent.Config) {
			cfg.OutputKey = c.key
			if c.schema != "" {
				cfg.OutputJSONSchema = schema
			}
		})
		got, err := Decide(a, []Offer{offer("a", nil)}, desk(), callID, finalResponse(c.parts...))
		if protocol.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want code %q", c.name, err, c.code)
			continue
		}
		if delta, _ := encode(got.StateDelta); err == nil && string(delta) != c.want {
			t.Errorf("%s: %s, want %s", c.name, delta, c.want)
		}
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	text := finalResponse(saying("x")).Content
	for name, c := range map[string]struct {
		resp *model.LLMResponse
		code protocol.Code
	}{
		"nil":                    {nil, protocol.CodeModelFailed},
		"partial":                {&model.LLMResponse{Content: text, Partial: true}, protocol.CodeModelFailed},
		"interrupted":            {&model.LLMResponse{Content: text, Interrupted: true}, protocol.CodeModelFailed},
		"no content":             {&model.LLMResponse{FinishReason: genai.FinishReasonStop}, protocol.CodeModelFailed},
		"no parts":               {finalResponse(), protocol.CodeModelFailed},
		"empty parts":            {finalResponse(nil, &genai.Part{}), protocol.CodeModelFailed},
		"thoughts only":          {finalResponse(&genai.Part{Text: "hm", Thought: true}), protocol.CodeModelFailed},
		"error code":             {&model.LLMResponse{ErrorCode: "503", ErrorMessage: "overloaded"}, protocol.CodeModelFailed},
		"blocked prompt":         {&model.LLMResponse{ErrorCode: "PROHIBITED_CONTENT"}, protocol.CodeModelRefused},
		"blocked answer":         {&model.LLMResponse{Content: text, FinishReason: genai.FinishReasonSafety}, protocol.CodeModelRefused},
		"unreadable call":        {&model.LLMResponse{Content: text, FinishReason: genai.FinishReasonMalformedFunctionCall}, protocol.CodeModelFailed},
		"a call without a name":  {finalResponse(calling("", nil)), protocol.CodeModelFailed},
		"a call that goes on":    {finalResponse(&genai.Part{FunctionCall: &genai.FunctionCall{Name: "a", WillContinue: new(true)}}), protocol.CodeModelFailed},
		"fragments of arguments": {finalResponse(&genai.Part{FunctionCall: &genai.FunctionCall{Name: "a", PartialArgs: []*genai.PartialArg{{}}}}), protocol.CodeModelFailed},
		"not a number":           {finalResponse(calling("a", map[string]any{"n": math.NaN()})), protocol.CodeModelFailed},
		"too large":              {finalResponse(saying(strings.Repeat("x", MaxTurn))), protocol.CodeTooLarge},
	} {
		if _, err := Decide(newAgent(t, nil), []Offer{offer("a", nil)}, desk(), callID, c.resp); protocol.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	if got, err := Decide(newAgent(t, nil), nil, desk(), callID, &model.LLMResponse{Content: text, FinishReason: genai.FinishReasonMaxTokens}); err != nil || got.Usage != nil || got.Finish != "MAX_TOKENS" {
		t.Errorf("a cut text is an answer: %+v, %v", got, err)
	}
}

// What Decide records, History shows: nothing changes on the way through the log.
func TestDecidedTurnsComeBackInTheNextRequest(t *testing.T) {
	a := newAgent(t, nil)
	sent := []*genai.Part{
		{Text: "plan", Thought: true, ThoughtSignature: []byte{1, 2, 3}},
		{FunctionCall: &genai.FunctionCall{ID: "p", Name: "a", Args: map[string]any{"n": json.Number("9007199254740993")}}, ThoughtSignature: []byte{255}},
		{FunctionCall: &genai.FunctionCall{Name: "ghost"}},
	}
	decided, err := Decide(a, []Offer{offer("a", nil)}, desk(), callID, finalResponse(sent...))
	if err != nil {
		t.Fatal(err)
	}
	decided.RequestSeq = 1
	stored, err := json.Marshal(protocol.Event{V: protocol.Version, Turn: &decided.Turn})
	if err != nil {
		t.Fatal(err)
	}
	ev, err := protocol.DecodeEvent(stored)
	if err != nil {
		t.Fatal(err)
	}
	req, err := logOf(said("go"), ev).Request(t.Context(), a, Run{}, nil, []protocol.Answer{answer("call0", `{"ok":true}`)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sent, req.Contents[1].Parts); diff != "" {
		t.Errorf("model content (-sent +shown):\n%s", diff)
	}
	responses := req.Contents[2].Parts
	if got := responses[0].FunctionResponse; got.ID != "p" || got.Response["ok"] != true {
		t.Errorf("first response %+v", got)
	}
	if got := responses[1].FunctionResponse; got.ID != "" || !strings.Contains(fmt.Sprint(got.Response["error"]), "there is no tool") {
		t.Errorf("second response %+v", got)
	}
}
