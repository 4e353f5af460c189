package integration

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
)

// open are the questions that wait in a session, in the order of its calls.
func (f *fabric) open(app, session string, n int) []client.Parked {
	f.t.Helper()
	var all []client.Parked
	f.eventually(fmt.Sprintf("%d open questions", n), func() bool {
		all = nil
		for _, p := range f.waiting(app, session) {
			if p.Confirmation != nil {
				all = append(all, p)
			}
		}
		return len(all) == n
	})
	return all
}

// answered waits until the log holds a final answer that has text.
func (f *fabric) answered(app, session, text string) {
	f.t.Helper()
	f.until(app, session, "answer with "+text, func(ev *protocol.Event) bool {
		for _, a := range ev.Answers {
			if strings.Contains(string(a.Value), text) {
				return true
			}
		}
		return false
	})
}

// payloadOf runs a tool that answers with what people sent along.
func payloadOf(runs *atomic.Int32) functiontool.Func[map[string]any, map[string]any] {
	return func(ctx tool.Context, _ map[string]any) (map[string]any, error) {
		runs.Add(1)
		return map[string]any{"got": ctx.ToolConfirmation().Payload}, nil
	}
}

const threeCalls = `{"turns":[
	{"parts":[{"functionCall":{"name":"plain"}},{"functionCall":{"name":"gated"}},{"functionCall":{"name":"gated","id":"srv-3"}}],"finishReason":"STOP"},
	{"parts":[{"text":"ok"}],"finishReason":"STOP"}]}`

func TestVectorsOfOneTurnThatAsksTwice(t *testing.T) { // V1 to V4: one session
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(threeCalls), nil)
	f.coordinate(newAgent(t, "v", p.llm, "plain", "gated"))
	var plain, gated atomic.Int32
	f.work(
		mapped(t, functiontool.Config{Name: "plain"}, func(ctx tool.Context, _ map[string]any) (map[string]any, error) {
			plain.Add(1)
			return map[string]any{"ok": true}, ctx.State().Set("p", 1)
		}),
		mapped(t, functiontool.Config{Name: "gated", RequireConfirmation: true}, payloadOf(&gated)))
	counts := func(name string, wantPlain, wantGated int32, requests int) {
		t.Helper()
		if plain.Load() != wantPlain || gated.Load() != wantGated {
			t.Errorf("%s: plain ran %d times, gated %d, want %d and %d", name, plain.Load(), gated.Load(), wantPlain, wantGated)
		}
		p.wantCount(requests)
	}

	r := f.send(t.Context(), "v", "", "go")
	f.untilParked("v", r.Session)
	questions := f.untilTurn("v", r.Session).Calls
	v1 := []string{
		"user: T(go)",
		"v: FC(plain) FC(gated) FC(gated)",
		`v: FR(plain: {"ok":true}) ` + asks("gated") + " " + asks("gated") + ` asks:2 skip delta:{"p":1}`,
		"v: W(gated) W(gated) long:2",
	}
	f.wantStream("v", r.Session, v1...)
	counts("V1", 1, 0, 1)

	// V2, ours: no request to the model before each call of the turn has ended.
	f.wantReceipt("v", r.Session, questions[1].Confirmation.ID, "ann", `{"confirmed":true,"payload":{"x":1}}`, "", "")
	f.answered("v", r.Session, `"got"`)
	v2 := append(v1, `user: D({"confirmed":true,"payload":{"x":1}})`, `v: FR(gated: {"got":{"x":1}})`)
	f.wantStream("v", r.Session, v2...)
	counts("V2", 1, 1, 1)

	f.wantReceipt("v", r.Session, questions[2].Confirmation.ID, "ann", no, "", "")
	contains(t, "V3: the answer", f.wait(r).Text, "ok")
	v3 := append(v2, `user: D({"confirmed":false})`, "v: "+rejected("gated"), "v: T(ok)")
	f.wantStream("v", r.Session, v3...)
	counts("V3", 1, 1, 2)
	p.wantContents(2, `[
		{"role":"user","parts":[{"text":"go"}]},
		{"role":"model","parts":[{"functionCall":{"name":"plain"}},{"functionCall":{"name":"gated"}},{"functionCall":{"name":"gated","id":"srv-3"}}]},
		{"role":"user","parts":[
			{"functionResponse":{"name":"plain","response":{"ok":true}}},
			{"functionResponse":{"name":"gated","response":{"got":{"x":1}}}},
			{"functionResponse":{"name":"gated","id":"srv-3","response":{"error":"error tool \"gated\" call is rejected"}}}]}]`)

	// V4, ours: nothing runs again.
	f.wantReceipt("v", r.Session, questions[1].Confirmation.ID, "ann", `{"confirmed":true,"payload":{"x":2}}`, protocol.CodeDecided, "approved at")
	f.wantStream("v", r.Session, v3...)
	counts("V4", 1, 1, 2)
}

