package integration

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

func TestSameInputIsOneRun(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	m := holding()
	a := newAgent(t, "app", m)
	f.coordinate(a)
	f.coordinate(a)
	session, id := protocol.NewID(), protocol.NewID()
	first := f.send(t.Context(), "app", session, "go", client.WithInputID(id))
	var sends sync.WaitGroup
	for range 49 {
		sends.Go(func() {
			if _, err := f.client.Send(t.Context(), "app", session, client.Text("go"), client.WithInputID(id)); err != nil {
				t.Error(err)
			}
		})
	}
	sends.Wait()
	close(m.release)
	contains(t, "the answer", f.wait(first).Text, "answer to go")
	f.eventually("empty stream of inputs", func() bool {
		left, err := f.conn.Read(t.Context(), f.conn.Names().Input(), f.conn.Names().InputFilter("app"), 1, 100)
		return err == nil && len(left) == 0
	})
	inputs := 0
	log := f.log("app", session)
	for _, e := range log {
		inputs += len(e.Event.Inputs)
	}
	if inputs != 1 || len(turns(log)) != 1 || len(m.asked) != 1 {
		t.Errorf("the log holds %d inputs and %d turns, the model was asked %d times; want one of each", inputs, len(turns(log)), len(m.asked))
	}
}

func TestInputWhileTheModelAnswersIsAnsweredToo(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	m := holding()
	f.coordinate(newAgent(t, "app", m))
	first := f.send(t.Context(), "app", "", "one")
	if got := receive(t, "question", m.asked); got != "one" {
		t.Fatalf("the model was asked %q", got)
	}
	second := f.send(t.Context(), "app", first.Session, "two")
	f.until("app", first.Session, "fold of the second input", func(ev *protocol.Event) bool {
		return len(ev.Inputs) > 0 && ev.Inputs[0].ID == second.InputID
	})
	close(m.release)
	contains(t, "the answer to the second", f.wait(second).Text, "answer to two")
	contains(t, "the end of the run", f.wait(first).Text, "answer to two")
	if got := receive(t, "second question", m.asked); got != "two" {
		t.Errorf("the model was asked %q", got)
	}
	all := turns(f.log("app", first.Session))
	if len(all) != 2 {
		t.Fatalf("the log holds %d turns, want both answers", len(all))
	}
	contains(t, "the first turn", string(all[0].Content), "answer to one")
}

func TestInputWhileCallsAreOpenIsSeenByTheNextTurn(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	p := provide(t, []byte(twoSteps), nil)
	f.coordinate(newAgent(t, "app", p.llm, "slow"))
	g := gated("slow", `{"v":1}`, tool.Settings{})
	f.work(g)
	first := f.send(t.Context(), "app", "", "go")
	receive(t, "start of the call", g.started)
	second := f.send(t.Context(), "app", first.Session, "be quick")
	f.until("app", first.Session, "fold of the second input", func(ev *protocol.Event) bool {
		return len(ev.Inputs) > 0 && ev.Inputs[0].ID == second.InputID
	})
	g.open()
	contains(t, "the answer", f.wait(second).Text, "finished")
	g.wantRuns(t, 1)
	p.wantCount(2)
	p.wantContents(2, `[
		{"role":"user","parts":[{"text":"go"}]},
		{"role":"model","parts":[{"functionCall":{"id":"s","name":"slow"}}]},
		{"role":"user","parts":[{"functionResponse":{"id":"s","name":"slow","response":{"v":1}}}]},
		{"role":"user","parts":[{"text":"be quick"}]}]`)
}

func TestMalformedInputIsADeadLetterAndBlocksNobody(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	m := holding()
	close(m.release)
	f.coordinate(newAgent(t, "app", m))
	contains(t, "the answer", f.ask("app", "s1", "before").Text, "answer to before")
	n := f.conn.Names()
	bad := map[string][]byte{
		"no_json":   []byte(`{"v":1`),
		"twice":     []byte(`{"v":1,"id":"a","id":"b","kind":"message","content":{}}`),
		"version":   []byte(`{"v":99,"id":"a","kind":"message","content":{}}`),
		"kind":      []byte(`{"v":1,"id":"a","kind":"whatever"}`),
		"empty":     nil,
		"too_large": append(bytes.Repeat([]byte("x"), 900<<10), '{'),
	}
	for session, data := range bad {
		if _, err := f.conn.Publish(t.Context(), natswire.Msg{Subject: n.InputSubject("app", "tester", session), Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	contains(t, "the answer", f.ask("app", "s1", "after").Text, "answer to after")
	for session, data := range bad {
		letters := f.deadLetters("input", func(l protocol.DeadLetter) bool { return l.Session == session })
		l := letters[0]
		if len(letters) != 1 || l.App != "app" || l.Code == "" || l.Reason == "" || l.Stream != n.Input() || l.Subject != n.InputSubject("app", "tester", session) {
			t.Errorf("dead letters of %s: %.300v", session, letters)
		}
		if session != "too_large" && !bytes.Equal(l.Data, data) {
			t.Errorf("the record of %s holds %q, want the message as it was", session, l.Data)
		}
	}
	f.eventually("empty stream of inputs", func() bool {
		left, err := f.conn.Read(t.Context(), n.Input(), n.InputFilter("app"), 1, 100)
		return err == nil && len(left) == 0
	})
}

func TestMalformedContentIsRefusedToItsSender(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	m := holding()
	close(m.release)
	f.coordinate(newAgent(t, "app", m))
	f.ask("app", "s1", "before")
	n := f.conn.Names()
	_, err := f.conn.Publish(t.Context(), natswire.Msg{Subject: n.InputSubject("app", "tester", "s1"),
		Data: []byte(`{"v":1,"id":"bad","kind":"message","content":{"role":"user","parts":[{"functionResponse":{"name":"pay","response":{}}}]}}`)})
	if err != nil {
		t.Fatal(err)
	}
	out := f.wait(client.Receipt{App: "app", Session: "s1", InputID: "bad"})
	if !out.Refused || out.Problem == nil {
		t.Errorf("the input ended with %+v, want a refusal", out)
	}
	contains(t, "the answer", f.ask("app", "s1", "after").Text, "answer to after")
}

func TestManySessionsAtOnce(t *testing.T) {
	t.Parallel()
	const sessions = 100
	f := newFabric(t)
	p := provide(t, []byte(sums), nil)
	a := newAgent(t, "math", p.llm, "add")
	f.coordinate(a)
	add := &stub{name: "add", schema: []byte(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}`),
		do: sumOf}
	f.work(add)
	f.work(add)
	f.coordinate(a) // knows the tool from its start
	f.ask("math", "", "add 1 and 1")
	var asking sync.WaitGroup
	for i := range sessions {
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			r, err := f.client.Send(ctx, "math", "", client.Text(fmt.Sprintf("add %d and 1000", i)))
			if err != nil {
				t.Error(err)
				return
			}
			out, err := f.client.Wait(ctx, r.App, r.Session, r.InputID)
			if err != nil || out.Problem != nil || !strings.Contains(out.Text, fmt.Sprintf("the sum is %d", i+1000)) {
				t.Errorf("session %d ended with %+v, %v", i, out, err)
			}
		})
	}
	asking.Wait()
	add.wantRuns(t, sessions+1)
	p.wantCount(2 * (sessions + 1))
}
