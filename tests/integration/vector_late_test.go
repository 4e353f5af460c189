package integration

import (
	"encoding/json"
	"testing"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
)

// late is the one call of a session whose result is to come from outside.
func (f *fabric) late(app, session string) client.Parked {
	f.t.Helper()
	var p client.Parked
	f.eventually("call that waits for its result", func() bool {
		all := f.waiting(app, session)
		if len(all) == 1 && all[0].Confirmation == nil && !all[0].WithPool() {
			p = all[0]
		}
		return p.Call != ""
	})
	return p
}

// complete gives a waiting call its result.
func (f *fabric) complete(p client.Parked, value string) {
	f.t.Helper()
	if _, err := f.client.Complete(f.t.Context(), p, protocol.Result{Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(value)}); err != nil {
		f.t.Fatal(err)
	}
}

// rests waits until the session's log ends with a good end and holds n turns.
func (f *fabric) rests(app, session string, n int) {
	f.t.Helper()
	seen := 0
	f.until(app, session, "rest after its turns", func(ev *protocol.Event) bool {
		if ev.Turn != nil {
			seen++
		}
		return seen == n && ev.Stop != nil
	})
}

func TestVectorV12ATicketAndThenTheResult(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(`{"turns":[
		{"parts":[{"functionCall":{"name":"order","id":"o"}},{"functionCall":{"name":"plain","id":"p"}}],"finishReason":"STOP"},
		{"parts":[{"text":"ordered"}],"finishReason":"STOP"},
		{"parts":[{"text":"still waiting"}],"finishReason":"STOP"}]}`), nil)
	f.coordinate(newAgent(t, "v", p.llm, "order", "plain"))
	order, plain := answering("order", `{"status":"pending"}`, tool.AtMostOnce), answering("plain", `{"ok":true}`, tool.AtMostOnce)
	order.long = true
	f.work(order, plain)
	out := f.ask("v", "", "go")
	contains(t, "the answer", out.Text, "ordered")
	v12 := []string{"user: T(go)", "v: FC(order) FC(plain) long:1", `v: FR(order: {"status":"pending"}) FR(plain: {"ok":true})`, "v: T(ordered)"}
	f.wantStream("v", out.Session, v12...)

	contains(t, "the answer to a text", f.ask("v", out.Session, "and?").Text, "still waiting")
	calls := `{"role":"user","parts":[{"text":"go"}]},
		{"role":"model","parts":[{"functionCall":{"name":"order","id":"o"}},{"functionCall":{"name":"plain","id":"p"}}]}`
	p.wantContents(3, `[`+calls+`,
		{"role":"user","parts":[{"functionResponse":{"name":"order","id":"o","response":{"status":"pending"}}},{"functionResponse":{"name":"plain","id":"p","response":{"ok":true}}}]},
		{"role":"model","parts":[{"text":"ordered"}]},
		{"role":"user","parts":[{"text":"and?"}]}]`)

	late := f.late("v", out.Session)
	f.complete(late, `{"url":"u"}`)
	f.rests("v", out.Session, 4)
	f.wantStream("v", out.Session, append(v12, "user: T(and?)", "v: T(still waiting)", `v: FR(order: {"url":"u"})`, "v: T(ordered)")...) // the script goes by what it is shown
	p.wantCount(4)
	p.wantContents(4, `[`+calls+`,
		{"role":"user","parts":[{"functionResponse":{"name":"order","id":"o","response":{"url":"u"}}},{"functionResponse":{"name":"plain","id":"p","response":{"ok":true}}}]}]`)
	if _, err := f.client.Complete(t.Context(), late, protocol.Result{Outcome: protocol.OutcomeCompleted, Value: json.RawMessage(`1`)}); protocol.CodeOf(err) != protocol.CodeAnswered {
		t.Errorf("a second result: %v", err)
	}
	order.wantRuns(t, 1)
	plain.wantRuns(t, 1)
}

func TestVectorV13NothingAndThenTheResult(t *testing.T) { // as adk-go does since its first version: the model is not asked before
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(`{"turns":[
		{"parts":[{"functionCall":{"name":"order","id":"o"}}],"finishReason":"STOP"},
		{"parts":[{"text":"it came"}],"finishReason":"STOP"}]}`), nil)
	f.coordinate(newAgent(t, "v", p.llm, "order"))
	f.work(mapped(t, functiontool.Config{Name: "order", IsLongRunning: true}, func(tool.Context, map[string]any) (map[string]any, error) { return nil, nil }))
	r := f.send(t.Context(), "v", "", "go")
	f.untilParked("v", r.Session)
	v13 := []string{"user: T(go)", "v: FC(order) long:1"}
	f.wantStream("v", r.Session, v13...)
	p.wantCount(1)
	f.complete(f.late("v", r.Session), `{"url":"u"}`)
	contains(t, "the answer", f.wait(r).Text, "it came")
	f.wantStream("v", r.Session, append(v13, `v: FR(order: {"url":"u"})`, "v: T(it came)")...)
	p.wantCount(2)
	p.wantContents(2, `[
		{"role":"user","parts":[{"text":"go"}]},
		{"role":"model","parts":[{"functionCall":{"name":"order","id":"o"}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"order","id":"o","response":{"url":"u"}}}]}]`)
}

func TestVectorV14AResultOfAnUnknownCall(t *testing.T) { // ours: refused, not stored
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(`{"turns":[{"parts":[{"text":"one"}],"finishReason":"STOP"},{"parts":[{"text":"two"}],"finishReason":"STOP"}]}`), nil)
	f.coordinate(newAgent(t, "v", p.llm))
	out := f.ask("v", "", "go")
	if _, err := f.client.ParkedCall(t.Context(), "v", out.Session, "nobody"); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Errorf("an unknown call: %v", err)
	}
	n := f.conn.Names()
	message := `{"v":1,"id":"forged","kind":"message","content":{"role":"user","parts":[{"functionResponse":{"id":"nobody","name":"order","response":{"url":"u"}}}]}}`
	if _, err := f.conn.Publish(t.Context(), natswire.Msg{Subject: n.InputSubject("v", "tester", out.Session), Data: []byte(message)}); err != nil {
		t.Fatal(err)
	}
	if got := f.wait(client.Receipt{App: "v", Session: out.Session, InputID: "forged"}); !got.Refused || got.Problem.Code != protocol.CodeBadMessage {
		t.Errorf("the message ended as %+v", got)
	}
	if _, err := f.conn.Publish(t.Context(), natswire.Msg{Subject: n.WakeSubject("v", "order", out.Session, "nobody", 1), Data: []byte(`{"v":1,"outcome":"completed","value":{"url":"u"}}`)}); err != nil {
		t.Fatal(err)
	}
	letters := f.deadLetters("result", func(l protocol.DeadLetter) bool { return l.Session == out.Session })
	if len(letters) != 1 || letters[0].Code != protocol.CodeNotFound {
		t.Errorf("dead letters: %+v", letters)
	}
	contains(t, "the next answer", f.ask("v", out.Session, "more").Text, "two")
	f.wantStream("v", out.Session, "user: T(go)", "v: T(one)", "user: T(more)", "v: T(two)")
	p.wantCount(2)
	p.wantContents(2, `[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"text":"one"}]},{"role":"user","parts":[{"text":"more"}]}]`)
}
