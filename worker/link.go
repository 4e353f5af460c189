package worker

import (
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// The pauses between tries to open a pull subscription.
const (
	reopenFirst = 100 * time.Millisecond
	reopenLast  = 5 * time.Second
)

// link is a pool's tie to its consumer. Generations tell the words of an old subscription from those of the present one.
type link struct {
	gen    int
	puller natswire.Puller // nil while it is being opened
	told   bool            // that the tool is served; a turn is no news
	mute   func()          // ends the subscription to cancels; nil before the first link
}

// open starts to open a pool's pull subscription after a pause, for as many tries as it takes.
func (l *loop) open(p *pool, pause time.Duration) {
	p.link.gen++
	gen, listening := p.link.gen, p.link.mute != nil
	ctx := l.intake
	l.goroutines.Go(func() {
		select {
		case <-l.registered:
		case <-ctx.Done():
			return
		}
		if pause > 0 && !l.w.sleep(ctx, pause) {
			return
		}
		o := opened{pool: p, gen: gen}
		for try := 0; ; try++ {
			err := l.tryOpen(&o, listening || o.mute != nil)
			l.w.await(p, protocol.CodeOf(err) == protocol.CodeNotFound)
			if err == nil || ctx.Err() != nil {
				l.in.put(o)
				return
			}
			l.w.events.Waiting(p.name, err)
			if !l.w.sleep(ctx, backoff(reopenFirst, reopenLast, try, l.w.cfg.ID)) {
				l.in.put(o)
				return
			}
		}
	})
}

func (l *loop) tryOpen(o *opened, listening bool) error {
	p, bus, names := o.pool, l.w.cfg.Bus, l.w.cfg.Names
	if !listening {
		mute, err := bus.Subscribe(names.CancelSubject(p.name, "*"), func(m natswire.Msg) { l.in.put(cancelled{m.Subject}) })
		if err != nil {
			return err
		}
		o.mute = mute
	}
	state, err := bus.ConsumerState(l.intake, names.Calls(), p.name)
	if err != nil {
		return err
	}
	o.config = state.Config
	o.puller, err = bus.Pull(l.intake, names.Calls(), p.name, natswire.PullEvents{
		Deliver: func(d natswire.Delivery) {
			env, err := protocol.DecodeEnvelope(d.Data)
			l.in.put(delivered{Delivery: d, pool: p, gen: o.gen, env: env, err: err})
		},
		Lost: func(err error) { l.in.put(lost{p, o.gen, err}) },
	})
	return err
}

// opened says that a link is open, or, without a puller, that the worker drains before it was.
type opened struct {
	pool   *pool
	gen    int
	puller natswire.Puller
	config natswire.Consumer
	mute   func()
}

func (o opened) apply(l *loop) {
	p := o.pool
	switch {
	case o.mute == nil:
	case p.link.mute == nil:
		p.link.mute = o.mute
	default:
		o.mute() // a link that was lost at once: two were being opened
	}
	if o.puller == nil {
		return
	}
	if l.draining || o.gen != p.link.gen {
		o.puller.Close()
		return
	}
	p.link.puller = o.puller
	p.deliver = o.config.MaxDeliver
	p.lease = o.config.AckWait
	if p.lease <= 0 {
		p.lease = defaultAckWait
	}
	p.moved = l.now
	if p.asked > 0 {
		p.link.puller.Want(p.asked)
	}
	if !p.link.told {
		p.link.told = true
		l.w.events.Serving(p.name)
	}
}

// lost says that a link ended by itself.
type lost struct {
	pool *pool
	gen  int
	err  error
}

func (e lost) apply(l *loop) {
	p := e.pool
	if e.gen != p.link.gen || l.draining {
		return
	}
	l.w.events.Lost(p.name, e.err)
	p.link.told = false
	p.unlink()
	l.open(p, backoff(reopenFirst, reopenLast, 0, l.w.cfg.ID))
	p.starved = l.now
}

// unlink closes the pull subscription and forgets what was asked for.
func (p *pool) unlink() {
	if p.link.puller != nil {
		p.link.puller.Close()
		p.link.puller = nil
	}
	p.asked = 0
}