const oneGated = `{"turns":[
	{"parts":[{"functionCall":{"name":"gated","id":"g"}}],"finishReason":"STOP"},
	{"parts":[{"text":"ok"}],"finishReason":"STOP"}]}`

func TestVectorV5TextWhileAPersonIsAsked(t *testing.T) { // ours: the text is queued and its sender is told
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(oneGated), nil)
	f.coordinate(newAgent(t, "v", p.llm, "gated"))
	var runs atomic.Int32
	f.work(mapped(t, functiontool.Config{Name: "gated", RequireConfirmation: true}, payloadOf(&runs)))
	r := f.send(t.Context(), "v", "", "go")
	f.untilParked("v", r.Session)
	second := f.send(t.Context(), "v", r.Session, "hurry")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := f.client.Wait(ctx, "v", r.Session, second.InputID)
	if err != nil || out.Waiting == nil || !out.Waiting.Queued || len(out.Waiting.Calls) != 1 {
		t.Fatalf("the sender is told %+v, %v", out, err)
	}
	contains(t, "what the sender is told", out.Waiting.String(), "the message is queued; the session waits for a decision on gated")
	p.wantCount(1)
	f.wantReceipt("v", r.Session, f.asked("v", r.Session)["g"], "ann", yes, "", "")
	contains(t, "the answer", f.wait(second).Text, "ok")
	if runs.Load() != 1 {
		t.Errorf("gated ran %d times", runs.Load())
	}
	f.wantStream("v", r.Session,
		"user: T(go)", "v: FC(gated)", "v: "+asks("gated")+" asks:1 skip", "v: W(gated) long:1",
		"user: T(hurry)", `user: D({"confirmed":true})`, `v: FR(gated: {"got":null})`, "v: T(ok)")
	p.wantCount(2)
	p.wantContents(2, `[
		{"role":"user","parts":[{"text":"go"}]},
		{"role":"model","parts":[{"functionCall":{"name":"gated","id":"g"}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"gated","id":"g","response":{"got":null}}}]},
		{"role":"user","parts":[{"text":"hurry"}]}]`)
}

func TestVectorV6TextBesideAnApproval(t *testing.T) { // ours: the text is kept
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(oneGated), nil)
	f.coordinate(newAgent(t, "v", p.llm, "gated"))
	var runs atomic.Int32
	f.work(mapped(t, functiontool.Config{Name: "gated", RequireConfirmation: true}, payloadOf(&runs)))
	r := f.send(t.Context(), "v", "", "go")
	f.untilParked("v", r.Session)
	question := f.asked("v", r.Session)["g"]
	both := &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{
		{FunctionResponse: &genai.FunctionResponse{ID: question, Name: protocol.ConfirmationFunction, Response: map[string]any{"confirmed": true, "payload": 7}}},
		{Text: "with care"},
	}}
	second, err := f.client.Send(t.Context(), "v", r.Session, both, client.WithInputID("both"))
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "the answer", f.wait(second).Text, "ok")
	// Sent again, all of it, the text is the same input and the decision is known.
	if _, err := f.client.Send(t.Context(), "v", r.Session, both, client.WithInputID("both")); protocol.CodeOf(err) != protocol.CodeDecided {
		t.Errorf("sent again: %v", err)
	}
	if runs.Load() != 1 {
		t.Errorf("gated ran %d times", runs.Load())
	}
	f.wantStream("v", r.Session, "user: T(go)", "v: FC(gated)", "v: "+asks("gated")+" asks:1 skip", "v: W(gated) long:1",
		"user: T(with care)", `user: D({"confirmed":true,"payload":7})`, `v: FR(gated: {"got":7})`, "v: T(ok)")
	p.wantContents(2, `[
		{"role":"user","parts":[{"text":"go"}]},
		{"role":"model","parts":[{"functionCall":{"name":"gated","id":"g"}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"gated","id":"g","response":{"got":7}}}]},
		{"role":"user","parts":[{"text":"with care"}]}]`)
	p.wantCount(2)
}

