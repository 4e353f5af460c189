//go:build !race

package embed

import "time"

// SyncInterval is how often the server puts what was written on the disk.
const SyncInterval = 100 * time.Millisecond
