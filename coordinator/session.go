package coordinator

import (
	"context"

	"github.com/toolfabric/toolfabric/coordinator/internal/fold"
	"github.com/toolfabric/toolfabric/coordinator/internal/journal"
	"github.com/toolfabric/toolfabric/coordinator/internal/turn"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/fault"
)

// session is one session in this process: a loop that takes what comes for it, adopts it if nobody drives it, drives it to
// its stop, and goes away. Its fields belong to the loop's goroutine; others put items into the inbox.
type session struct {
	c   *Coordinator
	key key
	log *logView

	inbox   *inbox
	hand    []any // taken from the inbox and not released yet
	state   fold.State
	drive   drive
	leaving bool // the coordinator drains: nothing more is taken
}

// logView is what the loop has read of the log for the model.
type logView struct {
	history turn.History
	whole   bool            // history and unread together start at the first event
	unread  []journal.Entry // what follows the history; it is read when a model is to be asked, not before
}

func newSession(c *Coordinator, k key) *session {
	return &session{c: c, key: k, inbox: newInbox()}
}

// run is the loop. Every pass ends with a session that somebody else drives, that is at rest, or that this process gave up.
func (s *session) run(ctx context.Context) {
	defer s.c.recovered(s)
	defer func() { s.drive.end() }()
	for {
		mine := s.adopt(ctx, s.grasp())
		s.release()
		if mine {
			s.work(ctx)
		}
		s.drive.end()
		if s.log != nil && s.state.Stopped == protocol.StopDone {
			s.c.shelf.put(s.key, s.state, s.log)
			s.log = nil
		}
		if s.c.forget(s) {
			return
		}
	}
}

// grasp empties the inbox into the loop's hand.
func (s *session) grasp() []any {
	s.hand = s.inbox.take()
	return s.hand
}

// release lets other deliveries in, once those in hand have been looked at.
func (s *session) release() {
	release(s.hand)
	s.hand = nil
}

func release(items []any) {
	for _, item := range items {
		switch item := item.(type) {
		case arrival:
			item.release()
		case alarm:
			item.release()
		}
	}
}

// drives reports whether this loop drives the session, as far as it knows.
func (s *session) drives() bool { return s.drive.cancel != nil && s.state.Owned() && !s.leaving }

// load reads the session's log, or what is new in it. begins says that there is none.
func (s *session) load(ctx context.Context, begins bool) error {
	if k := s.c.shelf.take(s.key); k != nil {
		state, entries, ok, err := s.c.journal.Resume(ctx, k.state)
		if err != nil {
			return err
		}
		if ok {
			s.state, s.log = state, k.log
			s.log.unread = entries
			return nil
		}
	}
	if begins && s.state.Seq == 0 {
		s.state, s.log = fold.State{App: s.key.app, Session: s.key.session}, &logView{whole: true}
		return nil
	}
	state, entries, whole, err := s.c.journal.Load(ctx, s.key.app, s.key.session)
	if err != nil {
		return err
	}
	s.state = state
	s.log = &logView{whole: whole}
	if whole {
		s.log.unread = entries
	}
	return nil
}

// history is the whole log as a model is shown it.
func (s *session) history(ctx context.Context) (*turn.History, error) {
	if !s.log.whole {
		entries, err := s.c.journal.Range(ctx, s.key.app, s.key.session, 0, s.state.Seq)
		if err != nil {
			return nil, err
		}
		s.log = &logView{whole: true, unread: entries}
	}
	s.log.read()
	return &s.log.history, nil
}

func (l *logView) read() {
	for _, e := range l.unread {
		l.history.Add(e.Seq, e.Event)
	}
	l.unread = nil
}

// step takes in, appends the event that it entails, if any, and folds it. An error means that the session is not ours any
// more, or that it is unknown whether it is: the loop drops everything it has in hand for it.
func (s *session) step(ctx context.Context, in fold.Input) error {
	ev := s.propose(in)
	if ev == nil {
		return nil
	}
	return s.append(ctx, ev)
}

// propose takes in, and returns the event that it entails; nil is none.
func (s *session) propose(in fold.Input) *protocol.Event {
	next, ev := fold.Step(s.state, in, fold.Stamp{ID: s.c.cfg.NewID, At: s.c.now()})
	s.state = next
	return ev
}

// append writes a proposed event and folds it.
func (s *session) append(ctx context.Context, ev *protocol.Event) error {
	if ev.Stop != nil && ev.Stop.Kind == protocol.StopParked {
		fault.Point("K17")
	}
	seq, err := s.c.journal.Append(ctx, s.key.app, s.key.session, s.state.Seq, ev)
	if err != nil {
		return err
	}
	return s.fold(seq, *ev)
}

func (s *session) fold(seq uint64, ev protocol.Event) error {
	next, err := fold.Fold(s.state, seq, ev)
	if err != nil {
		return err
	}
	s.drive.ran = s.drive.ran || s.state.Run != nil || next.Run != nil
	s.state = next
	if ev.Stop != nil {
		s.drive.problem = ev.Stop.Problem
	}
	switch {
	case !s.log.whole:
	case len(s.log.unread) > 0:
		s.log.unread = append(s.log.unread, journal.Entry{Seq: seq, Event: ev})
	default:
		s.log.history.Add(seq, ev)
	}
	return nil
}

// prepare judges what needs more than the log: a message's content, a client's call.
func (s *session) prepare(ctx context.Context, in protocol.FoldedInput) fold.Arrival {
	if in.Kind == protocol.InputMessage {
		if err := turn.CheckMessage(in.Content); err != nil {
			in.Refused = protocol.ProblemOf(err)
		}
	}
	a := fold.Arrival{Input: in}
	if in.Kind == protocol.InputCall && in.Call != nil && s.key.app == protocol.CallsApp {
		s.c.catalogue.learn(ctx, in.Call.Tool)
		offers := s.c.catalogue.about(in.Call.Tool)
		t := turn.ClientCall(offers, s.c.desk(s.key, in.Client), s.c.cfg.NewID(), *in.Call)
		if s.drive.ctx != nil {
			s.beginCalls(&t)
		}
		a.Turn = &t
	}
	return a
}
