package view

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/session"
	"github.com/toolfabric/toolfabric/toolkit/tool/toolconfirmation"
)

// script makes a log of events, one a second.
func script(events ...protocol.Event) []Entry {
	log := make([]Entry, len(events))
	for i, ev := range events {
		ev.V, ev.ID, ev.At = protocol.Version, fmt.Sprintf("e%d", i+1), int64(1000*(i+1))
		log[i] = Entry{Seq: uint64(i + 1), Time: millis(ev.At), Event: ev}
	}
	return log
}

func joined(events ...protocol.Event) protocol.Event {
	var all protocol.Event
	for _, ev := range events {
		all.Inputs = append(all.Inputs, ev.Inputs...)
		all.Answers = append(all.Answers, ev.Answers...)
		if ev.Turn != nil {
			all.Turn = ev.Turn
		}
		if ev.Stop != nil {
			all.Stop = ev.Stop
		}
		if ev.Adopt != nil {
			all.Adopt = ev.Adopt
		}
	}
	return all
}

func says(id, text string) protocol.Event {
	raw, _ := json.Marshal(map[string]any{"role": "user", "parts": []any{map[string]any{"text": text}}})
	return protocol.Event{Inputs: []protocol.FoldedInput{{ID: id, Kind: protocol.InputMessage, Client: "ann", Content: raw}}}
}

// decides is a decision of approver on a confirmation.
func decides(approver, confirmation string, d protocol.Decision, asks *protocol.Confirmation) protocol.Event {
	return protocol.Event{Inputs: []protocol.FoldedInput{{ID: confirmation + approver, Kind: protocol.InputDecision, Client: approver, Sent: 2500,
		Decision: &protocol.FoldedDecision{Confirmation: confirmation, Decision: d, Asks: asks}}}}
}

var yes, no = protocol.Decision{Confirmed: true}, protocol.Decision{}

// asksFor is a question of the flag, or with ToolDecides of a tool.
func asksFor(id string) *protocol.Confirmation {
	return &protocol.Confirmation{ID: id, Hint: "sure?", Origin: protocol.OriginFlag, Digest: "d-" + id, Expires: 60_000}
}

// turnOf is a model's turn with calls; text for one without.
func turnOf(text string, calls ...protocol.Call) protocol.Event {
	var parts []any
	if text != "" {
		parts = append(parts, map[string]any{"text": text})
	}
	for _, c := range calls {
		parts = append(parts, map[string]any{"functionCall": map[string]any{"name": c.Tool, "args": map[string]any{"n": 1}}, "thoughtSignature": "AQID"})
	}
	raw, _ := json.Marshal(map[string]any{"role": "model", "parts": parts})
	return protocol.Event{Turn: &protocol.Turn{Agent: "helper", Content: raw, Calls: calls}}
}

func runs(id, tool string) protocol.Call {
	return protocol.Call{ID: id, Tool: tool, Args: json.RawMessage(`{"n":1}`), Verdict: protocol.VerdictRun}
}

func gated(id string, q string) protocol.Call {
	c := runs(id, "gated")
	c.Verdict, c.Confirmation = protocol.VerdictAsk, asksFor(q)
	return c
}

// shown is a gated call that a callback shows something for.
func shown(c protocol.Call, value string) protocol.Call {
	c.Shown = json.RawMessage(value)
	return c
}

// cached is a call that a callback answered.
func cached(id, value string) protocol.Call {
	c := runs(id, "plain")
	c.Verdict, c.Answer = protocol.VerdictAnswer, &protocol.Result{V: 1, Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(value)}
	return c
}

func afterAgent(ev protocol.Event, text string) protocol.Event {
	ev.Turn.After, _ = json.Marshal(map[string]any{"role": "model", "parts": []any{map[string]any{"text": text}}})
	return ev
}

func longRunning(id string) protocol.Call {
	c := runs(id, "long")
	c.LongRunning = true
	return c
}

func answers(call string, round int, outcome protocol.Outcome, value string, asks *protocol.Confirmation) protocol.Event {
	a := protocol.Answer{Call: call, Round: round, Result: protocol.Result{V: 1, Outcome: outcome, Value: json.RawMessage(value)}, Confirmation: asks}
	if asks != nil {
		a.Ask = &protocol.Ask{Hint: asks.Hint, Payload: asks.Payload}
	}
	return protocol.Event{Answers: []protocol.Answer{a}}
}

func completes(call string, value string) protocol.Event {
	return answers(call, 0, protocol.OutcomeCompleted, value, nil)
}

