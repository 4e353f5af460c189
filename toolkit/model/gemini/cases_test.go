package gemini

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/model/fakellm"
)

// converse says each text in turn and answers every call from results, by tool, until the model says no more.
func converse(t *testing.T, m model.LLM, stream bool, results map[string]map[string]any, texts ...string) []*genai.Content {
	t.Helper()
	var history []*genai.Content
	for _, text := range texts {
		history = append(history, userSays(text))
		for {
			r := final(t, m, &model.LLMRequest{Contents: history}, stream)
			history = append(history, r.Content)
			answers := &genai.Content{Role: genai.RoleUser}
			for _, p := range r.Content.Parts {
				if f := p.FunctionCall; f != nil {
					answers.Parts = append(answers.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: f.ID, Name: f.Name, Response: results[f.Name]}})
				}
			}
			if len(answers.Parts) == 0 {
				break
			}
			history = append(history, answers)
		}
	}
	return history
}

// sent is the contents of the nth request that came to the server, from 1, as compact JSON.
func sent(t *testing.T, fake *fakellm.Server, n int) string {
	t.Helper()
	var body struct {
		Contents json.RawMessage `json:"contents"`
	}
	if err := json.Unmarshal(fake.Requests()[n-1].Body, &body); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, body.Contents); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func wantJSON(t *testing.T, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(w, g); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestReusedCallIDsAreEchoed(t *testing.T) { // h06
	for _, stream := range []bool{false, true} {
		m, fake := play(t, string(caseFile(t, "h06-reused-call-ids/model.json")))
		converse(t, m, stream, map[string]map[string]any{"a": {"from": "a"}, "b": {"from": "b"}}, "first", "second")
		if fake.Count() != 4 {
			t.Fatalf("%d requests, want 4", fake.Count())
		}
		wantJSON(t, sent(t, fake, 4), `[
			{"role":"user","parts":[{"text":"first"}]},
			{"role":"model","parts":[{"functionCall":{"id":"call_807","name":"a"}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"call_807","name":"a","response":{"from":"a"}}}]},
			{"role":"model","parts":[{"text":"one"}]},
			{"role":"user","parts":[{"text":"second"}]},
			{"role":"model","parts":[{"functionCall":{"id":"call_807","name":"b"}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"call_807","name":"b","response":{"from":"b"}}}]}]`)
	}
}

func TestResponsesGoOutInCallOrder(t *testing.T) { // h08
	m, fake := play(t, string(caseFile(t, "h08-completion-order/model.json")))
	converse(t, m, true, map[string]map[string]any{"slow": {"v": "slow"}, "fast": {"v": "fast"}}, "go")
	wantJSON(t, sent(t, fake, 2), `[
		{"role":"user","parts":[{"text":"go"}]},
		{"role":"model","parts":[{"functionCall":{"id":"1","name":"slow"}},{"functionCall":{"id":"2","name":"fast"}},{"functionCall":{"id":"3","name":"slow"}}]},
		{"role":"user","parts":[
			{"functionResponse":{"id":"1","name":"slow","response":{"v":"slow"}}},
			{"functionResponse":{"id":"2","name":"fast","response":{"v":"fast"}}},
			{"functionResponse":{"id":"3","name":"slow","response":{"v":"slow"}}}]}]`)
}

func TestCallsSplitOverChunksAreOneAnswer(t *testing.T) { // h09
	m, _ := play(t, string(caseFile(t, "h09-stream-split-calls/model.json")))
	var shown []int
	var last *model.LLMResponse
	for r, err := range m.GenerateContent(t.Context(), &model.LLMRequest{Contents: []*genai.Content{userSays("go")}}, true) {
		if err != nil {
			t.Fatal(err)
		}
		shown, last = append(shown, len(r.Content.Parts)), r
	}
	if d := cmp.Diff([]int{1, 2, 2}, shown); d != "" {
		t.Errorf("calls of the two partials and the final (-want +got):\n%s", d)
	}
	b, _ := json.Marshal(last.Content.Parts)
	wantJSON(t, string(b), `[{"functionCall":{"name":"w","args":{"city":"A"}}},{"functionCall":{"name":"w","args":{"city":"B"}}}]`)
	if u := last.UsageMetadata; u == nil || u.PromptTokenCount != 11 || u.CandidatesTokenCount != 4 || u.TotalTokenCount != 15 {
		t.Errorf("usage %+v, want 11/4/15", u)
	}
}

func TestArgumentsInFragmentsAreOneCall(t *testing.T) { // h10
	m, fake := play(t, string(caseFile(t, "h10-stream-partial-args/model.json")))
	history := converse(t, m, true, map[string]map[string]any{"write_doc": {"ok": true}}, "go")
	b, _ := json.Marshal(history[1].Parts)
	wantJSON(t, string(b), `[{"functionCall":{"id":"c1","name":"write_doc","args":{"title":"Report","opts":{"tags":["a","b"]},"draft":false,"n":0}},"thoughtSignature":"c2lnLTE="}]`)
	if got := sent(t, fake, 2); !strings.Contains(got, `"thoughtSignature":"c2lnLTE="`) {
		t.Errorf("the signature did not go back: %s", got)
	}
}

func TestBrokenFragmentsAreNoCall(t *testing.T) { // h10, the stream breaks before the last fragment
	var script map[string]any
	if err := json.Unmarshal(caseFile(t, "h10-stream-partial-args/model.json"), &script); err != nil {
		t.Fatal(err)
	}
	script["turns"].([]any)[0].(map[string]any)["cut"] = true
	b, _ := json.Marshal(script)
	m, _ := play(t, string(b))
	for r, err := range m.GenerateContent(t.Context(), &model.LLMRequest{Contents: []*genai.Content{userSays("go")}}, true) {
		if err == nil {
			t.Fatalf("something to act on came: %+v", r)
		}
		if protocol.CodeOf(err) != protocol.CodeModelFailed {
			t.Errorf("got %v", err)
		}
	}
}

func TestUnsignedCallStaysUnsigned(t *testing.T) { // h11
	for _, stream := range []bool{false, true} {
		m, fake := play(t, string(caseFile(t, "h11-signature-first-only/model.json")))
		converse(t, m, stream, map[string]map[string]any{"p": {"x": 1}, "q": {"y": 1}}, "go")
		got := sent(t, fake, 2)
		if !strings.Contains(got, `{"functionCall":{"id":"a","name":"p"},"thoughtSignature":"AP8Q+/8="},{"functionCall":{"id":"b","name":"q"}}`) {
			t.Errorf("the calls went back as %s", got)
		}
	}
}

// h12: results come to the adapter as objects (invoke wraps the rest); what is left to it is what Gemini would drop.
func TestEveryResultReachesTheModel(t *testing.T) {
	var results []struct {
		Kind string
		JSON json.RawMessage
	}
	if err := json.Unmarshal(caseFile(t, "h12-result-shapes/results.json"), &results); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"array":                     `{"result":[1,2]}`,
		"bool":                      `{"result":true}`,
		"null":                      `{"result":null}`,
		"empty object":              `{"result":{}}`,
		"string":                    `{"result":""}`,
		"own keys output and error": `{"result":{"output":1,"error":"none","rest":2}}`,
	}
	for _, r := range results {
		if want[r.Kind] == "" { // no JSON: invoke's part of the case
			continue
		}
		t.Run(r.Kind, func(t *testing.T) {
			m, fake := play(t, `turns: [{parts: [{functionCall: {name: x}}], finishReason: STOP}, {parts: [{text: done}], finishReason: STOP}]`)
			var response map[string]any
			if json.Unmarshal(r.JSON, &response) != nil || string(r.JSON) == "null" {
				var v any
				_ = json.Unmarshal(r.JSON, &v)
				response = map[string]any{"result": v}
			}
			converse(t, m, false, map[string]map[string]any{"x": response}, "go")
			var contents []struct {
				Parts []struct {
					FunctionResponse struct{ Response json.RawMessage }
				}
			}
			if err := json.Unmarshal([]byte(sent(t, fake, 2)), &contents); err != nil {
				t.Fatal(err)
			}
			wantJSON(t, string(contents[2].Parts[0].FunctionResponse.Response), want[r.Kind])
		})
	}
}

