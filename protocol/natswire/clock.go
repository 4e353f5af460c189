package natswire

import (
	"context"
	"sync"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
)

// Sleep waits for d on an actor's clock. It returns the *protocol.Error of ctx when that ends first.
func Sleep(ctx context.Context, clock Clock, d time.Duration) error {
	fired, stop := clock.After(d)
	defer stop()
	select {
	case <-fired:
		return nil
	case <-ctx.Done():
		return protocol.ContextError(ctx)
	}
}

// BrokerTime is the broker's clock as an actor knows it, so that one whose own clock is wrong reads instants right. Until
// the first Sync it is the local clock. Safe for concurrent use.
type BrokerTime struct {
	Clock Clock

	mu     sync.Mutex
	offset time.Duration // broker minus local
}

// Sync takes the broker's time as it was just told.
func (b *BrokerTime) Sync(broker time.Time) {
	offset := broker.Sub(b.Clock.Now())
	b.mu.Lock()
	b.offset = offset
	b.mu.Unlock()
}

// Observe takes the timestamp of a stored message: the broker's clock is not behind it.
func (b *BrokerTime) Observe(stored time.Time) {
	offset := stored.Sub(b.Clock.Now())
	b.mu.Lock()
	b.offset = max(b.offset, offset)
	b.mu.Unlock()
}

// Now is the broker's time, as near as it is known.
func (b *BrokerTime) Now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Clock.Now().Add(b.offset)
}
