package worker

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

const (
	progressEvery = 100 * time.Millisecond // the least time between two words of progress of one call
	progressText  = 1 << 10                // bytes of pieces that wait for it; more are sent at once
	progressTotal = 1 << 20                // bytes of pieces of one call; the rest comes with its answer only
)

// progress is how a running tool tells whoever listens how far it is. What comes too soon is left out, but for questions to
// people and for the pieces of a streamed answer, which are put together. It may be used concurrently; pieces stay in order if they are told in order.
type progress struct {
	w     *Worker
	r     *run
	begin time.Time

	mu     sync.Mutex // guards what follows
	next   time.Duration
	pieces []byte
	told   int
}

func (w *Worker) progress(r *run) *progress {
	return &progress{w: w, r: r, begin: w.cfg.Clock.Now()}
}

// tell is called by the running tool.
func (p *progress) tell(word protocol.Progress) {
	now := p.w.cfg.Clock.Now().Sub(p.begin)
	p.mu.Lock()
	if word.Piece {
		if p.told += len(word.Message); p.told <= progressTotal {
			p.pieces = append(p.pieces, word.Message...)
		}
	}
	soon := now < p.next && word.Asks == "" && !(word.Piece && len(p.pieces) >= progressText)
	if soon || word.Piece && len(p.pieces) == 0 {
		p.mu.Unlock()
		return
	}
	p.next = now + progressEvery
	if word.Piece {
		word.Message, p.pieces = string(p.pieces), p.pieces[:0]
	}
	p.mu.Unlock()
	p.send(word)
}

// flush sends the pieces that still wait. It is called when the tool has ended.
func (p *progress) flush() {
	p.mu.Lock()
	word := protocol.Progress{Message: string(p.pieces), Piece: true}
	p.pieces = nil
	p.mu.Unlock()
	if word.Message != "" {
		p.send(word)
	}
}

func (p *progress) send(word protocol.Progress) {
	word.Worker, word.Attempt = p.w.cfg.ID, p.r.first.Attempt
	data, err := json.Marshal(word)
	if err != nil {
		return // data that is no JSON; progress may be dropped
	}
	subject := p.w.cfg.Names.ProgressSubject(p.r.pool.name, p.r.env.Session, p.r.env.Call)
	_ = p.w.cfg.Bus.Emit(context.WithoutCancel(p.r.ctx), natswire.Msg{Subject: subject, Data: data}) // lossy by contract
}
