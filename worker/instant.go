package worker

import (
	"sync"
	"time"

	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// brokerClock estimates the broker's time, which the instants in a call are made of. Every stored message that the worker
// sees carries a JetStream timestamp that lies before the moment it is seen, so the newest of them plus the local time
// since is a lower bound; the worker's own beats, read back after each, make it exact to a round trip and follow a clock
// that was set back. All methods may be called concurrently.
type brokerClock struct {
	clock natswire.Clock

	mu     sync.Mutex
	base   time.Time // a local instant, so that differences are monotonic
	offset time.Duration
	origin time.Time // the broker's time at base + offset 0
	known  bool
}

// saw notes the timestamp of a message that the worker sees now.
func (c *brokerClock) saw(stored time.Time) { c.note(stored, c.clock.Now(), false) }

// set notes the timestamp of a message that was stored just before the local instant at.
func (c *brokerClock) set(stored, at time.Time) { c.note(stored, at, true) }

func (c *brokerClock) note(stored, at time.Time, exact bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		c.base, c.origin, c.known = at, stored, true
		return
	}
	offset := stored.Sub(c.origin) - at.Sub(c.base)
	if exact || offset > c.offset {
		c.offset = offset
	}
}

// now is the estimate; the local time as long as no message was seen.
func (c *brokerClock) now() time.Time {
	local := c.clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return local
	}
	return c.origin.Add(local.Sub(c.base) + c.offset)
}

// until is how long it is to an instant in Unix milliseconds of the broker; negative when it passed.
func (c *brokerClock) until(ms int64) time.Duration { return time.UnixMilli(ms).Sub(c.now()) }
