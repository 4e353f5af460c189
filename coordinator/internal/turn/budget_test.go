//go:build !race

package turn

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/protocol"
)

// A turn of one call as the coordinator makes it: verdict, history, the next request. Bus and log are left out.
func TestTurnStaysInItsAllocationBudget(t *testing.T) {
	const budget = 66
	a := newAgent(t, nil)
	offers := []Offer{offer("a", nil)}
	resp := finalResponse(&genai.Part{FunctionCall: &genai.FunctionCall{Name: "a", Args: map[string]any{"text": strings.Repeat("q", 256)}}})
	answers := []protocol.Answer{answer("call0", `{"result":"`+strings.Repeat("a", 256)+`"}`)}
	h := logOf(said("go"))
	seq := h.Seq()
	one := func() {
		d, err := Decide(a, offers, desk(), callID, resp)
		if err != nil {
			t.Fatal(err)
		}
		d.RequestSeq = seq
		h.Expect(d)
		ev := protocol.Event{V: protocol.Version, Turn: &d.Turn}
		if seq > 1 {
			ev.Answers = answers
		}
		seq++
		h.Add(seq, ev)
		if _, err := h.Request(t.Context(), a, Run{State: map[string]json.RawMessage{}}, offers, answers); err != nil {
			t.Fatal(err)
		}
	}
	if got := testing.AllocsPerRun(200, one); got > budget {
		t.Errorf("%.0f allocations a turn, the budget is %d", got, budget)
	} else {
		t.Logf("%.0f allocations a turn", got)
	}
}
