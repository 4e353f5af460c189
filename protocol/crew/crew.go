// Package crew runs the goroutines of an actor: it counts them, so that the actor can wait for all, and uses them again,
// so that short work finds a stack that has grown already. It knows nothing of what they do.
package crew

import "sync"

// Crew is the goroutines of one actor. Unlike a WaitGroup's, its count may rise from zero while somebody waits: a message
// can come in at any moment of a drain. The zero value is ready. Its methods may be called concurrently.
type Crew struct {
	mu     sync.Mutex
	n      int
	idle   chan struct{} // made by the one who waits; closed when nobody is left
	closed bool
	spare  []chan func() // of goroutines that wait for work, the one that came last at the end
}

// spares is how many goroutines wait for work. Their stacks are all that an actor at rest keeps of them.
const spares = 16

// Go runs f in a goroutine, unless everybody has left: then whatever it was for is somebody else's.
func (c *Crew) Go(f func()) {
	if c.Enter() {
		c.Lend(func() {
			defer c.Leave()
			f()
		})
	}
}

// Lend runs f in a goroutine that nobody waits for, unless its caller has entered for it.
func (c *Crew) Lend(f func()) {
	c.mu.Lock()
	last := len(c.spare) - 1
	if last < 0 {
		c.mu.Unlock()
		go c.work(f)
		return
	}
	work := c.spare[last]
	c.spare = c.spare[:last]
	c.mu.Unlock()
	work <- f
}

// work runs f, and then what comes, until there are enough who wait.
func (c *Crew) work(f func()) {
	work := make(chan func(), 1)
	for f != nil {
		f()
		if !c.wait(work) {
			return
		}
		f = <-work
	}
}

func (c *Crew) wait(work chan func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.spare) == spares {
		return false
	}
	c.spare = append(c.spare, work)
	return true
}

// Enter counts one more, who calls Leave at its end. It returns false when everybody has left.
func (c *Crew) Enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.n++
	return true
}

// Leave counts one less.
func (c *Crew) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	c.leave()
}

// Dismiss returns a channel that is closed when the last one has left; nobody new comes after that, and the goroutines that
// wait for work end. It is called once.
func (c *Crew) Dismiss() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = make(chan struct{})
	c.leave()
	return c.idle
}

// leave ends the crew when its last one has left and somebody waits for that.
func (c *Crew) leave() {
	if c.n > 0 || c.idle == nil || c.closed {
		return
	}
	c.closed = true
	for _, work := range c.spare {
		close(work)
	}
	c.spare = nil
	close(c.idle)
}
