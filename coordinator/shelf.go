package coordinator

import (
	"container/list"
	"sync"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
)

// shelf keeps what this process has read of long logs whose sessions have come to rest, so that the next message in a long
// conversation does not begin with reading all of it. It is never truth: what is taken from it is brought up to the tail
// of the log, and a coordinator that has nothing on its shelf reads the log. What was used longest ago makes room for what
// is new; short logs are not kept, so sessions at rest cost nothing in general and shelfRoom at most.
type shelf struct {
	mu    sync.Mutex
	room  int // in bytes
	used  int
	order list.List
	byKey map[key]*list.Element
}

// kept is a session at rest: nobody else holds its parts.
type kept struct {
	key   key
	state fold.State
	log   *logView
	size  int
}

// shelfRoom is how much is kept, in bytes of messages, answers and results with an allowance for each. A conversation of
// 10,000 events of some 300 bytes takes about 7 MiB of it.
const shelfRoom = 64 << 20

func newShelf(room int) *shelf { return &shelf{room: room, byKey: map[key]*list.Element{}} }

// put keeps a session that rests, if its log is long and it fits. The caller lets go of state and log.
func (h *shelf) put(k key, state fold.State, log *logView) {
	if state.Snapshot == 0 || !log.whole {
		return
	}
	log.read()
	size := log.history.Size()
	if size > h.room {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(h.byKey[k])
	h.used += size
	h.byKey[k] = h.order.PushFront(&kept{k, state, log, size})
	for h.used > h.room {
		h.drop(h.order.Back())
	}
}

// take gives what is kept of a session, and forgets it: from now on it is the caller's. It is nil for most sessions.
func (h *shelf) take(k key) *kept {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.byKey[k]
	if e == nil {
		return nil
	}
	h.drop(e)
	return e.Value.(*kept)
}

func (h *shelf) drop(e *list.Element) {
	if e == nil {
		return
	}
	k := e.Value.(*kept)
	h.order.Remove(e)
	delete(h.byKey, k.key)
	h.used -= k.size
}
