package workerfile

import (
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/toolfabric/toolfabric/protocol"
)

// Pool is how the fabric treats calls of a tool. Zero fields take the defaults of protocol.Declaration.
type Pool struct {
	Effect       protocol.Effect // empty is what the kind of tool says: at_most_once for a command, by its method for an endpoint
	Timeout      time.Duration   // of one attempt
	QueueTimeout time.Duration   // waiting for a worker
	Attempts     int             // retryable failures included
	Confirm      bool            // a person must agree to each call
	ParkTimeout  time.Duration   // waiting for a person, or for a result from outside
	MaxActive    int             // over the whole pool
}

// keys are those of a pool in a file.
func (p *Pool) keys(r *reader) map[string]func(ast.Node) {
	return map[string]func(ast.Node){
		"effect":        func(n ast.Node) { p.Effect = r.effect(n) },
		"timeout":       func(n ast.Node) { p.Timeout = r.Duration(n) },
		"queue_timeout": func(n ast.Node) { p.QueueTimeout = r.Duration(n) },
		"attempts":      func(n ast.Node) { p.Attempts = r.Int(n) },
		"confirm":       func(n ast.Node) { p.Confirm = r.Bool(n) },
		"park_timeout":  func(n ast.Node) { p.ParkTimeout = r.Duration(n) },
		"max_active":    func(n ast.Node) { p.MaxActive = r.Int(n) },
	}
}
