package coordinator

import "sync"

// inbox is what a session's loop waits on: unbounded, so that whoever puts into it never blocks.
type inbox struct {
	mu     sync.Mutex
	items  []any
	closed bool
	bell   chan struct{} // holds a token while items holds more than notes
}

func newInbox() *inbox { return &inbox{bell: make(chan struct{}, 1)} }

// put adds an item. It returns false when the loop has ended: the item was not taken.
func (b *inbox) put(item any) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.items = append(b.items, item)
	b.ring()
	return true
}

// ring wakes the loop.
func (b *inbox) ring() {
	select {
	case b.bell <- struct{}{}:
	default:
	}
}

// note adds an item that can wait until the loop wakes for something else.
func (b *inbox) note(item any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.items = append(b.items, item)
	}
}

// take empties the inbox.
func (b *inbox) take() []any {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.bell:
	default:
	}
	items := b.items
	b.items = nil
	return items
}

// empty reports whether nothing waits.
func (b *inbox) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items) == 0
}

// abandon ends the inbox and returns what was in it.
func (b *inbox) abandon() []any {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items, b.closed = nil, true
	return items
}

// close ends the inbox if it is empty; false means that there is more to do.
func (b *inbox) close() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.items) > 0 {
		return false
	}
	b.closed = true
	return true
}
