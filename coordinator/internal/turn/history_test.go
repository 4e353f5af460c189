package turn

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
)

const cut = `{"error":"the run ended before this call was answered; it may have run"}`

func TestConversations(t *testing.T) {
	done := stopped(protocol.StopDone)
	for _, c := range []struct {
		name string
		log  []protocol.Event
		open []protocol.Answer
		want string
	}{
		{
			name: "a provider that repeats its call ids (h06)",
			log: []protocol.Event{
				said("first"), asked(1, "a#call_807:c1"), join(answered(answer("c1", `{"from":"a"}`)), asked(2, "one"), done),
				said("second"), asked(4, "b#call_807:c2"),
			},
			open: []protocol.Answer{answer("c2", `{"from":"b"}`)},
			want: `user: first
model: call a#call_807
user: response a#call_807 {"from":"a"}
model: one
user: second
model: call b#call_807
user: response b#call_807 {"from":"b"}
`,
		},
		{
			name: "answers stand in call order, whatever the order they came in (h08)",
			log:  []protocol.Event{said("go"), asked(1, "slow#1:c1", "fast#2:c2", "mid#3:c3")},
			open: []protocol.Answer{answer("c2", `{"n":2}`), answer("c3", `{"n":3}`), answer("c1", `{"n":1}`)},
			want: `user: go
model: call slow#1 call fast#2 call mid#3
user: response slow#1 {"n":1} response fast#2 {"n":2} response mid#3 {"n":3}
`,
		},
		{
			name: "calls without provider ids, answers split over log and mailbox",
			log:  []protocol.Event{said("go"), asked(1, "a#:c1", "a#:c2"), answered(answer("c2", `{"n":2}`))},
			open: []protocol.Answer{answer("c1", `{"n":1}`)},
			want: `user: go
model: call a# call a#
user: response a# {"n":1} response a# {"n":2}
`,
		},
		{
			name: "inputs that came while calls were open stand behind the responses",
			log:  []protocol.Event{said("go"), asked(1, "a#1:c1"), said("never mind", "really")},
			open: []protocol.Answer{answer("c1", `{"n":1}`)},
			want: `user: go
model: call a#1
user: response a#1 {"n":1}
user: never mind
user: really
`,
		},
		{
			name: "an input that the model was not shown stands behind its answer",
			log:  []protocol.Event{said("go"), said("wait"), asked(1, "done")},
			want: "user: go\nmodel: done\nuser: wait\n",
		},
		{
			name: "a run that ended with open calls",
			log:  []protocol.Event{said("go"), asked(1, "a#1:c1", "b#2:c2"), join(answered(answer("c2", `{"n":2}`)), done), said("again")},
			open: []protocol.Answer{answer("c1", `{"late":true}`)},
			want: "user: go\nmodel: call a#1 call b#2\nuser: response a#1 " + cut + " response b#2 {\"n\":2}\nuser: again\n",
		},
		{
			name: "a drained run keeps its calls open",
			log:  []protocol.Event{said("go"), asked(1, "a#1:c1"), stopped(protocol.StopDrained)},
			open: []protocol.Answer{answer("c1", `{"n":1}`)},
			want: "user: go\nmodel: call a#1\nuser: response a#1 {\"n\":1}\n",
		},
		{
			name: "a turn that follows without answers",
			log:  []protocol.Event{said("go"), asked(1, "a#1:c1"), asked(2, "done"), answered(answer("c1", `{"n":1}`))},
			want: "user: go\nmodel: call a#1\nuser: response a#1 " + cut + "\nmodel: done\n",
		},
		{
			name: "the newest round of a call, and of one round the first answer",
			log:  []protocol.Event{said("go"), asked(1, "a#1:c1"), answered(pending("c1", 0, `{"round":0}`), pending("c1", 0, `{"twin":0}`))},
			open: []protocol.Answer{{Call: "c1", Round: 1, Result: answer("", `{"round":1}`).Result}, {Call: "c1", Round: 1, Result: answer("", `{"twin":1}`).Result}},
			want: "user: go\nmodel: call a#1\nuser: response a#1 {\"round\":1}\n",
		},
		{
			name: "refused inputs, deletes and a client's own calls are not shown",
			log: []protocol.Event{
				{Inputs: []protocol.FoldedInput{
					{Kind: protocol.InputMessage, Content: said("no").Inputs[0].Content, Refused: &protocol.Problem{Code: protocol.CodeBadMessage}},
					{Kind: protocol.InputCall, Call: &protocol.ClientCall{Tool: "a", Args: json.RawMessage(`{}`)}},
					{Kind: protocol.InputDelete},
				}},
				{Turn: &protocol.Turn{Calls: []protocol.Call{{ID: "c0", Tool: "a"}}}},
				answered(answer("c0", `{"n":0}`)),
				said("hello"),
			},
			want: "user: hello\n",
		},
		{
			name: "a refusal answers its call",
			log: []protocol.Event{said("go"), {Turn: &protocol.Turn{
				RequestSeq: 1, Content: asked(1, "ghost#1:c1").Turn.Content,
				Calls: []protocol.Call{{ID: "c1", Tool: "ghost", Verdict: protocol.VerdictRefuse, Refusal: &protocol.Result{Outcome: protocol.OutcomeFailed, Value: protocol.ErrorValue("no such tool")}}},
			}}},
			want: "user: go\nmodel: call ghost#1\nuser: response ghost#1 {\"error\":\"no such tool\"}\n",
		},
		{
			name: "calls that the log does not know are answered all the same",
			log:  []protocol.Event{said("go"), {Turn: &protocol.Turn{RequestSeq: 1, Content: asked(1, "a#1:c1", "b#2:c2").Turn.Content, Calls: []protocol.Call{{ID: "c1", Tool: "other"}}}}},
			open: []protocol.Answer{answer("c1", `{"n":1}`)},
			want: "user: go\nmodel: call a#1 call b#2\nuser: response a#1 " + cut + " response b#2 " + cut + "\n",
		},
		{
			name: "function parts in a message are left out",
			log: []protocol.Event{{Inputs: []protocol.FoldedInput{{Kind: protocol.InputMessage, Content: json.RawMessage(
				`{"role":"model","parts":[{"functionCall":{"name":"a"}},{"functionResponse":{"name":"a","response":{}}},{},{"text":"hi"}]}`)}}}},
			want: "user: hi\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			contents, err := logOf(c.log...).Contents(c.open, false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, lines(contents)); diff != "" {
				t.Errorf("conversation (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResponsesAreObjectsThatArriveWhole(t *testing.T) {
	for _, c := range []struct {
		outcome protocol.Outcome
		value   string
		want    string
	}{
		{protocol.OutcomeCompleted, `{"n":9007199254740993}`, `{"n":9007199254740993}`},
		{protocol.OutcomeCompleted, `{"result":[1,2]}`, `{"result":[1,2]}`},
		{protocol.OutcomeCompleted, `{}`, `{"result":{}}`},
		{protocol.OutcomeCompleted, `{"output":"a","error":"b","more":1}`, `{"result":{"error":"b","more":1,"output":"a"}}`},
		{protocol.OutcomeFailed, `{"error":"disk full"}`, `{"error":"disk full"}`},
		{protocol.OutcomeExpired, `{"error":"too late"}`, `{"error":"too late"}`},
		{protocol.OutcomeCompleted, ``, `{"error":"the call ended as completed without a readable value"}`},
		{protocol.OutcomeUnknown, `[1]`, `{"error":"the call ended as outcome_unknown without a readable value"}`},
		{protocol.OutcomeFailed, `null`, `{"error":"the call ended as failed without a readable value"}`},
	} {
		got, err := encode(responseOf(protocol.Result{Outcome: c.outcome, Value: json.RawMessage(c.value)}))
		if err != nil || string(got) != c.want {
			t.Errorf("%s %s: %s, %v, want %s", c.outcome, c.value, got, err, c.want)
		}
	}
}

func TestModelContentComesBackAsRecorded(t *testing.T) {
	raw := `{"parts":[{"text":"hm","thought":true},{"functionCall":{"args":{"n":9007199254740993},"name":"a"},"thoughtSignature":"AP8Q+/8="},{"functionCall":{"name":"b"}},{"thoughtSignature":"AQ=="}],"role":"model"}`
	withEmpty := strings.Replace(raw, `{"functionCall":{"name":"b"}}`, `{},{"functionCall":{"name":"b"}},{"thought":true}`, 1)
	contents, err := logOf(said("go"), protocol.Event{Turn: &protocol.Turn{RequestSeq: 1, Content: json.RawMessage(withEmpty)}}).Contents(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	got, err := encode(contents[1])
	if err != nil || string(got) != raw {
		t.Errorf("sent\n%s, %v\nrecorded\n%s", got, err, raw)
	}
}

func TestRunOnlyShowsTheRunThatIsGoingOn(t *testing.T) {
	h := logOf(said("old"), join(asked(1, "fine"), stopped(protocol.StopDone)), said("failed"), stopped(protocol.StopDone),
		said("new"), asked(5, "a#1:c1"), said("late"))
	contents, err := h.Contents([]protocol.Answer{answer("c1", `{"n":1}`)}, true)
	if err != nil {
		t.Fatal(err)
	}
	want := "user: new\nmodel: call a#1\nuser: response a#1 {\"n\":1}\nuser: late\n"
	if diff := cmp.Diff(want, lines(contents)); diff != "" {
		t.Error(diff)
	}
	if got := h.runMessage(nil); got == nil || got.Parts[0].Text != "new" {
		t.Errorf("the run's message is %v", got)
	}
}

func TestAnEventIsReadOnce(t *testing.T) {
	h := logOf(said("go"))
	h.Add(1, said("go"))
	contents, err := h.Contents(nil, false)
	if err != nil || lines(contents) != "user: go\n" || h.Seq() != 1 {
		t.Errorf("%q, %v, seq %d", lines(contents), err, h.Seq())
	}
}

func TestAnUnreadableLogIsNotSent(t *testing.T) {
	for name, ev := range map[string]protocol.Event{
		"input": {Inputs: []protocol.FoldedInput{{Kind: protocol.InputMessage, Content: json.RawMessage(`[]`)}}},
		"turn":  {Turn: &protocol.Turn{Content: json.RawMessage(`{"parts":7}`)}},
	} {
		if _, err := logOf(ev).Contents(nil, false); protocol.CodeOf(err) != protocol.CodeInternal {
			t.Errorf("%s: %v, want internal", name, err)
		}
	}
}

func TestPairsAreChecked(t *testing.T) {
	call := func(name string) *genai.Part { return &genai.Part{FunctionCall: &genai.FunctionCall{Name: name}} }
	response := func(name string) *genai.Part {
		return &genai.Part{FunctionResponse: &genai.FunctionResponse{Name: name, Response: map[string]any{"n": 1}}}
	}
	content := func(role string, parts ...*genai.Part) *genai.Content {
		return &genai.Content{Role: role, Parts: parts}
	}
	text := &genai.Part{Text: "x"}
	for name, contents := range map[string][]*genai.Content{
		"nothing behind a call":      {content("model", call("a"))},
		"text behind a call":         {content("model", call("a")), content("user", text)},
		"too few":                    {content("model", call("a"), call("b")), content("user", response("a"))},
		"too many":                   {content("model", call("a")), content("user", response("a"), response("a"))},
		"another tool's":             {content("model", call("a")), content("user", response("b"))},
		"wrong order":                {content("model", call("a"), call("b")), content("user", response("b"), response("a"))},
		"text between":               {content("model", call("a")), content("user", text, response("a"))},
		"a response alone":           {content("user", text), content("user", response("a"))},
		"a user's call":              {content("user", call("a")), content("user", response("a"))},
		"a response of the model":    {content("model", call("a")), content("model", response("a"))},
		"an empty response is a gap": {content("model", call("a")), content("user", &genai.Part{FunctionResponse: &genai.FunctionResponse{Name: "a"}})},
	} {
		if err := checkPairs(contents, 0); protocol.CodeOf(err) != protocol.CodeInternal {
			t.Errorf("%s: %v, want internal", name, err)
		}
	}
	if err := checkPairs([]*genai.Content{content("user", text), content("model", text, call("a"), call("b")), content("user", response("a"), response("b")), content("user", text)}, 0); err != nil {
		t.Errorf("a good conversation: %v", err)
	}
}

// Whatever a log holds, what is sent pairs, and every input and model content is in it once.
func TestAnyLogYieldsAPairedConversation(t *testing.T) {
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		h := &History{}
		var open []string
		n := 0
		for seq := uint64(1); seq <= uint64(2+rng.IntN(14)); seq++ {
			var ev protocol.Event
			if rng.IntN(3) == 0 {
				n++
				ev = join(ev, said(fmt.Sprintf("input%d", n)))
			}
			for range rng.IntN(3) {
				if len(open) > 0 {
					a := answer(open[rng.IntN(len(open))], `{"n":1}`)
					a.Round = rng.IntN(4)
					a.Outcome = []protocol.Outcome{protocol.OutcomeCompleted, protocol.OutcomeCompleted, protocol.OutcomePending, protocol.OutcomeAsks}[rng.IntN(4)]
					ev = join(ev, answered(a))
				}
			}
			if rng.IntN(2) == 0 {
				n++
				parts := []string{fmt.Sprintf("text%d", n)}
				for range rng.IntN(4) {
					id := fmt.Sprintf("c%d", len(open))
					open = append(open, id)
					parts = append(parts, fmt.Sprintf("t%d#p%d:%s", rng.IntN(3), rng.IntN(2), id))
				}
				ev = join(ev, asked(uint64(rng.IntN(int(seq)+1)), parts...))
				if rng.IntN(5) == 0 { // a log that forgot calls
					ev.Turn.Calls = ev.Turn.Calls[:rng.IntN(len(ev.Turn.Calls)+1)]
				}
			}
			if rng.IntN(5) == 0 {
				ev = join(ev, stopped([]protocol.StopKind{protocol.StopDone, protocol.StopParked, protocol.StopCancelled, protocol.StopDrained, protocol.StopQuarantined}[rng.IntN(5)]))
			}
			h.Add(seq, ev)
			contents, err := h.Contents(nil, false)
			if err != nil {
				t.Fatalf("seed %d, event %d: %v\n%s", seed, seq, err, lines(contents))
			}
			all := lines(contents)
			if h.news(nil) != nil {
				continue // the late end of a call hides what lies between
			}
			for i := 1; i <= n; i++ {
				if got := strings.Count(all, fmt.Sprintf(" input%d\n", i)) + strings.Count(all, fmt.Sprintf(" text%d\n", i)) + strings.Count(all, fmt.Sprintf(" text%d ", i)); got != 1 {
					t.Fatalf("seed %d, event %d: content %d is shown %d times\n%s", seed, seq, i, got, all)
				}
			}
			if _, err := h.Contents(nil, true); err != nil {
				t.Fatalf("seed %d, event %d, one run: %v", seed, seq, err)
			}
		}
	}
}

func BenchmarkContentsOfALongLog(b *testing.B) {
	h := &History{}
	h.Add(1, said("go"))
	for seq := uint64(2); seq < 2000; seq++ {
		id := fmt.Sprintf("c%d", seq)
		h.Add(seq, join(asked(seq-1, "a#1:"+id), answered(answer(fmt.Sprintf("c%d", seq-1), `{"n":1}`))))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Contents(nil, false); err != nil {
			b.Fatal(err)
		}
	}
}
