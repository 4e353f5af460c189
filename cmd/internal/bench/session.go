package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/toolfabric/toolfabric/coordinator/client"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// sessions opens and ends the sessions of a fabric.
type sessions struct {
	f     *fabric
	count int // of all so far; guarded by mu, as is ends

	mu   sync.Mutex
	ends map[string]chan error // by session; each has room for its one end
}

func newSessions(f *fabric) *sessions { return &sessions{f: f, ends: map[string]chan error{}} }

// watch hears of the ends of sessions until mute is called, with one subscription for all of them, as a gateway would.
func (s *sessions) watch() (mute func(), err error) {
	return s.f.conn.Subscribe(s.f.conn.Names().LiveSubject(appName, "*"), s.event)
}

var stopKey = []byte(`"stop":`)

// event hears of an event of a log. Only those that may end a run are read.
func (s *sessions) event(m natswire.Msg) {
	if !bytes.Contains(m.Data, stopKey) {
		return
	}
	ev, err := protocol.DecodeEvent(m.Data)
	if err == nil && ev.Stop == nil {
		return
	}
	if err == nil && ev.Stop.Kind != protocol.StopDone {
		err = fmt.Errorf("the session stopped: %s", ev.Stop.Kind)
	}
	if err == nil && ev.Stop.Problem != nil {
		err = errors.New(ev.Stop.Problem.Message)
	}
	id := m.Subject[bytes.LastIndexByte([]byte(m.Subject), '.')+1:]
	s.mu.Lock()
	end := s.ends[id]
	delete(s.ends, id)
	s.mu.Unlock()
	if end != nil {
		end <- err
	}
}

// running is a session that was begun and not ended.
type running struct {
	*talk
	turns int // that were measured in it
	end   chan error
}

// heard waits until the model is asked again, with the results of its calls. That the session ended is told only to those
// who watch.
func (r *running) heard(ctx context.Context, calls int) error {
	select {
	case c := <-r.asked:
		return checkAnswers(c, calls)
	case err := <-r.end:
		return fmt.Errorf("the session ended early: %w", cmp.Or(err, errors.New("without a problem")))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// start sends the input of a new session.
func (s *sessions) start(ctx context.Context) (*running, error) {
	s.mu.Lock()
	s.count++
	id := protocol.NewID()
	r := &running{talk: s.f.model.begin("conversation " + strconv.Itoa(s.count)), end: make(chan error, 1)}
	s.ends[id] = r.end
	s.mu.Unlock()
	_, err := s.f.client.Send(ctx, appName, id, client.Text(r.key))
	return r, err
}

// ended waits for the event that ends the session.
func (s *sessions) ended(ctx context.Context, r *running) error {
	defer s.f.model.forget(r.talk)
	select {
	case err := <-r.end:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// open starts n sessions and waits until all of them have asked the model.
func (s *sessions) open(ctx context.Context, n int) ([]*running, error) {
	all := make([]*running, n)
	_, err := Drive(ctx, openAtOnce, n, func(ctx context.Context, _, i int) (err error) {
		if all[i], err = s.start(ctx); err != nil {
			return err
		}
		return all[i].heard(ctx, 0)
	})
	return all, err
}

// finish ends sessions that wait for the model.
func (s *sessions) finish(ctx context.Context, all []*running) error {
	mute, err := s.watch()
	if err != nil {
		return err
	}
	defer mute()
	_, err = Drive(ctx, openAtOnce, len(all), func(ctx context.Context, _, i int) error {
		all[i].answer <- lastWord()
		return s.ended(ctx, all[i])
	})
	return err
}

const openAtOnce = 32
