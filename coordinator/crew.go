package coordinator

import "sync"

// crew is the goroutines of a coordinator: its sessions, and what they and the intakes started. Unlike a WaitGroup's, its
// count may rise from zero while somebody waits: a message can come in at any moment of a drain.
type crew struct {
	mu     sync.Mutex
	n      int
	idle   chan struct{} // made by the one who waits; closed when nobody is left
	closed bool
}

// Go runs f in a goroutine, unless everybody has left: then whatever it was for is somebody else's.
func (c *crew) Go(f func()) {
	if c.Enter() {
		go func() {
			defer c.Leave()
			f()
		}()
	}
}

// Enter counts one more, who calls Leave at its end. It returns false when everybody has left.
func (c *crew) Enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.n++
	return true
}

// Leave counts one less.
func (c *crew) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	c.leave()
}

// Dismiss returns a channel that is closed when the last one has left; nobody new comes after that. It is called once.
func (c *crew) Dismiss() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = make(chan struct{})
	c.leave()
	return c.idle
}

// leave ends the crew when its last one has left and somebody waits for that.
func (c *crew) leave() {
	if c.n == 0 && c.idle != nil && !c.closed {
		c.closed = true
		close(c.idle)
	}
}
