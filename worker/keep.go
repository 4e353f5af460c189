package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/toolfabric/toolfabric/protocol"
)

// keep stores what a tool keeps out of its result. The name is the hash, so that storing it again is no harm and whoever reads
// it can tell that it is what the result named.
func (w *Worker) keep(ctx context.Context, data []byte, mediaType string) (protocol.Ref, error) {
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	ref := protocol.Ref{Name: "sha256-" + hash, SHA256: hash, Size: int64(len(data)), Type: mediaType}
	return ref, w.cfg.Bus.PutObject(ctx, ref.Name, data)
}