func TestWhatCannotBeEncodedIsNotSent(t *testing.T) { // h12, L3
	m, fake := play(t, `rules: [{user: ., text: x}]`)
	nan := &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{genai.NewPartFromFunctionResponse("x", map[string]any{"x": math.NaN()})}}
	hot := float32(math.Inf(1))
	for name, req := range map[string]*model.LLMRequest{
		"content 1":                 {Contents: []*genai.Content{userSays("go"), nan}},
		"the model's configuration": {Contents: []*genai.Content{userSays("go")}, Config: &genai.GenerateContentConfig{Temperature: &hot}},
	} {
		err := fails(t, m, req, false)
		if protocol.CodeOf(err) != protocol.CodeModelRefused || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want model_refused naming %s", err, name)
		}
	}
	if fake.Count() != 0 {
		t.Errorf("%d requests were sent", fake.Count())
	}
}

func TestSchemaIsDeclaredAsGeminiReadsIt(t *testing.T) { // h14
	var log bytes.Buffer
	m, fake := play(t, `turns: [{parts: [{functionCall: {name: edit, args: {kind: insert_text, level: "2", flag: "true", opt2: 7}}}], finishReason: STOP}]`,
		func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	original := json.RawMessage(caseFile(t, "h14-provider-schema-limits/schema.json"))
	before := string(original)
	req := &model.LLMRequest{Contents: []*genai.Content{userSays("go")}, Config: &genai.GenerateContentConfig{Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
		{Name: "edit", ParametersJsonSchema: original, Parameters: &genai.Schema{Type: genai.TypeObject}},
		{Name: "noargs", ParametersJsonSchema: json.RawMessage(caseFile(t, "h14-provider-schema-limits/schema-noargs.json"))},
		{Name: "broken", ParametersJsonSchema: json.RawMessage(`{"type":"string"}`)},
	}}}}}
	r := final(t, m, req, false)
	if string(original) != before || len(req.Config.Tools[0].FunctionDeclarations) != 3 {
		t.Error("the caller's declarations were changed")
	}
	wantJSON(t, encoded(r.Content.Parts[0].FunctionCall.Args), `{"kind":"insert_text","level":2,"flag":true,"opt2":7}`)
	var body struct {
		Tools []struct{ FunctionDeclarations []map[string]any }
	}
	if err := json.Unmarshal(fake.Requests()[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	golden(t, "h14-declarations.json", body.Tools)
	if !strings.Contains(log.String(), "tool=broken") || !strings.Contains(log.String(), "no object") {
		t.Errorf("the log does not say that broken was left out: %s", &log)
	}
}

func TestSchemasThatHoldThemselvesAreSentWithoutReferences(t *testing.T) { // h13, H34, H35
	m, fake := play(t, `turns: [{parts: [{functionCall: {name: invite, args: {people: [{mail: a, deputy: {mail: b}}]}}}], finishReason: STOP}]`)
	req := &model.LLMRequest{Contents: []*genai.Content{userSays("go")}, Config: &genai.GenerateContentConfig{Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
		{Name: "invite", ParametersJsonSchema: json.RawMessage(caseFile(t, "h13-recursive-schemas/schema-mcp.json"))},
		{Name: "other", ParametersJsonSchema: json.RawMessage(`{"type":"object","properties":{"self":{"$ref":"#"},"nowhere":{"$ref":"#/$defs/none"}}}`)},
		{Name: "plain", ParametersJsonSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)},
	}}}}}
	r := final(t, m, req, false)
	wantJSON(t, encoded(r.Content.Parts[0].FunctionCall.Args), `{"people":[{"mail":"a","deputy":{"mail":"b"}}]}`)
	body := fake.Requests()[0].Body
	var sent struct {
		Tools []struct {
			FunctionDeclarations []struct {
				Name                 string
				ParametersJsonSchema map[string]any
			}
		}
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatal(err)
	}
	declared := sent.Tools[0].FunctionDeclarations
	if len(declared) != 3 || declared[2].Name != "plain" {
		t.Fatalf("declared: %+v", declared)
	}
	if len(body) > 8<<10 || strings.Contains(string(body), "$ref") || strings.Contains(string(body), "$defs") {
		t.Errorf("%d bytes were sent: %s", len(body), body)
	}
	properties := declared[0].ParametersJsonSchema["properties"].(map[string]any)
	for _, name := range []string{"people", "mirror"} {
		deputy := properties[name].(map[string]any)["items"].(map[string]any)["properties"].(map[string]any)["deputy"].(map[string]any)
		if deputy["type"] != "object" {
			t.Errorf("%s: a deputy is a %v", name, deputy)
		}
	}
}

