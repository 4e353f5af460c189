package turn

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
)

func by(agent string, ev protocol.Event) protocol.Event {
	ev.Turn.Agent = agent
	return ev
}

// shown is the conversation as agent is shown it, in lines.
func (h *History) shown(t *testing.T, agent string, open []protocol.Answer, runOnly bool) string {
	t.Helper()
	contents, err := h.ContentsFor(agent, open, runOnly)
	if err != nil {
		t.Fatal(err)
	}
	return lines(contents)
}

func wantLines(t *testing.T, what, got, want string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestWhatOtherAgentsSaidIsToldForContext(t *testing.T) {
	h := logOf(
		said("go"),
		by("a", asked(1, "let me see", "look#p1:c1")),
		join(answered(answer("c1", `{"n":12345678901234567890}`)), by("a", asked(2, "hand#p2:c2"))),
		join(answered(answer("c2", `{}`)), by("b", asked(3, "look#p3:c3"))),
	)
	open := []protocol.Answer{answer("c3", `{"ok":true}`)}
	wantLines(t, "b is shown", h.shown(t, "b", open, false), `user: go
user: For context: [a] said: let me see [a] called tool `+"`look`"+` with parameters: {}
user: For context: [a] `+"`look`"+` tool returned result: {"n":12345678901234567890}
user: For context: [a] called tool `+"`hand`"+` with parameters: {}
user: For context: [a] `+"`hand`"+` tool returned result: {}
model: call look#p3
user: response look#p3 {"ok":true}
`)
	wantLines(t, "a is shown", h.shown(t, "a", open, false), `user: go
model: let me see call look#p1
user: response look#p1 {"n":12345678901234567890}
model: call hand#p2
user: response hand#p2 {"result":{}}
user: For context: [b] called tool `+"`look`"+` with parameters: {}
user: For context: [b] `+"`look`"+` tool returned result: {"ok":true}
`)
	wantLines(t, "c is shown of the run", h.shown(t, "c", open, true), `user: go
user: For context: [a] said: let me see [a] called tool `+"`look`"+` with parameters: {}
user: For context: [a] `+"`look`"+` tool returned result: {"n":12345678901234567890}
user: For context: [a] called tool `+"`hand`"+` with parameters: {}
user: For context: [a] `+"`hand`"+` tool returned result: {}
user: For context: [b] called tool `+"`look`"+` with parameters: {}
user: For context: [b] `+"`look`"+` tool returned result: {"ok":true}
`)
}

func TestThoughtsOfOtherAgentsAreLeftOut(t *testing.T) {
	raw, _ := encode(&genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{
		{Text: "hm", Thought: true}, {Text: "yes", ThoughtSignature: []byte{1}},
		{InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte{2}}, ThoughtSignature: []byte{3}}, {ThoughtSignature: []byte{4}},
	}})
	only, _ := encode(&genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{Text: "hm", Thought: true}}})
	h := logOf(said("go"),
		protocol.Event{Turn: &protocol.Turn{Agent: "a", RequestSeq: 1, Content: raw}, Stop: &protocol.Stop{Kind: protocol.StopDone}}, said("more"),
		protocol.Event{Turn: &protocol.Turn{Agent: "a", RequestSeq: 3, Content: only}, Stop: &protocol.Stop{Kind: protocol.StopDone}}, said("so?"))
	got, err := h.ContentsFor("b", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) *genai.Part { return &genai.Part{Text: s} }
	want := []*genai.Content{
		{Role: "user", Parts: []*genai.Part{text("go")}},
		{Role: "user", Parts: []*genai.Part{text("For context:"), text("[a] said: yes"), {InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte{2}}}}},
		{Role: "user", Parts: []*genai.Part{text("more")}},
		{Role: "user", Parts: []*genai.Part{text("so?")}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("contents (-want +got):\n%s", diff)
	}
}

func TestALateResultOfAnotherAgentsCallIsToldAnew(t *testing.T) {
	h := logOf(
		said("go"),
		by("a", asked(1, "slow#p1:c1")),
		join(answered(pending("c1", 0, `{"ticket":1}`)), by("b", asked(2, "wait")), stopped(protocol.StopDone)),
		said("well?"),
	)
	wantLines(t, "b is shown", h.shown(t, "b", nil, false), `user: go
user: For context: [a] called tool `+"`slow`"+` with parameters: {}
user: For context: [a] `+"`slow`"+` tool returned result: {"ticket":1}
model: wait
user: well?
`)
	h.Add(5, answered(ended("c1", 1, `{"r":9}`)))
	wantLines(t, "b is shown then", h.shown(t, "b", nil, false), `user: go
user: For context: [a] called tool `+"`slow`"+` with parameters: {}
user: For context: [a] `+"`slow`"+` tool returned result: {"r":9}
model: wait
user: well?
`)
}

func TestOneAgentsContentsAreItsOwn(t *testing.T) {
	h := logOf(said("go"), by("a", asked(1, "look#p1:c1")), join(answered(answer("c1", `{"n":1}`)), by("a", asked(2, "done")), stopped(protocol.StopDone)), said("more"))
	own, err := h.ContentsFor("a", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	all, err := h.Contents(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, own); diff != "" {
		t.Errorf("contents (-all +own):\n%s", diff)
	}
	if h.retold != nil {
		t.Error("something was retold")
	}
}

func TestWhatIsRetoldIsMadeOnce(t *testing.T) {
	h := logOf(said("go"), by("a", asked(1, "look#p1:c1")), join(answered(answer("c1", `{"n":1}`)), by("b", asked(2, "done")), stopped(protocol.StopDone)), said("more"))
	first, err := h.ContentsFor("b", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	again, err := h.ContentsFor("b", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range first {
		if first[i] != again[i] {
			t.Errorf("content %d was made twice", i)
		}
	}
}
