package worker

import "sync"

// inbox carries events to the loop. put never blocks, so that the callbacks of the Bus may call it; what waits in it is
// bounded by what the loop asked the broker for, and by the cancels that arrive.
type inbox struct {
	mu    sync.Mutex
	queue []event
	ready chan struct{} // holds a token while queue may be non-empty
}

// event is something that happened, applied to the loop's state.
type event interface{ apply(l *loop) }

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

func (b *inbox) put(ev event) {
	b.mu.Lock()
	b.queue = append(b.queue, ev)
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// take returns what waits, in order. The caller gives the slice back as spare with its next call.
func (b *inbox) take(spare []event) []event {
	clear(spare)
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.queue
	b.queue = spare[:0]
	return got
}
