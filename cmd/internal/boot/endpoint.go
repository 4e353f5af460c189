package boot

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/toolfabric/toolfabric/protocol"
)

// Endpoint says where a server of this machine listens, so that a command in another terminal finds it, and what cannot be
// asked of the server itself.
type Endpoint struct {
	URL  string `json:"url"`
	PID  int    `json:"pid"`
	Sync string `json:"sync"` // always or 100ms
}

const endpointFile = "endpoint.json"

// WriteEndpoint leaves e in dir until the returned function removes it. The file may outlive a process that is killed.
func WriteEndpoint(dir string, e Endpoint) (remove func(), err error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, endpointFile)
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o600); err != nil {
		return nil, protocol.Wrap(err, protocol.CodeUsage, "the data directory %s cannot be written; name another with --data", dir)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return nil, protocol.Wrap(err, protocol.CodeUsage, "the data directory %s cannot be written; name another with --data", dir)
	}
	return func() { _ = os.Remove(path) }, nil
}

// ReadEndpoint reads what WriteEndpoint left; the zero Endpoint when there is none.
func ReadEndpoint(dir string) Endpoint {
	var e Endpoint
	text, err := os.ReadFile(filepath.Join(dir, endpointFile))
	if err != nil || json.Unmarshal(text, &e) != nil {
		return Endpoint{}
	}
	return e
}