func stops(kind protocol.StopKind) protocol.Event {
	return protocol.Event{Stop: &protocol.Stop{Kind: kind}}
}

func withState(ev protocol.Event, key string) protocol.Event {
	ev.Answers[0].Actions = &protocol.Actions{StateDelta: map[string]json.RawMessage{key: json.RawMessage(`1`)}}
	return ev
}

// told writes events for a reader: who, then the parts. FC is a function call, FR a response, W a question to people; *
// marks calls that the event lists as long-running, ! a placeholder.
func told(events []*session.Event) string {
	var b strings.Builder
	for _, ev := range events {
		fmt.Fprintf(&b, "%s %s", ev.InvocationID, ev.Author)
		listed := map[string]string{}
		for _, id := range ev.LongRunningToolIDs {
			listed[id] = "*"
		}
		ids, _ := ev.CustomMetadata[session.MetadataPlaceholders].([]string)
		for _, id := range ids {
			listed[id] = "!"
		}
		if ev.ErrorCode != "" {
			fmt.Fprintf(&b, " error %s", ev.ErrorCode)
		}
		if ev.Content != nil {
			fmt.Fprintf(&b, " (%s)", ev.Content.Role)
			for _, p := range ev.Content.Parts {
				switch {
				case p.FunctionCall != nil && p.FunctionCall.Name == toolconfirmation.FunctionCallName:
					original, err := toolconfirmation.OriginalCallFrom(p.FunctionCall)
					if err != nil {
						fmt.Fprint(&b, err)
						continue
					}
					args, _ := json.Marshal(original.Args)
					asked, _ := json.Marshal(p.FunctionCall.Args["toolConfirmation"])
					fmt.Fprintf(&b, " W%s %s of %s %s%s %s", listed[p.FunctionCall.ID], p.FunctionCall.ID, original.ID, original.Name, args, asked)
				case p.FunctionCall != nil:
					fmt.Fprintf(&b, " FC%s %s", listed[p.FunctionCall.ID], p.FunctionCall.ID)
				case p.FunctionResponse != nil:
					value, _ := json.Marshal(p.FunctionResponse.Response)
					fmt.Fprintf(&b, " FR%s %s %s", listed[p.FunctionResponse.ID], p.FunctionResponse.ID, value)
				default:
					fmt.Fprintf(&b, " %s", p.Text)
				}
			}
		}
		if approver := ev.CustomMetadata[session.MetadataApprover]; approver != nil {
			fmt.Fprintf(&b, " by %s", approver)
		}
		if ev.Actions.SkipSummarization {
			b.WriteString(" skip")
		}
		if len(ev.Actions.RequestedToolConfirmations) > 0 {
			raw, _ := json.Marshal(ev.Actions.RequestedToolConfirmations)
			fmt.Fprintf(&b, " requested %s", raw)
		}
		if len(ev.Actions.StateDelta) > 0 {
			fmt.Fprintf(&b, " state %v", ev.Actions.StateDelta)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const (
	sure      = `{"hint":"sure?","confirmed":false,"payload":null}`
	rejection = `{"error":"error tool \"gated\" call is rejected"}`
	held      = `{"error":"error tool \"gated\" requires confirmation, please approve or reject"}`
)

// What people see when calls wait. The names are those of ADK's black-box vectors where there is one.
func TestEventsWithCallsThatWait(t *testing.T) {
	parked := stops(protocol.StopParked)
	withPayload := asksFor("q1")
	withPayload.Hint, withPayload.Payload, withPayload.ToolDecides = "need it", json.RawMessage(`{"amount":3}`), true
	for _, c := range []struct {
		name string
		log  []protocol.Event
		want string
	}{
		{
			name: "V1, V2, V3: siblings, an approval with a payload, a denial",
			log: []protocol.Event{
				says("in1", "go"), turnOf("", runs("c1", "plain"), gated("c2", "q2"), gated("c3", "q3")),
				joined(withState(completes("c1", `{"real":1}`), "k"), parked),
				decides("boss", "q2", protocol.Decision{Confirmed: true, Payload: json.RawMessage(`{"x":1}`)}, nil),
				joined(completes("c2", `{"real":2}`), parked),
				joined(decides("boss", "q3", no, nil), answers("c3", 0, protocol.OutcomeDenied, rejection, nil)),
				joined(turnOf("done"), stops(protocol.StopDone)),
			},
			want: `in1 user (user) go
in1 helper (model) FC c1 FC c2 FC c3
in1 helper (user) FR c1 {"real":1} FR! c2 ` + held + ` FR! c3 ` + held + ` skip requested {"c2":` + sure + `,"c3":` + sure + `} state map[k:1]
in1 helper (model) W* q2 of c2 gated{"n":1} ` + sure + ` W* q3 of c3 gated{"n":1} ` + sure + `
in1 user (user) FR q2 {"confirmed":true,"payload":{"x":1}} by boss
in1 helper (user) FR c2 {"real":2}
in1 user (user) FR q3 {"confirmed":false} by boss
in1 helper (user) FR c3 ` + rejection + `
in1 helper (model) done
`,
		},
		{
			name: "without a running sibling people are asked at once, refused calls beside",
			log: []protocol.Event{says("in1", "go"), turnOf("", gated("c1", "q1"), protocol.Call{ID: "c2", Tool: "ghost", Verdict: protocol.VerdictRefuse,
				Refusal: &protocol.Result{Outcome: protocol.OutcomeFailed, Value: json.RawMessage(`{"error":"no tool"}`)}})},
			want: `in1 user (user) go
in1 helper (model) FC c1 FC c2
in1 helper (user) FR! c1 ` + held + ` FR c2 {"error":"no tool"} skip requested {"c1":` + sure + `}
in1 helper (model) W* q1 of c1 gated{"n":1} ` + sure + "\n",
		},
		{
			name: "a decision before the park finds the question before it",
			log: []protocol.Event{says("in1", "go"), turnOf("", runs("c1", "plain"), gated("c2", "q2")),
				joined(decides("boss", "q2", no, nil), answers("c2", 0, protocol.OutcomeDenied, rejection, nil)),
				completes("c1", `{"real":1}`)},
			want: `in1 user (user) go
in1 helper (model) FC c1 FC c2
in1 helper (user) FR! c2 ` + held + ` skip requested {"c2":` + sure + `}
in1 helper (model) W* q2 of c2 gated{"n":1} ` + sure + `
in1 user (user) FR q2 {"confirmed":false} by boss
in1 helper (user) FR c2 ` + rejection + `
in1 helper (user) FR c1 {"real":1}
`,
		},
		{
			name: "V5, V6: a message meanwhile keeps its text and begins no other run; V4, V7: refused decisions are not shown",
			log: []protocol.Event{says("in1", "go"), turnOf("", gated("c1", "q1")), parked, joined(says("in2", "hello?"), parked),
				{Inputs: []protocol.FoldedInput{{ID: "x", Kind: protocol.InputDecision, Client: "boss", Refused: &protocol.Problem{Code: protocol.CodeUnknownConfirm}}}},
				decides("boss", "q1", yes, nil), joined(completes("c1", `{"real":1}`), turnOf("done"), stops(protocol.StopDone))},
			want: `in1 user (user) go
in1 helper (model) FC c1
in1 helper (user) FR! c1 ` + held + ` skip requested {"c1":` + sure + `}
in1 helper (model) W* q1 of c1 gated{"n":1} ` + sure + `
in1 user (user) hello?
in1 user (user) FR q1 {"confirmed":true} by boss
in1 helper (user) FR c1 {"real":1}
in1 helper (model) done
`,
		},
		{
			name: "V8, V9: a tool that asks by itself, and again when it goes on",
			log: []protocol.Event{says("in1", "go"), turnOf("", runs("c1", "manual")),
				joined(answers("c1", 0, protocol.OutcomeAsks, `{"status":"waiting"}`, withPayload), parked),
				decides("boss", "q1", protocol.Decision{Confirmed: true, Payload: json.RawMessage(`{"amount":5}`)}, nil),
				joined(answers("c1", 1, protocol.OutcomeAsks, ``, asksFor("q9")), parked),
				decides("boss", "q9", no, nil), answers("c1", 2, protocol.OutcomeCompleted, `{"recorded":"rejected"}`, nil)},
			want: `in1 user (user) go
in1 helper (model) FC c1
in1 helper (user) FR c1 {"status":"waiting"} skip requested {"c1":{"hint":"need it","confirmed":false,"payload":{"amount":3}}}
in1 helper (model) W* q1 of c1 manual{"n":1} {"hint":"need it","confirmed":false,"payload":{"amount":3}}
in1 user (user) FR q1 {"confirmed":true,"payload":{"amount":5}} by boss
in1 helper (user) FR! c1 {"error":"error tool \"manual\" requires confirmation, please approve or reject"} skip requested {"c1":` + sure + `}
in1 helper (model) W* q9 of c1 manual{"n":1} ` + sure + `
in1 user (user) FR q9 {"confirmed":false} by boss
in1 helper (user) FR c1 {"recorded":"rejected"}
`,
		},
		{
			name: "V10, V11: what a callback makes of a question is shown, and the question stays",
			log: []protocol.Event{says("in1", "go"), turnOf("", shown(gated("c1", "q1"), `{"status":"held"}`)),
				joined(decides("boss", "q1", yes, nil), answers("c1", 0, protocol.OutcomeAsks, `{"still":"held"}`, asksFor("q2")), parked),
				joined(decides("boss", "q2", yes, nil), answers("c1", 1, protocol.OutcomeCompleted, `{"kept":true}`, nil)),
				joined(afterAgent(turnOf("done"), "bye"), stops(protocol.StopDone))},
			want: `in1 user (user) go
in1 helper (model) FC c1
in1 helper (user) FR c1 {"status":"held"} skip requested {"c1":` + sure + `}
in1 helper (model) W* q1 of c1 gated{"n":1} ` + sure + `
in1 user (user) FR q1 {"confirmed":true} by boss
in1 helper (user) FR c1 {"still":"held"} skip requested {"c1":` + sure + `}
in1 helper (model) W* q2 of c1 gated{"n":1} ` + sure + `
in1 user (user) FR q2 {"confirmed":true} by boss
in1 helper (user) FR c1 {"kept":true}
in1 helper (model) done
in1 helper (model) bye
`,
		},
		{
			name: "a callback sets state at the run's beginning and answers a call",
			log: []protocol.Event{says("in1", "go"), {Turn: &protocol.Turn{Agent: "helper", StateDelta: map[string]json.RawMessage{"k": json.RawMessage(`1`)}}},
				turnOf("", cached("c1", `{"hit":true}`)), joined(turnOf("done"), stops(protocol.StopDone))},
			want: `in1 user (user) go
in1 helper state map[k:1]
in1 helper (model) FC c1
in1 helper (user) FR c1 {"hit":true}
in1 helper (model) done
`,
		},
		{
			name: "V12: pending and a sibling, a message, the final result in the run that it belongs to",
			log: []protocol.Event{says("in1", "go"), turnOf("", longRunning("c1"), runs("c2", "plain")),
				joined(answers("c1", 0, protocol.OutcomePending, `{"status":"pending"}`, nil), completes("c2", `{"real":2}`), turnOf("it takes a while"), parked),
				says("in2", "how far?"), joined(turnOf("not yet"), parked),
				joined(answers("c1", 1, protocol.OutcomeCompleted, `{"status":"final"}`, nil), turnOf("done"), stops(protocol.StopDone))},
			want: `in1 user (user) go
in1 helper (model) FC* c1 FC c2
in1 helper (user) FR c1 {"status":"pending"} FR c2 {"real":2}
in1 helper (model) it takes a while
in2 user (user) how far?
in2 helper (model) not yet
in2 helper (user) FR c1 {"status":"final"}
in2 helper (model) done
`,
		},
		{
			name: "V13: pending without a value shows nothing but the call, then the result",
			log: []protocol.Event{says("in1", "go"), turnOf("", longRunning("c1")), joined(answers("c1", 0, protocol.OutcomePending, ``, nil), parked),
				joined(answers("c1", 1, protocol.OutcomeCompleted, `{"status":"final"}`, nil), turnOf("done"), stops(protocol.StopDone))},
			want: `in1 user (user) go
in1 helper (model) FC* c1
in1 helper (user) FR c1 {"status":"final"}
in1 helper (model) done
`,
		},
		{
			name: "an end that comes after the run was done belongs to that run",
			log: []protocol.Event{says("in1", "go"), turnOf("", longRunning("c1")),
				joined(answers("c1", 0, protocol.OutcomePending, `{"p":1}`, nil), turnOf("it takes a while"), stops(protocol.StopDone)),
				joined(answers("c1", 1, protocol.OutcomeCompleted, `{"n":1}`, nil), turnOf("done"), stops(protocol.StopDone)),
				answers("c1", 2, protocol.OutcomeCompleted, `{"twice":1}`, nil)},
			want: `in1 user (user) go
in1 helper (model) FC* c1
in1 helper (user) FR c1 {"p":1}
in1 helper (model) it takes a while
in1 helper (user) FR c1 {"n":1}
in1 helper (model) done
`,
		},
		{
			name: "V19: deltas of one turn are merged, the later call wins",
			log: []protocol.Event{says("in1", "go"), turnOf("", runs("c1", "a"), runs("c2", "b")),
				joined(withState(completes("c2", `{"n":2}`), "b"), withState(completes("c1", `{"n":1}`), "a"))},
			want: `in1 user (user) go
in1 helper (model) FC c1 FC c2
in1 helper (user) FR c1 {"n":1} FR c2 {"n":2} state map[a:1 b:1]
`,
		},
		{
			name: "V26: cancel during a tool and while another waits",
			log: []protocol.Event{says("in1", "go"), turnOf("", runs("c1", "a"), gated("c2", "q2")),
				joined(protocol.Event{Inputs: []protocol.FoldedInput{{ID: "x", Kind: protocol.InputCancel}}},
					answers("c1", 0, protocol.OutcomeCancelled, `{"error":"cancelled"}`, nil), answers("c2", 0, protocol.OutcomeCancelled, `{"error":"not executed"}`, nil), stops(protocol.StopCancelled)),
				says("in2", "next")},
			want: `in1 user (user) go
in1 helper (model) FC c1 FC c2
in1 helper (user) FR c1 {"error":"cancelled"} FR c2 {"error":"not executed"}
in1 helper error cancelled
in2 user (user) next
`,
		},
		{
			name: "edited arguments are another question",
			log: []protocol.Event{says("in1", "go"), turnOf("", gated("c1", "q1")), parked,
				decides("ann", "q1", protocol.Decision{Confirmed: true, Args: json.RawMessage(`{"n":2}`)}, asksFor("q2")), decides("boss", "q2", yes, nil)},
			want: `in1 user (user) go
in1 helper (model) FC c1
in1 helper (user) FR! c1 ` + held + ` skip requested {"c1":` + sure + `}
in1 helper (model) W* q1 of c1 gated{"n":1} ` + sure + `
in1 user (user) FR q1 {"args":{"n":2},"confirmed":true} by ann
in1 helper (model) W* q2 of c1 gated{"n":2} ` + sure + `
in1 user (user) FR q2 {"confirmed":true} by boss
`,
		},
		{
			name: "expiry is an end like others; a parked sibling comes later",
			log: []protocol.Event{says("in1", "go"), turnOf("", gated("c1", "q1"), runs("c2", "slow")), parked,
				joined(answers("c1", 0, protocol.OutcomeExpired, `{"error":"nobody"}`, nil), parked), completes("c2", `{"n":2}`)},
			want: `in1 user (user) go
in1 helper (model) FC c1 FC c2
in1 helper (user) FR! c1 ` + held + ` skip requested {"c1":` + sure + `}
in1 helper (model) W* q1 of c1 gated{"n":1} ` + sure + `
in1 helper (user) FR c1 {"error":"nobody"}
in1 helper (user) FR c2 {"n":2}
`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := script(c.log...)
			whole := Events(log, nil)
			if diff := cmp.Diff(c.want, told(whole)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			ids := map[string]bool{}
			for _, ev := range whole {
				if ids[ev.ID] {
					t.Errorf("the id %s is there twice", ev.ID)
				}
				ids[ev.ID] = true
			}
			for k := range log {
				if part := Events(log[:k], nil); len(part) > 0 && !reflect.DeepEqual(part, whole[:len(part)]) {
					t.Errorf("the events of the first %d entries are not a beginning:\n%s", k, told(part))
				}
			}
		})
	}
}

func TestQuestionsSayHowTheyAreDecided(t *testing.T) {
	call := gated("c1", "q1")
	call.Confirmation.Need, call.Confirmation.NotRequester, call.Confirmation.Origin = 2, true, "large"
	log := script(says("in1", "go"), turnOf("", call))
	events := Events(log, func(id string) string { return "tf.approval.helper.s1." + id + ".*" })
	asked := events[len(events)-1]
	want := map[string]session.Terms{"q1": {
		Reply: "tf.approval.helper.s1.q1.*", Origin: "large", Digest: "d-q1", Expires: millis(60_000), Need: 2, NotRequester: true,
	}}
	if diff := cmp.Diff(want, asked.CustomMetadata[session.MetadataTerms]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	part := asked.Content.Parts[0]
	if string(part.ThoughtSignature) != "\x01\x02\x03" {
		t.Errorf("the signature of the call's part is %v", part.ThoughtSignature)
	}
	raw, err := json.Marshal(part.FunctionCall.Args)
	wantArgs := `{"originalFunctionCall":{"id":"c1","args":{"n":1},"name":"gated"},"toolConfirmation":` + sure + `}`
	if err != nil || string(raw) != wantArgs {
		t.Errorf("%s, %v\nwant %s", raw, err, wantArgs)
	}
	if part.FunctionCall.ID != "q1" || asked.Author != "helper" || asked.Content.Role != "model" {
		t.Errorf("%+v", asked)
	}
}
