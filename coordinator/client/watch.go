package client

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"sync"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
)

// Update is one thing a watcher sees; exactly one exported field is set.
type Update struct {
	Entry    *Entry    // an event of the log: the truth
	Token    *Token    // a piece of an answer: lossy, superseded by the recorded turn
	Progress *Progress // a running call's word: lossy
	Done     *Done     // a call's stored result, before the log has it: lossy
	Waiting  *Waiting  // of Follow only: the run goes on when its calls have what they wait for
	Outcome  *Outcome  // of Follow only, and its last: how the run ended

	tail bool // all that the log holds now was yielded; never leaves this package
}

// Token is a piece of text on its way.
type Token struct {
	Epoch string // the adoption it belongs to, in decimal
	protocol.Token
}

// before reports whether u is a token of an older adoption.
func (u *Update) before(epoch uint64) bool {
	if u.Token == nil {
		return false
	}
	n, err := strconv.ParseUint(u.Token.Epoch, 10, 64)
	return err != nil || n < epoch
}

// Progress is how far a running call is.
type Progress struct {
	Tool string
	Call string
	protocol.Progress
}

// Done is a call that has its result. An event with its Answer follows.
type Done struct {
	Tool  string
	Call  string
	Round int
	protocol.Result
}

// Limits of a watch: log events read at once, lossy updates kept for a slow reader, and how long a silent watch waits
// before it looks at the log without having been told to.
const (
	pageSize   = 256
	maxBacklog = 4096
	firstLook  = 250 * time.Millisecond
	lastLook   = 5 * time.Second
)

// Watch yields the events of a session's log from stream sequence from on (0 is its beginning), every one, in order, as
// they are appended, and between them tokens, progress and results. It goes on until the caller stops ranging or ctx ends, which
// yields the end as an error. An error of code bus_unreachable does not end it: ranging on tries again.
func (c *Client) Watch(ctx context.Context, app, session string, from uint64) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		for u, err := range c.watch(ctx, app, session, from, true) {
			if !u.tail && !yield(u, err) {
				return
			}
		}
	}
}

func (c *Client) watch(ctx context.Context, app, session string, from uint64, lossy bool) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		f, err := c.listen(app, session, lossy)
		if err != nil {
			yield(Update{}, err)
			return
		}
		defer f.stop()
		c.read(ctx, f, app, session, from)(yield)
	}
}

// read is watch with what f has heard since it listens.
func (c *Client) read(ctx context.Context, f *feed, app, session string, from uint64) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		next, pause, behind := from, firstLook, true
		for {
			whole := true
			if behind {
				var read, ok bool
				if read, whole, ok = c.readOn(ctx, app, session, &next, yield); !ok {
					return
				}
				if read {
					pause = firstLook
				}
			}
			if whole && !yield(Update{tail: true}, nil) {
				return
			}
			fired, cancel := c.cfg.Clock.After(pause)
			behind = !whole
			select {
			case <-ctx.Done():
				cancel()
				yield(Update{}, protocol.ContextError(ctx))
				return
			case <-f.signal:
				pause = firstLook
			case <-fired:
				pause, behind = min(2*pause, lastLook), true
			}
			cancel()
			for _, u := range f.take() {
				if !yield(u, nil) {
					return
				}
			}
			missed, ok := f.hear(&next, yield)
			if !ok {
				return
			}
			behind = behind || missed
		}
	}
}

// readOn yields what the log holds from *next on. It reports whether there was anything, whether that was all, and whether to
// go on.
func (c *Client) readOn(ctx context.Context, app, session string, next *uint64, yield func(Update, error) bool) (read, whole, ok bool) {
	for {
		page, err := c.page(ctx, app, session, *next)
		if err != nil {
			if ctx.Err() != nil {
				return read, false, true // said once, by the caller
			}
			return read, false, yield(Update{}, err) && protocol.CodeOf(err) == protocol.CodeUnreachable
		}
		for i := range page {
			*next = page[i].Seq + 1
			if !yield(Update{Entry: &page[i]}, nil) {
				return true, false, false
			}
		}
		read = read || len(page) > 0
		if len(page) < pageSize {
			return read, true, true
		}
	}
}

// page reads up to pageSize entries.
func (c *Client) page(ctx context.Context, app, session string, from uint64) ([]Entry, error) {
	stored, err := c.cfg.Bus.Read(ctx, c.cfg.Names.Log(), c.cfg.Names.LogSubject(app, session), max(from, 1), pageSize)
	if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
		return nil, err
	}
	return entries(stored)
}

func entries(stored []natswire.Stored) ([]Entry, error) {
	out := make([]Entry, 0, len(stored))
	for _, s := range stored {
		ev, err := protocol.DecodeEvent(s.Data)
		if err != nil {
			return out, err
		}
		out = append(out, Entry{Seq: s.Seq, Time: s.Time.UTC(), Event: ev})
	}
	return out, nil
}

// listen subscribes to what tells of a session.
func (c *Client) listen(app, session string, lossy bool) (*feed, error) {
	n := c.cfg.Names
	f := &feed{signal: make(chan struct{}, 1), names: n}
	subjects := map[string]func(natswire.Msg){n.LiveSubject(app, session): f.event}
	if lossy {
		subjects[n.TokenSubject(session, "*")] = f.token
		subjects[n.ProgressSubject("*", session, "*")] = f.progress
		subjects[n.DoneSubject(session)] = f.done
	}
	for subject, deliver := range subjects {
		unsubscribe, err := c.cfg.Bus.Subscribe(subject, deliver)
		if err != nil {
			f.stop()
			return nil, err
		}
		f.stops = append(f.stops, unsubscribe)
	}
	return f, nil
}

// feed collects lossy updates, and events as they are republished, from the goroutines of subscriptions for one reader.
type feed struct {
	names  natswire.Names
	signal chan struct{} // one slot: there is news
	stops  []func()      // end the subscriptions

	mu     sync.Mutex
	queue  []Update
	events []natswire.Msg // of the log, in the order in which they came
	missed bool           // there were more events than are kept
}

func (f *feed) stop() {
	for _, s := range f.stops {
		s()
	}
}

func (f *feed) nudge() {
	select {
	case f.signal <- struct{}{}:
	default:
	}
}

func (f *feed) push(u Update) {
	f.mu.Lock()
	if len(f.queue) < maxBacklog {
		f.queue = append(f.queue, u)
	}
	f.mu.Unlock()
	f.nudge()
}

func (f *feed) take() []Update {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queue
	f.queue = nil
	return q
}

func (f *feed) token(m natswire.Msg) {
	t := Token{}
	_, epoch, ok := f.names.ParseToken(m.Subject)
	if ok && json.Unmarshal(m.Data, &t.Token) == nil {
		t.Epoch = epoch
		f.push(Update{Token: &t})
	}
}

func (f *feed) progress(m natswire.Msg) {
	p := Progress{}
	tool, _, call, ok := f.names.ParseProgress(m.Subject)
	if ok && protocol.Decode(m.Data, &p.Progress, protocol.MessageLimits) == nil {
		p.Tool, p.Call = tool, call
		f.push(Update{Progress: &p})
	}
}

func (f *feed) done(m natswire.Msg) {
	d := Done{}
	_, tool, call, round, ok := f.names.ParseDone(m)
	result, err := protocol.DecodeResult(m.Data)
	if ok && err == nil {
		d.Tool, d.Call, d.Round, d.Result = tool, call, round, result
		f.push(Update{Done: &d})
	}
}
