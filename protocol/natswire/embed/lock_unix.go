//go:build unix

package embed

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/toolfabric/toolfabric/protocol"
)

// lockDir takes a directory for this process; unlock gives it back. Two servers on one store destroy it. The lock goes with
// its process, however that ends.
func lockDir(dir string) (unlock func(), err error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, protocol.Wrap(err, protocol.CodeUsage, "lock the data directory %s", dir)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		owner := readOwner(f)
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, protocol.Errorf(protocol.CodeUsage, "the data directory %s is in use by %s; stop it or choose another directory", dir, owner)
		}
		return nil, protocol.Wrap(err, protocol.CodeUsage, "lock the data directory %s", dir)
	}
	if err := writeOwner(f); err != nil {
		f.Close()
		return nil, protocol.Wrap(err, protocol.CodeUsage, "lock the data directory %s", dir)
	}
	return func() { f.Close() }, nil
}

func readOwner(f *os.File) string {
	var buf [32]byte
	n, _ := f.ReadAt(buf[:], 0)
	if pid := strings.TrimSpace(string(buf[:n])); pid != "" {
		return "process " + pid
	}
	return "another process"
}
