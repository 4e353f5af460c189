package coordinator

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/toolfabric/toolfabric/coordinator/internal/turn"
	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/exitlooptool"
)

// listTime is how long one toolset may take to list its tools. One that takes longer is left out of the turn.
const listTime = 10 * time.Second

// listing is one tool of a toolset, nil for what is none, under its legal name. That is asked for where a panic of the
// toolset's code does no harm.
type listing struct {
	name string
	tool tool.Tool
}

// setPlace is a toolset's place in its agent's Config.Toolsets.
type setPlace struct {
	agent string
	place int
}

// unlistedSets is the toolsets of a that were not listed in this adoption, by their places.
func (s *session) unlistedSets(a *llmagent.LLMAgent) map[int]tool.Toolset {
	var missing map[int]tool.Toolset
	for i, set := range a.Config().Toolsets {
		if _, ok := s.drive.sets[setPlace{a.Name(), i}]; !ok {
			if missing == nil {
				missing = map[int]tool.Toolset{}
			}
			missing[i] = set
		}
	}
	return missing
}

// list asks toolsets for their tools, all at once. One that fails, panics or does not answer in time is missing in what it
// returns: the turn goes on without it.
func (c *Coordinator) list(ctx context.Context, m *turn.Moment, sets map[int]tool.Toolset) map[int][]listing {
	type listed struct {
		place int
		tools []listing
		err   error
	}
	ctx, cancel := context.WithTimeoutCause(ctx, listTime, errors.New("it did not answer within "+listTime.String()))
	defer cancel()
	answers := make(chan listed, len(sets))
	view := m.Readonly(ctx)
	for i, set := range sets {
		go func() { // left behind when it does not end with ctx
			tools, err := listSet(view, set)
			answers <- listed{i, tools, err}
		}()
	}
	lists := map[int][]listing{}
	failed := func(place int, err error) {
		c.cfg.Logger.Warn("a toolset is left out of a turn", "agent", m.Agent, "toolset", nameOf(sets[place]), "place", place, "session", m.Run.Session, "error", err)
	}
	waiting := map[int]bool{}
	for i := range sets {
		waiting[i] = true
	}
	for len(waiting) > 0 {
		select {
		case l := <-answers:
			delete(waiting, l.place)
			if l.err != nil {
				failed(l.place, l.err)
			} else {
				lists[l.place] = l.tools
			}
		case <-ctx.Done():
			for i := range waiting {
				failed(i, context.Cause(ctx))
			}
			return lists
		}
	}
	return lists
}

func listSet(view agent.ReadonlyContext, set tool.Toolset) (tools []listing, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v\n%s", r, debug.Stack())
		}
	}()
	all, err := set.Tools(view)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		if t == nil {
			tools = append(tools, listing{})
			continue
		}
		t = tool.Aliased(t)
		tools = append(tools, listing{t.Name(), t})
	}
	return tools, nil
}

// nameOf is a toolset's name, whatever its code does.
func nameOf(set tool.Toolset) (name string) {
	defer func() {
		if recover() != nil {
			name = "that panics"
		}
	}()
	return set.Name()
}

// tools is the names that a model may be offered, in the order of the agent's tools and then its toolsets', and what shapes
// its requests: tools, then toolsets. Of two tools of one name the first is taken, and the log names both owners. own is what
// toolsets list and nobody needs to run.
func (s *session) tools(a *llmagent.LLMAgent, h *turn.Hooks) (names []string, own []turn.Offer, shapers []turn.Shaper) {
	cfg := a.Config()
	names = make([]string, 0, len(cfg.Tools))
	take := func(name string, t tool.Tool) {
		if turn.Offered(t) {
			names = append(names, name)
		}
		if p, ok := tool.As[tool.RequestProcessor](t); ok {
			shapers = append(shapers, turn.Shaper{Name: "tool " + name, RequestProcessor: p})
		}
	}
	for _, t := range cfg.Tools {
		take(t.Name(), t)
	}
	if len(cfg.Toolsets) == 0 && h == nil {
		return names, nil, shapers
	}
	var owners tool.Names
	known := map[string]tool.Tool{}
	for i, t := range cfg.Tools {
		_ = owners.Take(t, fmt.Sprintf("Tools[%d] of agent %s", i, a.Name())) // llmagent.New refuses twins
		known[t.Name()] = t
	}
	for i, set := range cfg.Toolsets {
		list, ok := s.drive.sets[setPlace{a.Name(), i}]
		if !ok {
			continue
		}
		owner := "toolset " + nameOf(set)
		for _, l := range list {
			if l.tool == nil {
				s.warnOnce("nil of "+owner, "a toolset lists a nil, which is left out", "toolset", nameOf(set), "agent", a.Name())
				continue
			}
			if err := owners.Take(l.tool, owner); err != nil {
				s.warnOnce(err.Error(), "a tool is left out", "agent", a.Name(), "error", err)
				continue
			}
			known[l.name] = l.tool
			take(l.name, l.tool)
			if exitlooptool.Is(l.tool) {
				if offer, err := turn.ExitOffer(l.tool); err == nil { // it is always the same
					own = append(own, offer)
				}
			}
		}
	}
	for i, set := range cfg.Toolsets {
		if p, ok := set.(tool.RequestProcessor); ok && s.drive.sets[setPlace{a.Name(), i}] != nil {
			shapers = append(shapers, turn.Shaper{Name: "toolset " + nameOf(set), RequestProcessor: p})
		}
	}
	if s.drive.tools == nil {
		s.drive.tools = map[string]map[string]tool.Tool{}
	}
	s.drive.tools[a.Name()] = known
	return names, own, shapers
}

// warnOnce writes a warning once for an adoption.
func (s *session) warnOnce(what, message string, args ...any) {
	if s.drive.warned[what] {
		return
	}
	if s.drive.warned == nil {
		s.drive.warned = map[string]bool{}
	}
	s.drive.warned[what] = true
	s.c.cfg.Logger.Warn(message, append(args, "session", s.key.session)...)
}
