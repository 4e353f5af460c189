package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/toolfabric/toolfabric/coordinator/internal/turn"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/exitlooptool"
)

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

// list asks toolsets for their tools, all at once. One that fails is missing in what it returns: the turn goes on without it.
func (c *Coordinator) list(ctx context.Context, m *turn.Moment, sets map[int]tool.Toolset) map[int][]tool.Listed {
	ctx, cancel := context.WithTimeoutCause(ctx, tool.ListTime, errors.New("it did not answer within "+tool.ListTime.String()))
	defer cancel()
	view := m.Readonly(ctx)
	var mu sync.Mutex
	lists := map[int][]tool.Listed{}
	var asking sync.WaitGroup
	for i, set := range sets {
		asking.Go(func() {
			tools, err := tool.List(view, set)
			if err != nil {
				c.cfg.Logger.Warn("a toolset is left out of a turn", "agent", m.Agent, "toolset", tool.NameOf(set), "place", i, "session", m.Run.Session, "error", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			lists[i] = tools
		})
	}
	asking.Wait()
	return lists
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
		owner := "toolset " + tool.NameOf(set)
		for _, l := range list {
			if l.Tool == nil {
				s.warnOnce("nil of "+owner, "a toolset lists a nil, which is left out", "toolset", tool.NameOf(set), "agent", a.Name())
				continue
			}
			if err := owners.Take(l.Tool, owner); err != nil {
				s.warnOnce(err.Error(), "a tool is left out", "agent", a.Name(), "error", err)
				continue
			}
			known[l.Name] = l.Tool
			take(l.Name, l.Tool)
			if exitlooptool.Is(l.Tool) {
				if offer, err := turn.ExitOffer(l.Tool); err == nil { // it is always the same
					own = append(own, offer)
				}
			}
		}
	}
	for i, set := range cfg.Toolsets {
		p, ok := set.(tool.RequestProcessor)
		if _, listed := s.drive.sets[setPlace{a.Name(), i}]; ok && listed {
			shapers = append(shapers, turn.Shaper{Name: "toolset " + tool.NameOf(set), RequestProcessor: p})
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
