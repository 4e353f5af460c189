package runner

import (
	"io"
	"sync"

	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/invoke"
)

// roll knows when all tools of an agent are in the registry, where a coordinator that starts then finds them.
type roll struct {
	mu       sync.Mutex
	unlisted int             // sets that were not listed yet
	missing  map[string]bool // tools that are not registered yet
	seen     map[string]bool // tools that are
	all      chan struct{}   // closed when there are none of both
}

func newRoll(s served) *roll {
	r := &roll{unlisted: len(s.sets), missing: map[string]bool{}, seen: map[string]bool{}, all: make(chan struct{})}
	r.expect(s.tools)
	r.look()
	return r
}

// expect notes the tools that a worker will register; r.mu is held, or r is new. One that no worker takes is left out.
func (r *roll) expect(tools []tool.Tool) {
	for _, t := range tools {
		if t == nil {
			continue
		}
		if made, err := invoke.New(tool.Aliased(t)); err == nil && !r.seen[made.Declaration().Name] {
			r.missing[made.Declaration().Name] = true
		}
	}
}

func (r *roll) look() {
	if r.unlisted == 0 && len(r.missing) == 0 {
		select {
		case <-r.all:
		default:
			close(r.all)
		}
	}
}

// registered is told of each beat.
func (r *roll) registered(name string, err error) {
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[name] = true
	delete(r.missing, name)
	r.look()
}

// calls has a set tell what it lists first. What it cannot list then is not waited for.
func (r *roll) calls(set tool.Toolset) tool.Toolset {
	one := called{set, r, &sync.Once{}}
	if c, ok := set.(tool.Changing); ok {
		return changing{one, c}
	}
	return one
}

// called is a set whose first list is noted.
type called struct {
	tool.Toolset
	roll *roll
	once *sync.Once
}

func (c called) Tools(ctx agent.ReadonlyContext) ([]tool.Tool, error) {
	listed, err := tool.List(ctx, c.Toolset) // one that panics or never answers is noted too
	tools := make([]tool.Tool, len(listed))
	for i, l := range listed {
		tools[i] = l.Tool
	}
	c.once.Do(func() {
		c.roll.mu.Lock()
		defer c.roll.mu.Unlock()
		c.roll.unlisted--
		c.roll.expect(tools)
		c.roll.look()
	})
	return tools, err
}

// Close closes the set, if it can be closed.
func (c called) Close() error {
	if closer, ok := c.Toolset.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// changing is called for a set that changes.
type changing struct {
	called
	set tool.Changing
}

func (c changing) Changed() <-chan struct{} { return c.set.Changed() }
