package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

func TestInputThatIsTooLargeForTheLogIsRefused(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	m := holding()
	close(m.release)
	f.coordinate(newAgent(t, "app", m))
	out := f.ask("app", "s1", strings.Repeat("x", 600<<10))
	if !out.Refused || out.Problem == nil || out.Problem.Code != protocol.CodeTooLarge {
		t.Errorf("the input ended with %+v, want a refusal as too_large", out.Problem)
	}
	contains(t, "the next answer", f.ask("app", "s1", "small").Text, "answer to small")
}

func TestLargeInputsThatCameTogetherAreAllFolded(t *testing.T) {
	t.Parallel()
	f := newFabric(t)
	m := holding()
	close(m.release)
	a := newAgent(t, "app", m)
	first := f.coordinate(a)
	f.ask("app", "s1", "before")
	first.stop()
	var sent []client.Receipt
	for i := range 5 {
		sent = append(sent, f.send(t.Context(), "app", "s1", fmt.Sprint(i, strings.Repeat("x", 200<<10))))
	}
	f.coordinate(a)
	for i, r := range sent {
		if out := f.wait(r); out.Problem != nil || !strings.Contains(out.Text, "answer to ") {
			t.Errorf("input %d ended with %+v", i, out.Problem)
		}
	}
}

func TestManyMiddlingResultsOfATurnFitTheLog(t *testing.T) {
	t.Parallel()
	const calls = 40
	f := newFabric(t)
	var parts []string
	for i := range calls {
		parts = append(parts, fmt.Sprintf("{functionCall: {name: page, id: c%d, args: {n: %d}}}", i, i))
	}
	p := provide(t, []byte("turns:\n  - {parts: ["+strings.Join(parts, ", ")+"], finishReason: STOP}\n  - {parts: [{text: finished}], finishReason: STOP}\n"), nil)
	f.coordinate(newAgent(t, "app", p.llm, "page"))
	value := func(n int) string { return fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, strings.Repeat(`<\"`, 10<<10)) } // 30 KiB, all of it escapes
	f.work(&stub{name: "page", do: func(_ tool.Context, args json.RawMessage) (json.RawMessage, error) {
		var in struct{ N int }
		err := json.Unmarshal(args, &in)
		return json.RawMessage(value(in.N)), err
	}})
	out := f.ask("app", "", "go")
	if out.Problem != nil {
		t.Fatalf("the run failed: %+v", out.Problem)
	}
	contains(t, "the answer", out.Text, "finished")
	p.wantCount(2)
	log := f.log("app", out.Session)
	for i, a := range answers(log) {
		if a.Body == nil {
			wantJSON(t, fmt.Sprintf("answer %d, which is in the log", i), string(a.Value), value(i))
			continue
		}
		whole, err := f.client.Body(t.Context(), *a.Body)
		if err != nil {
			t.Fatal(err)
		}
		wantJSON(t, fmt.Sprintf("the body of answer %d", i), string(whole), value(i))
	}
}