// Who may speak to a session need not be one who may decide: only the approval subject takes decisions.
func TestVectorV6AMessageOnTheBusIsNoPlaceForADecision(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(oneGated), nil)
	f.coordinate(newAgent(t, "v", p.llm, "gated"))
	var runs atomic.Int32
	f.work(mapped(t, functiontool.Config{Name: "gated", RequireConfirmation: true}, payloadOf(&runs)))
	r := f.send(t.Context(), "v", "", "go")
	f.untilParked("v", r.Session)
	question := f.asked("v", r.Session)["g"]
	both := `{"v":1,"id":"both","kind":"message","content":{"role":"user","parts":[{"text":"with care"},
		{"functionResponse":{"id":"` + question + `","name":"adk_request_confirmation","response":{"confirmed":true}}}]}}`
	if _, err := f.conn.Publish(t.Context(), natswire.Msg{Subject: f.conn.Names().InputSubject("v", "tester", r.Session), Data: []byte(both)}); err != nil {
		t.Fatal(err)
	}
	if out := f.wait(client.Receipt{App: "v", Session: r.Session, InputID: "both"}); !out.Refused || out.Problem.Code != protocol.CodeBadMessage {
		t.Errorf("a message with a decision in it: %+v", out)
	}
	f.open("v", r.Session, 1)
	alone := &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{
		{FunctionResponse: &genai.FunctionResponse{ID: question, Name: protocol.ConfirmationFunction, Response: map[string]any{"response": `{"confirmed":false}`}}}}}
	if said, err := f.client.Send(t.Context(), "v", r.Session, alone); err != nil || said.InputID != "" {
		t.Errorf("a decision alone: %+v, %v", said, err)
	}
	contains(t, "the answer", f.wait(r).Text, "ok")
	if runs.Load() != 0 {
		t.Errorf("a refused call ran %d times", runs.Load())
	}
	for name, bad := range map[string]*genai.Content{
		"no word":     {Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{ID: question, Name: protocol.ConfirmationFunction}}}},
		"no question": {Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{Name: protocol.ConfirmationFunction, Response: map[string]any{"confirmed": true}}}}},
	} {
		if _, err := f.client.Send(t.Context(), "v", r.Session, bad); err == nil {
			t.Errorf("%s: it was sent", name)
		}
	}
	if _, err := f.client.Send(t.Context(), "v", "", alone); protocol.CodeOf(err) != protocol.CodeUsage {
		t.Errorf("a decision without a session: %v", err)
	}
}

func TestVectorV7AnUnknownConfirmation(t *testing.T) { // ours: a typed refusal, and nothing persisted
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(oneGated), nil)
	f.coordinate(newAgent(t, "v", p.llm, "gated"))
	var runs atomic.Int32
	f.work(mapped(t, functiontool.Config{Name: "gated", RequireConfirmation: true}, payloadOf(&runs)))
	r := f.send(t.Context(), "v", "", "go")
	f.untilParked("v", r.Session)
	events := len(f.log("v", r.Session))
	f.wantReceipt("v", r.Session, protocol.NewID(), "ann", yes, protocol.CodeUnknownConfirm, "there is none")
	if got := len(f.log("v", r.Session)); got != events || runs.Load() != 0 {
		t.Errorf("the log has %d events, it had %d; gated ran %d times", got, events, runs.Load())
	}
	p.wantCount(1)
	f.open("v", r.Session, 1)
}

const oneTrip = `{"turns":[
	{"parts":[{"functionCall":{"name":"spend","id":"s"}}],"finishReason":"STOP"},
	{"parts":[{"text":"ok"}],"finishReason":"STOP"}]}`

