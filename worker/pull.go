package worker

import "time"

// turn is how long a tool may keep slots asked for without a call while another tool has none.
const turn = 100 * time.Millisecond

// balance asks for messages into the slots that are neither used nor promised: the tools that run least come first, the
// one that has waited longest before the others, an idle one that has something asked for last, and tools whose link is not
// open yet are counted in. A tool is asked for again when half of what it may have is used up, so that requests come in batches.
func (l *loop) balance() {
	if l.draining {
		return
	}
	free := l.free()
	for free > 0 {
		var next *pool
		hungry, opening := 0, 0
		for _, p := range l.w.pools {
			if p.link.puller == nil && p.asked == 0 {
				opening++
			}
			room := min(p.limit-p.running-p.asked, free)
			if p.link.puller == nil || room <= 0 || p.asked > room {
				continue
			}
			hungry++
			if next == nil || p.before(next) {
				next = p
			}
		}
		if next == nil {
			return
		}
		n := max(1, min(next.limit-next.running-next.asked, free/(hungry+opening)))
		next.asked += n
		next.moved = l.now
		next.link.puller.Want(n)
		free -= n
	}
	if l.starving() != nil {
		l.alarm.Set(l.now.Add(turn))
	}
}

// before reports whether p is asked for sooner than q.
func (p *pool) before(q *pool) bool {
	if idle, other := p.idle && p.asked > 0, q.idle && q.asked > 0; idle != other {
		return other
	}
	if all, others := p.running+p.asked, q.running+q.asked; all != others {
		return all < others
	}
	return p.starved.Before(q.starved)
}

func (l *loop) free() int {
	free := l.w.cfg.Slots - len(l.runs)
	for _, p := range l.w.pools {
		free -= p.asked
	}
	return free
}

// starving is a tool that could run a call and has nothing asked for, while another tool has something to give; nil if there is none.
func (l *loop) starving() *pool {
	for _, p := range l.w.pools {
		if p.link.puller == nil || p.asked > 0 || p.running >= p.limit {
			continue
		}
		for _, q := range l.w.pools {
			if q.asked > 1 || q.asked == 1 && p.running == 0 {
				return p
			}
		}
	}
	return nil
}

// takeTurns takes slots that have been asked for in vain away from idle tools when another tool has none: all but one, and
// that one too for a tool that runs nothing at all. As many are taken as the other tool runs, so that it comes to many slots
// in few turns. What the broker may deliver can only be taken back by closing the subscription and opening it again.
func (l *loop) takeTurns() {
	if l.draining || l.free() > 0 {
		return
	}
	p := l.starving()
	if p == nil {
		return
	}
	for taken := 0; taken < max(1, p.running); {
		idle := l.idle(p.running > 0)
		if idle == nil {
			break
		}
		keep := min(1, idle.asked-1)
		taken += idle.asked - keep
		idle.unlink()
		idle.asked = keep
		idle.idle, idle.starved = true, l.now
		l.open(idle, 0)
	}
	l.alarm.Set(l.now.Add(turn))
}

// idle is the tool that has had most slots asked for in vain, for longer than a turn; with spare one that has more than one.
func (l *loop) idle(spare bool) (most *pool) {
	for _, q := range l.w.pools {
		if q.link.puller == nil || q.asked == 0 || q.asked == 1 && spare || l.now.Sub(q.moved) < turn {
			continue
		}
		if most == nil || q.asked > most.asked || q.asked == most.asked && q.moved.Before(most.moved) {
			most = q
		}
	}
	return most
}
