package worker

import (
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
)

// cancelled says that somebody asked to stop a call. The request is lossy and proves nothing: whoever sent it decides the
// call by its claim, and the answer of a call that was stopped is stored like any other.
type cancelled struct{ subject string }

func (c cancelled) apply(l *loop) {
	call := c.subject[strings.LastIndexByte(c.subject, '.')+1:]
	for k, r := range l.runs {
		if k.call == call && r.cancel != nil && c.subject == l.w.cfg.Names.CancelSubject(r.pool.name, call) {
			r.cancel(protocol.Errorf(protocol.CodeCancelled, "call %s of tool %s was cancelled", call, r.pool.name))
		}
	}
}