func TestVectorV8AToolAsksByItself(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(oneTrip), nil)
	f.coordinate(newAgent(t, "v", p.llm, "spend"))
	f.work(mapped(t, functiontool.Config{Name: "spend"}, func(ctx tool.Context, _ map[string]any) (map[string]any, error) {
		word := ctx.ToolConfirmation()
		if word == nil {
			return map[string]any{"status": "waiting"}, ctx.RequestConfirmation("need it", map[string]any{"amount": 3})
		}
		return map[string]any{"confirmed": word.Confirmed, "spent": word.Payload}, nil
	}))
	r := f.send(t.Context(), "v", "", "go")
	f.untilParked("v", r.Session)
	v8 := []string{
		"user: T(go)", "v: FC(spend)", `v: FR(spend: {"status":"waiting"}) asks:1 skip`, `v: W(spend, need it, {"amount":3}) long:1`,
	}
	f.wantStream("v", r.Session, v8...)
	p.wantCount(1)
	question := f.open("v", r.Session, 1)[0].Confirmation.ID
	f.wantReceipt("v", r.Session, question, "ann",
		`{"id":"`+question+`","name":"adk_request_confirmation","response":{"response":"{\"confirmed\":true,\"payload\":{\"amount\":5}}"}}`, "", "")
	contains(t, "the answer", f.wait(r).Text, "ok")
	f.wantStream("v", r.Session, append(v8, `user: D({"confirmed":true,"payload":{"amount":5}})`, `v: FR(spend: {"confirmed":true,"spent":{"amount":5}})`, "v: T(ok)")...)
	p.wantContents(2, `[
		{"role":"user","parts":[{"text":"go"}]},
		{"role":"model","parts":[{"functionCall":{"name":"spend","id":"s"}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"spend","id":"s","response":{"confirmed":true,"spent":{"amount":5}}}}]}]`)
}

func TestVectorV9AToolAsksAgain(t *testing.T) { // ours: it parks again, and a refusal is the tool's to read
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(oneTrip), nil)
	f.coordinate(newAgent(t, "v", p.llm, "spend"))
	f.work(mapped(t, functiontool.Config{Name: "spend"}, func(ctx tool.Context, _ map[string]any) (map[string]any, error) {
		word := ctx.ToolConfirmation()
		switch {
		case word == nil:
			return nil, ctx.RequestConfirmation("how much?", map[string]any{"amount": 3})
		case word.Payload != nil:
			if err := ctx.State().Set("amount", word.Payload.(map[string]any)["amount"]); err != nil {
				return nil, err
			}
			return nil, ctx.RequestConfirmation("really?", nil)
		}
		amount, err := ctx.State().Get("amount")
		return map[string]any{"confirmed": word.Confirmed, "amount": amount}, err
	}))
	r := f.send(t.Context(), "v", "", "go")
	first := f.open("v", r.Session, 1)[0]
	f.wantReceipt("v", r.Session, first.Confirmation.ID, "ann", `{"confirmed":true,"payload":{"amount":5}}`, "", "")
	var second client.Parked
	f.eventually("second question", func() bool {
		all := f.waiting("v", r.Session)
		if len(all) == 1 && all[0].Confirmation != nil && all[0].Confirmation.ID != first.Confirmation.ID {
			second = all[0]
		}
		return second.Call != ""
	})
	if second.Call != first.Call || second.Round <= first.Round {
		t.Errorf("the second question is about call %s in round %d, the first about %s in %d", second.Call, second.Round, first.Call, first.Round)
	}
	p.wantCount(1)
	f.wantReceipt("v", r.Session, first.Confirmation.ID, "ann", yes, protocol.CodeDecided, "approved at")
	f.wantReceipt("v", r.Session, second.Confirmation.ID, "ann", no, "", "")
	contains(t, "the answer", f.wait(r).Text, "ok")
	f.wantStream("v", r.Session,
		"user: T(go)", "v: FC(spend)",
		"v: "+asks("spend")+" asks:1 skip", `v: W(spend, how much?, {"amount":3}) long:1`, `user: D({"confirmed":true,"payload":{"amount":5}})`,
		"v: "+asks("spend")+` asks:1 skip delta:{"amount":5}`, `v: W(spend, really?) long:1`, `user: D({"confirmed":false})`,
		`v: FR(spend: {"amount":5,"confirmed":false})`, "v: T(ok)")
	p.wantCount(2)
}
