package mcptoolset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// maxQuestions is how many questions to a person one call may lead to.
const maxQuestions = 8

// errIdle is the cause of a call's context that ended because its server said nothing.
var errIdle = errors.New("the MCP server said nothing about the call in time")

// flights are the calls that the server works on now. They share a session, and questions of servers before the protocol
// 2026-07-28 do not say which call they are about.
type flights struct {
	cfg *Config
	ask chan struct{} // holds a token while a person is asked: one question at a time

	mu    sync.Mutex
	n     int
	now   []*airborne
	open  int                  // questions being asked or waiting for their turn
	empty chan struct{}        // closed when now becomes empty; nil while nobody waits for that
	seen  map[string]*airborne // by progress token
}

func (f *flights) init(cfg *Config) {
	f.cfg, f.ask, f.seen = cfg, make(chan struct{}, 1), map[string]*airborne{}
}

// airborne is one of them. The set's lock guards what changes.
type airborne struct {
	ctx   tool.Context
	tool  string
	token string
	asked int
	idle  *time.Timer
	stop  context.CancelCauseFunc
}

// begin takes a call up. The context that it returns ends with ctx, and with errIdle when the server says nothing for
// Config.Idle while no person is asked.
func (f *flights) begin(ctx tool.Context, name string) (context.Context, *airborne) {
	limited, stop := context.WithCancelCause(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	a := &airborne{ctx: ctx, tool: name, token: "tf" + strconv.Itoa(f.n), stop: stop}
	a.idle = time.AfterFunc(f.cfg.Idle, func() { stop(errIdle) })
	if f.open > 0 {
		a.idle.Stop()
	}
	f.now = append(f.now, a)
	f.seen[a.token] = a
	return limited, a
}

func (f *flights) end(a *airborne) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a.idle.Stop()
	a.stop(nil)
	delete(f.seen, a.token)
	for i, other := range f.now {
		if other == a {
			f.now = append(f.now[:i], f.now[i+1:]...)
			break
		}
	}
	if len(f.now) == 0 && f.empty != nil {
		close(f.empty)
		f.empty = nil
	}
}

// progress is a word of the server about a call: watchers hear of it, and the call may go on being quiet for another while.
func (f *flights) progress(p *mcp.ProgressNotificationParams) {
	token, ok := p.ProgressToken.(string)
	if !ok {
		return
	}
	f.mu.Lock()
	a := f.seen[token]
	if a != nil && f.open == 0 {
		a.idle.Reset(f.cfg.Idle)
	}
	f.mu.Unlock()
	if a == nil {
		return
	}
	percent := 0.0
	if p.Total > 0 {
		percent = 100 * p.Progress / p.Total
	}
	text := p.Message
	if text == "" && p.Total <= 0 {
		text = strconv.FormatFloat(p.Progress, 'g', -1, 64)
	}
	a.ctx.Progress(percent, seen(text))
}

// Question is what a server asks a person in the middle of a call.
type Question struct {
	*mcp.ElicitParams
	// Tool, Call and Session are those of the call that it is about; empty when several run on the session, of which it may be
	// any.
	Tool, Call, Session string
	// Asked tells whoever watches these calls that people can answer now. call is the call that asks them; empty is none.
	Asked func(call string)
}

// announce tells whoever watches a call that it waits for a person.
func (f *flights) announce(q Question, asking string) {
	f.mu.Lock()
	waiting := slices.Clone(f.now)
	f.mu.Unlock()
	text := "the MCP server asks a person: " + clip(seen(q.Message), 200)
	for _, a := range waiting {
		if q.Call != "" && a.ctx.FunctionCallID() != q.Call {
			continue
		}
		if c, ok := a.ctx.(interface{ Asks(call, message string) }); ok {
			c.Asks(asking, text)
		} else {
			a.ctx.Progress(0, text)
		}
	}
}

// elicit is a question of a server before the protocol 2026-07-28. A person is asked one after the other, and not more often than
// maxQuestions for each call that runs; meanwhile no call counts as idle. What cannot be asked, or is not answered in time,
// is answered with cancel.
func (f *flights) elicit(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	q, gone, err := f.admit(req.Params)
	if err != nil {
		f.cfg.Logger.Warn("a question of an MCP server is not asked", "server", f.cfg.place(), "reason", err)
		return &mcp.ElicitResult{Action: "cancel"}, nil
	}
	defer f.settle()
	ctx, cancel := context.WithTimeout(ctx, f.cfg.ElicitLimit)
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-gone:
			cancel()
		case <-over:
		}
	}()
	select {
	case f.ask <- struct{}{}:
		defer func() { <-f.ask }()
	case <-ctx.Done():
		return &mcp.ElicitResult{Action: "cancel"}, nil
	}
	q.Asked = func(call string) { f.announce(q, call) }
	res, err := f.cfg.Elicit(ctx, q)
	switch {
	case ctx.Err() != nil:
		return &mcp.ElicitResult{Action: "cancel"}, nil
	case err != nil:
		f.cfg.Logger.Warn("a question of an MCP server could not be asked", "server", f.cfg.place(), "error", err)
		return &mcp.ElicitResult{Action: "cancel"}, nil
	}
	return res, nil
}

// admit counts a question. gone is closed when no call is left that it may be about.
func (f *flights) admit(p *mcp.ElicitParams) (Question, <-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := Question{ElicitParams: p}
	if f.cfg.Elicit == nil {
		return q, nil, errors.New("nothing is configured to ask a person with")
	}
	var of *airborne
	for _, a := range f.now {
		if of == nil && a.asked < maxQuestions {
			of = a
		}
	}
	if of == nil {
		return q, nil, fmt.Errorf("it belongs to no call, or each of the %d that run has led to %d questions", len(f.now), maxQuestions)
	}
	of.asked++
	if len(f.now) == 1 {
		q.Tool, q.Call, q.Session = of.tool, of.ctx.FunctionCallID(), of.ctx.SessionID()
	}
	f.open++
	for _, a := range f.now {
		a.idle.Stop()
	}
	if f.empty == nil {
		f.empty = make(chan struct{})
	}
	return q, f.empty, nil
}

func (f *flights) settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open--; f.open > 0 {
		return
	}
	for _, a := range f.now {
		a.idle.Reset(f.cfg.Idle)
	}
}
