//go:build race

package embed

import "time"

// SyncInterval is long under the race detector: nats-server 2.15.3 has a data race of its own when the first sync comes
// before a stream is made, harmless to it and fatal to our tests.
const SyncInterval = time.Minute
