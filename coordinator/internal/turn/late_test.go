package turn

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolfabric/toolfabric/protocol"
)

// What a model is asked when calls wait. The names are those of ADK's black-box vectors where there is one.
func TestConversationsWithCallsThatWait(t *testing.T) {
	parked, done := stopped(protocol.StopParked), stopped(protocol.StopDone)
	decision := protocol.Event{Inputs: []protocol.FoldedInput{{ID: "d1", Kind: protocol.InputDecision, Client: "boss",
		Decision: &protocol.FoldedDecision{Confirmation: "q1", Decision: protocol.Decision{Confirmed: true}}}}}
	const rejection = `{"error":"error tool \"gated\" call is rejected"}`
	rejected := func(call string, round int) protocol.Answer {
		return protocol.Answer{Call: call, Round: round, Result: protocol.Result{V: 1, Outcome: protocol.OutcomeDenied, Code: protocol.CodeDenied, Value: json.RawMessage(rejection)}}
	}
	for _, c := range []struct {
		name string
		log  []protocol.Event
		open []protocol.Answer
		want string
	}{
		{
			name: "V1, V2, V3: siblings, an approval, a denial; decisions are no contents",
			log: []protocol.Event{
				said("go"), asked(1, "plain#:c1", "gated#:c2", "gated#srv-3:c3"), join(answered(answer("c1", `{"n":1}`)), parked),
				decision, join(answered(answer("c2", `{"ran":true}`)), parked), decision,
			},
			open: []protocol.Answer{rejected("c3", 0)},
			want: "user: go\nmodel: call plain# call gated# call gated#srv-3\n" +
				`user: response plain# {"n":1} response gated# {"ran":true} response gated#srv-3 ` + rejection + "\n",
		},
		{
			name: "V5: a message while a call waits stands behind the responses",
			log:  []protocol.Event{said("go"), asked(1, "gated#:c1"), parked, said("hello?"), parked, decision},
			open: []protocol.Answer{answer("c1", `{"ran":true}`)},
			want: "user: go\nmodel: call gated#\nuser: response gated# {\"ran\":true}\nuser: hello?\n",
		},
		{
			name: "V8, V9: what a tool shows people while it asks, twice, is not shown to the model",
			log: []protocol.Event{said("go"), asked(1, "manual#:c1"),
				join(answered(asks("c1", 0, `{"status":"waiting"}`)), parked), decision, join(answered(asks("c1", 1, `{"status":"again"}`)), parked), decision},
			open: []protocol.Answer{ended("c1", 2, `{"ok":true}`)},
			want: "user: go\nmodel: call manual#\nuser: response manual# {\"ok\":true}\n",
		},
		{
			name: "V12: a pending value is the response, beside a sibling's",
			log:  []protocol.Event{said("go"), asked(1, "long#:c1", "plain#:c2")},
			open: []protocol.Answer{pending("c1", 0, `{"status":"pending"}`), answer("c2", `{"n":2}`)},
			want: "user: go\nmodel: call long# call plain#\nuser: response long# {\"status\":\"pending\"} response plain# {\"n\":2}\n",
		},
		{
			name: "V12: a message while it is pending",
			log: []protocol.Event{said("go"), asked(1, "long#:c1", "plain#:c2"),
				join(answered(pending("c1", 0, `{"status":"pending"}`), answer("c2", `{"n":2}`)), asked(2, "it takes a while"), parked), said("how far?")},
			want: "user: go\nmodel: call long# call plain#\nuser: response long# {\"status\":\"pending\"} response plain# {\"n\":2}\n" +
				"model: it takes a while\nuser: how far?\n",
		},
		{
			name: "V12: the final result hides the chat between, nothing comes after it",
			log: []protocol.Event{said("go"), asked(1, "long#:c1", "plain#:c2"),
				join(answered(pending("c1", 0, `{"status":"pending"}`), answer("c2", `{"n":2}`)), asked(2, "it takes a while"), parked),
				said("how far?"), join(asked(4, "not yet"), parked), join(answered(ended("c1", 1, `{"status":"final"}`)))},
			want: "user: go\nmodel: call long# call plain#\nuser: response long# {\"status\":\"final\"} response plain# {\"n\":2}\n",
		},
		{
			name: "V12: the same with a result that the log does not hold yet, after the run was done",
			log: []protocol.Event{said("go"), asked(1, "long#:c1"),
				join(answered(pending("c1", 0, `{"status":"pending"}`)), asked(2, "it takes a while"), done), said("how far?"), join(asked(4, "not yet"), done)},
			open: []protocol.Answer{ended("c1", 1, `{"status":"final"}`)},
			want: "user: go\nmodel: call long#\nuser: response long# {\"status\":\"final\"}\n",
		},
		{
			name: "a final result and a newer message: the chat is kept",
			log: []protocol.Event{said("go"), asked(1, "long#:c1"),
				join(answered(pending("c1", 0, `{"status":"pending"}`)), asked(2, "it takes a while"), parked), answered(ended("c1", 1, `{"status":"final"}`)), said("and?")},
			want: "user: go\nmodel: call long#\nuser: response long# {\"status\":\"final\"}\nmodel: it takes a while\nuser: and?\n",
		},
		{
			name: "what a model was told of stays where it was, and the chat is there again",
			log: []protocol.Event{said("go"), asked(1, "long#:c1"),
				join(answered(pending("c1", 0, `{"status":"pending"}`)), asked(2, "it takes a while"), parked),
				join(answered(ended("c1", 1, `{"status":"final"}`)), asked(3, "done now"), done), said("thanks")},
			want: "user: go\nmodel: call long#\nuser: response long# {\"status\":\"final\"}\nmodel: it takes a while\nmodel: done now\nuser: thanks\n",
		},
		{
			name: "a result that came after the request was built is still to be told",
			log: []protocol.Event{said("go"), asked(1, "long#:c1"),
				join(answered(pending("c1", 0, `{"status":"pending"}`)), asked(2, "it takes a while"), parked),
				said("how far?"), answered(ended("c1", 1, `{"status":"final"}`)), join(asked(4, "not yet"), parked)},
			want: "user: go\nmodel: call long#\nuser: response long# {\"status\":\"final\"}\n",
		},
		{
			name: "progress replaces progress, each newer response the one before",
			log: []protocol.Event{said("go"), asked(1, "long#:c1"),
				join(answered(pending("c1", 0, `{"done":"10%"}`)), asked(2, "it takes a while"), parked),
				join(answered(pending("c1", 1, `{"done":"50%"}`)), asked(4, "half"), parked), answered(pending("c1", 1, `{"done":"20%"}`))},
			open: []protocol.Answer{pending("c1", 2, ``)},
			want: "user: go\nmodel: call long#\nuser: response long# {\"done\":\"50%\"}\nmodel: it takes a while\nmodel: half\n",
		},
		{
			name: "V13: pending without a value is no response; its result is",
			log:  []protocol.Event{said("go"), asked(1, "long#:c1"), join(answered(pending("c1", 0, ``)), parked)},
			open: []protocol.Answer{ended("c1", 1, `{"status":"final"}`)},
			want: "user: go\nmodel: call long#\nuser: response long# {\"status\":\"final\"}\n",
		},
		{
			name: "V14: an answer to no call of the log changes nothing",
			log:  []protocol.Event{said("go"), join(asked(1, "hello"), done), said("next")},
			open: []protocol.Answer{ended("c9", 1, `{"x":1}`)},
			want: "user: go\nmodel: hello\nuser: next\n",
		},
		{
			name: "V26: a cancelled call has its response, the run ends",
			log: []protocol.Event{said("go"), asked(1, "a#:c1"),
				join(answered(protocol.Answer{Call: "c1", Result: protocol.Result{Outcome: protocol.OutcomeCancelled, Value: protocol.ErrorValue("cancelled")}}), stopped(protocol.StopCancelled)), said("next")},
			open: []protocol.Answer{ended("c1", 1, `{"late":true}`)},
			want: "user: go\nmodel: call a#\nuser: response a# {\"error\":\"cancelled\"}\nuser: next\n",
		},
		{
			name: "two late results: both in their places, the conversation ends with the newer exchange",
			log: []protocol.Event{said("go"), asked(1, "long#:c1"), join(answered(pending("c1", 0, `{"p":1}`)), asked(2, "long#:c2")),
				join(answered(pending("c2", 0, `{"p":2}`)), asked(3, "both take a while"), parked)},
			open: []protocol.Answer{ended("c2", 1, `{"n":2}`), ended("c1", 1, `{"n":1}`)},
			want: "user: go\nmodel: call long#\nuser: response long# {\"n\":1}\nmodel: call long#\nuser: response long# {\"n\":2}\n",
		},
		{
			name: "a late result while another exchange is open hides nothing",
			log: []protocol.Event{said("go"), asked(1, "long#:c1"), join(answered(pending("c1", 0, `{"p":1}`)), asked(2, "it takes a while"), parked),
				said("other"), asked(4, "a#:c2"), answered(ended("c1", 1, `{"n":1}`))},
			open: []protocol.Answer{answer("c2", `{"n":2}`)},
			want: "user: go\nmodel: call long#\nuser: response long# {\"n\":1}\nmodel: it takes a while\nuser: other\nmodel: call a#\nuser: response a# {\"n\":2}\n",
		},
		{
			name: "the first end stands",
			log: []protocol.Event{said("go"), asked(1, "long#:c1"), join(answered(pending("c1", 0, `{"p":1}`)), asked(2, "it takes a while"), parked),
				answered(ended("c1", 1, `{"first":1}`)), answered(ended("c1", 2, `{"second":1}`))},
			want: "user: go\nmodel: call long#\nuser: response long# {\"first\":1}\n",
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

func TestALateResultOfAnEarlierRunBringsItsRun(t *testing.T) {
	h := logOf(said("old"), join(asked(1, "fine"), stopped(protocol.StopDone)),
		said("go"), asked(3, "long#:c1"), join(answered(pending("c1", 0, `{"p":1}`)), asked(4, "it takes a while"), stopped(protocol.StopParked)),
		said("new"), join(asked(6, "hi"), stopped(protocol.StopParked)))
	open := []protocol.Answer{ended("c1", 1, `{"n":1}`)}
	contents, err := h.Contents(open, true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("user: go\nmodel: call long#\nuser: response long# {\"n\":1}\n", lines(contents)); diff != "" {
		t.Error(diff)
	}
	if got := h.runMessage(open); got == nil || got.Parts[0].Text != "go" {
		t.Errorf("the run's message is %v", got)
	}
	h.Add(8, said("newest"))
	if contents, err = h.Contents(open, true); err != nil || lines(contents) != "user: newest\n" {
		t.Errorf("a message after the model's last word begins a run: %q, %v", lines(contents), err)
	}
}

func TestRequestsShareTheirContents(t *testing.T) {
	h := logOf(said("go"), asked(1, "long#:c1"), join(answered(pending("c1", 0, `{"p":1}`)), asked(2, "wait"), stopped(protocol.StopParked)), said("how far?"))
	before, err := h.Contents(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	text := lines(before)
	h.Add(5, answered(ended("c1", 1, `{"n":1}`)))
	if _, err := h.Contents(nil, false); err != nil {
		t.Fatal(err)
	}
	if lines(before) != text {
		t.Errorf("a request that was made changed:\n%s\n%s", text, lines(before))
	}
}

// V15: an unknown tool and one that runs; V16 is found at registration, V17 and V18 are the worker's.
func TestAnUnknownToolBesideOneThatRuns(t *testing.T) {
	d, err := Decide(newAgent(t, nil), []Offer{offer("plain", nil)}, desk(), callID, finalResponse(calling("ghost", nil), calling("plain", nil)))
	if err != nil {
		t.Fatal(err)
	}
	d.RequestSeq = 1
	contents, err := logOf(said("go"), protocol.Event{Turn: &d.Turn}).Contents([]protocol.Answer{answer("call1", `{"n":1}`)}, false)
	if err != nil {
		t.Fatal(err)
	}
	var first struct{ Error string }
	raw, _ := encode(contents[2].Parts[0].FunctionResponse.Response)
	if err := json.Unmarshal(raw, &first); err != nil || !strings.Contains(first.Error, "there is no tool \"ghost\"") || !strings.Contains(first.Error, "plain") {
		t.Errorf("%s", raw)
	}
}