func TestWideIntegersAreExactOrRefused(t *testing.T) { // h15
	const declared = `{"type":"object","properties":{
		"id":{"type":"integer","format":"int64"},
		"many":{"type":"array","items":{"type":"integer","format":"uint64"}},
		"price":{"type":"number"},
		"plain":{"type":"integer"}}}`
	var asText map[string]any
	if err := json.Unmarshal(caseFile(t, "h15-int64-exact/args-string.json"), &asText); err != nil {
		t.Fatal(err)
	}
	asText["plain"] = json.Number("9007199254740993")
	asText["price"] = 1e20
	call, _ := json.Marshal(asText)
	m, fake := play(t, `turns: [{parts: [{functionCall: {name: keep, args: `+string(call)+`}}], finishReason: STOP}, {parts: [{text: ok}], finishReason: STOP}]`)
	req := &model.LLMRequest{Contents: []*genai.Content{userSays("go")}, Config: &genai.GenerateContentConfig{Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
		{Name: "keep", ParametersJsonSchema: json.RawMessage(declared)}}}}}}
	r := final(t, m, req, true)
	got := r.Content.Parts[0].FunctionCall.Args
	if got["id"] != json.Number("9007199254740993") || got["many"].([]any)[0] != json.Number("18446744073709551615") {
		t.Errorf("declared as 64-bit integers: %v", got)
	}
	if d := cmp.Diff([]model.InexactArg{{Call: 0, Pointer: "/plain"}}, r.Inexact()); d != "" {
		t.Errorf("numbers that may have been rounded (-want +got):\n%s", d)
	}
	req.Contents = append(req.Contents, r.Content, &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{
		genai.NewPartFromFunctionResponse("keep", map[string]any{"id": json.Number("9007199254740993"), "n": json.Number("-7"), "deep": []any{uint64(math.MaxUint64)}})}})
	final(t, m, req, true)
	out := sent(t, fake, 2)
	for _, want := range []string{`"id":"9007199254740993"`, `"many":["18446744073709551615"]`, `"response":{"deep":["18446744073709551615"],"id":"9007199254740993","n":-7}`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is not in the request %s", want, out)
		}
	}
}

func encoded(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
