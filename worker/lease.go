package worker

import "time"

// leaseBeats is how often a running call is reported in progress within its consumer's AckWait: two beats may be lost.
const leaseBeats = 3

// defaultAckWait is the broker's own, for a consumer that does not tell.
const defaultAckWait = 30 * time.Second

// heartbeat keeps the broker from giving a pool's running calls to another worker.
func (l *loop) heartbeat(p *pool) {
	for _, r := range l.runs {
		if r.pool != p || l.lapsed(r) {
			continue
		}
		r.leased = l.now
		for i := range r.handles {
			r.handles[i].InProgress()
		}
	}
}

// lapsed reports whether this process was stopped for so long that the broker has given the call to another worker. The
// broker does not fence what is said about a message: a heartbeat would keep the other worker's lease alive after its
// death, and a nak would end it under its hands. The call may still be answered, for the first answer wins.
func (l *loop) lapsed(r *run) bool { return l.now.Sub(r.leased) > r.pool.lease }
