package client

import (
	"context"
	"maps"
	"slices"

	"github.com/toolfabric/toolfabric/protocol"
)

// Pool is who serves a tool now, and what waits for them.
type Pool struct {
	Tool     string                  `json:"tool"`
	Slots    int                     `json:"slots"`     // of all workers that are not draining
	Active   int                     `json:"active"`    // calls the workers say they run
	Pending  uint64                  `json:"pending"`   // calls no worker has taken
	InFlight int                     `json:"in_flight"` // calls taken and not settled
	Workers  []protocol.Registration `json:"workers"`   // by id
}

// Serving is the number of workers that take calls; those that are draining do not.
func (p *Pool) Serving() int {
	n := 0
	for _, w := range p.Workers {
		if !w.Draining {
			n++
		}
	}
	return n
}

// Versions is the number of versions of the tool that the workers serve which take calls; more than one is an upgrade under
// way, or a mistake.
func (p *Pool) Versions() int {
	digests := map[string]bool{}
	for _, w := range p.Workers {
		if !w.Draining {
			digests[w.Declaration.Digest()] = true
		}
	}
	return len(digests)
}

// Pools lists a pool for each tool that is accepted or served, by name.
func (c *Client) Pools(ctx context.Context) ([]Pool, error) {
	return c.pools(ctx, "*")
}

// Pool returns the pool of one tool. It returns code unknown_tool for a tool that is neither accepted nor served.
func (c *Client) Pool(ctx context.Context, tool string) (Pool, error) {
	if err := protocol.CheckName(tool); err != nil {
		return Pool{}, err
	}
	list, err := c.pools(ctx, tool)
	if err != nil {
		return Pool{}, err
	}
	if len(list) == 0 {
		return Pool{}, unknownTool(tool)
	}
	return list[0], nil
}

func (c *Client) pools(ctx context.Context, name string) ([]Pool, error) {
	tools, err := c.tools(ctx, name)
	if err != nil {
		return nil, err
	}
	pools := map[string]*Pool{}
	for _, t := range tools {
		pools[t.Name] = &Pool{Tool: t.Name, Workers: []protocol.Registration{}}
	}
	beats, err := c.cfg.Bus.Latest(ctx, c.cfg.Names.Registry(), c.cfg.Names.RegistrationSubject(name, "*"))
	if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
		return nil, err
	}
	for _, s := range beats {
		tool, worker, ok := c.cfg.Names.ParseRegistration(s.Subject)
		beat, err := protocol.DecodeRegistration(s.Data)
		if !ok || err != nil || beat.Worker != worker || beat.Declaration.Name != tool {
			continue // a beat that lies about itself counts for nothing
		}
		p := pools[tool]
		if p == nil {
			p = &Pool{Tool: tool}
			pools[tool] = p
		}
		p.add(beat)
	}
	list := make([]Pool, 0, len(pools))
	for _, tool := range slices.Sorted(maps.Keys(pools)) {
		p := pools[tool]
		state, err := c.cfg.Bus.ConsumerState(ctx, c.cfg.Names.Calls(), tool)
		if err != nil && protocol.CodeOf(err) != protocol.CodeNotFound {
			return nil, err
		}
		p.Pending, p.InFlight = state.Pending, state.AckPending
		list = append(list, *p)
	}
	return list, nil
}

func (p *Pool) add(beat protocol.Registration) {
	p.Workers = append(p.Workers, beat)
	p.Active += beat.Active
	if !beat.Draining {
		p.Slots += beat.Slots
	}
}
