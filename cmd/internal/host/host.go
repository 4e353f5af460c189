package host

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/worker"
)

// The pauses between two listings: after news, so that a storm of them costs one listing each, and while a set fails.
const (
	newsEvery  = time.Second
	retryFirst = time.Second
	retryLast  = 30 * time.Second
)

// Run serves cfg.Tools and the tools of the sets until ctx ends, then drains. A set that cannot be listed is named in the
// log and tried again, while the others are served; a tool whose name another one has is left out, and the log names the
// owners of both. Each tool is served under a legal name: see tool.Aliased. A set that is a tool.Changing is listed again when it says so. Sets that are io.Closer are closed after the
// last call.
//
// It returns what worker.Run returns, and the errors of worker.New for cfg and cfg.Tools. Where there are two workers for
// a moment, both have cfg.Slots; a cfg.ID names the first one, later ones have a number after it.
func Run(ctx context.Context, cfg worker.Config, sets []tool.Toolset) error {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Tools = slices.Clone(cfg.Tools)
	for i, t := range cfg.Tools {
		if t != nil {
			cfg.Tools[i] = tool.Aliased(t)
		}
	}
	h := &host{cfg: cfg, sets: sets, news: make(chan struct{}, 1), ended: make(chan error), last: make([][]tool.Listed, len(sets))}
	defer h.close()
	if len(sets) == 0 {
		w, err := worker.New(cfg)
		if err != nil {
			return err
		}
		return w.Run(ctx)
	}
	if err := h.check(); err != nil {
		return err
	}
	return h.run(ctx)
}

// host is the state of one Run; only its goroutine touches it, but for the channels.
type host struct {
	cfg   worker.Config
	sets  []tool.Toolset
	news  chan struct{} // holds a token when a set's list changed
	ended chan error    // of workers

	made    int // workers
	running int
	served  string // what the newest worker serves, see signature
	drain   context.CancelFunc
	told    map[string]bool // what was logged in the last listing
	last    [][]tool.Listed // of each set, as it was listed last
}

// check refuses at once what no listing can mend.
func (h *host) check() error {
	if len(h.cfg.Tools) == 0 {
		h.cfg.Tools = nil
		return nil
	}
	_, err := worker.New(h.cfg)
	return err
}

func (h *host) run(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer stop()
	for _, s := range h.sets {
		if c, ok := s.(tool.Changing); ok {
			watchers.Go(func() { h.watch(watching, c) })
		}
	}
	var again <-chan time.Time
	pause := retryFirst
	look := func() error {
		failed, err := h.refresh(ctx)
		if again = nil; !failed {
			pause = retryFirst
			return err
		}
		again = time.After(pause)
		pause = min(2*pause, retryLast)
		return err
	}
	if err := look(); err != nil {
		return err
	}
	var err error
	for {
		select {
		case <-h.news:
			h.log(look())
		case <-again:
			h.log(look())
		case ended := <-h.ended:
			h.running--
			err = errors.Join(err, ended)
			if ended != nil && !errors.Is(ended, worker.ErrDrainTimeout) {
				ctx = stopped(h.drain)
			}
		case <-ctx.Done():
			if h.drain != nil {
				h.drain()
			}
			for ; h.running > 0; h.running-- {
				err = errors.Join(err, <-h.ended)
			}
			return err
		}
	}
}

// stopped ends the newest worker and is a context that has ended.
func stopped(drain context.CancelFunc) context.Context {
	drain()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// watch passes on that a set changed, not more often than newsEvery. One whose code panics is listened to no more.
func (h *host) watch(ctx context.Context, s tool.Changing) {
	defer h.contain("its changes are not followed any more")
	for {
		select {
		case <-s.Changed():
		case <-ctx.Done():
			return
		}
		select {
		case h.news <- struct{}{}:
		default:
		}
		timer := time.NewTimer(newsEvery)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// refresh lists the sets and lets a new worker take over when the tools are other ones. failed says that a set could not be
// listed; what it offered before is served on.
func (h *host) refresh(ctx context.Context) (failed bool, err error) {
	l := h.list(ctx)
	signature := l.signature()
	if ctx.Err() != nil || len(l.tools) == 0 || signature == h.served {
		return l.failed, nil
	}
	cfg := h.cfg
	cfg.Tools = l.tools
	if h.made > 0 && cfg.ID != "" {
		cfg.ID += "-" + strconv.Itoa(h.made+1)
	}
	w, err := worker.New(cfg)
	if err != nil {
		return l.failed, err
	}
	if h.made > 0 {
		h.cfg.Logger.Info("the tools have changed: another worker takes over", "tools", len(l.tools))
	}
	before := h.drain
	serving, drain := context.WithCancel(ctx)
	h.drain, h.served = drain, signature
	h.made++
	h.running++
	go func() { h.ended <- w.Run(serving) }()
	if before != nil {
		before()
	}
	return l.failed, nil
}

// log tells of a list that cannot be served: what was served before still is.
func (h *host) log(err error) {
	if err != nil {
		h.cfg.Logger.Error("the tools have changed, but the new ones cannot be served", "error", protocol.ProblemOf(err).Message)
	}
}

// close ends the sets, which nobody uses any more.
func (h *host) close() {
	for _, s := range h.sets {
		if c, ok := s.(io.Closer); ok {
			h.end(s, c)
		}
	}
}

func (h *host) end(s tool.Toolset, c io.Closer) {
	defer h.contain("it may hold on to what it opened")
	if err := c.Close(); err != nil {
		h.cfg.Logger.Warn("a toolset could not be closed", "toolset", tool.NameOf(s), "error", err)
	}
}

// contain is deferred around a set's code.
func (h *host) contain(what string) {
	if r := recover(); r != nil {
		h.cfg.Logger.Error("a toolset panicked: "+what, "panic", r, "stack", string(debug.Stack()))
	}
}
