package coordinator

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/protocol"
)

// talked is a log whose only message has so many bytes.
func talked(bytes int) *logView {
	l := &logView{whole: true}
	content := json.RawMessage(`{"role":"user","parts":[{"text":"` + strings.Repeat("x", bytes) + `"}]}`)
	l.history.Add(1, protocol.Event{Inputs: []protocol.FoldedInput{{ID: "in", Kind: protocol.InputMessage, Content: content}}})
	return l
}

func TestTheShelfMakesRoomForWhatIsNew(t *testing.T) {
	const room = 10_000
	h := newShelf(room)
	long := fold.State{Snapshot: 1}
	at := func(session string) key { return key{"app", session} }
	put := func(session string, bytes int) { h.put(at(session), long, talked(bytes)) }
	put("a", 3000)
	put("b", 3000)
	put("c", 3000) // a has to go
	put("c", 3000) // again: the same one
	if h.take(at("a")) != nil || len(h.byKey) != 2 {
		t.Errorf("%d sessions on the shelf, want b and c", len(h.byKey))
	}
	if k := h.take(at("b")); k == nil || k.key != at("b") {
		t.Errorf("b: %+v", k)
	}
	if h.take(at("b")) != nil {
		t.Error("b was taken twice")
	}
	put("huge", 2*room)
	if len(h.byKey) != 1 || h.take(at("c")) == nil || h.used != 0 || h.order.Len() != 0 {
		t.Errorf("after one that is larger than the shelf and one that was there: %d sessions of %d bytes", len(h.byKey), h.used)
	}
}

func TestTheShelfHoldsLongLogsOnly(t *testing.T) {
	h := newShelf(10_000)
	partial := talked(10)
	partial.whole = false
	h.put(key{"app", "short"}, fold.State{}, talked(10))
	h.put(key{"app", "partial"}, fold.State{Snapshot: 1}, partial)
	if len(h.byKey) != 0 {
		t.Errorf("%d sessions on the shelf, want none", len(h.byKey))
	}
}
