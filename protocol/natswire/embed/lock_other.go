//go:build !unix

package embed

import (
	"os"
	"path/filepath"

	"github.com/toolfabric/toolfabric/protocol"
)

// lockDir takes a directory for this process; unlock gives it back. Without advisory locks the file itself is the lock: after
// a crash it must be removed by hand.
func lockDir(dir string) (unlock func(), err error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, protocol.Wrap(err, protocol.CodeUsage, "the data directory %s is in use by another process; if there is none, remove %s", dir, path)
	}
	if err := writeOwner(f); err != nil {
		f.Close()
		return nil, protocol.Wrap(err, protocol.CodeUsage, "lock the data directory %s", dir)
	}
	return func() {
		f.Close()
		os.Remove(path)
	}, nil
}
