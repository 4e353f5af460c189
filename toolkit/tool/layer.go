package tool

import (
	"fmt"
	"io"

	"google.golang.org/genai"

	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/model"
)

// layer is a tool around another one. What it does not change is as it is below, or found below by As.
type layer struct{ Tool }

func (l layer) Unwrap() Tool { return l.Tool }

// runLayer is a layer around a tool that runs.
type runLayer struct {
	layer
	run Runnable
}

func (l runLayer) Declaration() *genai.FunctionDeclaration { return l.run.Declaration() }

func (l runLayer) Run(ctx Context, args any) (map[string]any, error) { return l.run.Run(ctx, args) }

// named is a tool that is no more than its name: a pool that something was to be changed about which only its workers can.
type named struct {
	Tool
	name string
}

func (n named) Name() string { return n.name }

// setLayer is a toolset around another one, each of whose tools it changes. It has every ability that a toolset may have:
// where the set below lacks one, it does nothing.
type setLayer struct {
	Toolset
	change func(agent.ReadonlyContext, Tool) Tool // nil leaves the tool out
}

func (s *setLayer) Tools(ctx agent.ReadonlyContext) ([]Tool, error) {
	all, err := s.Toolset.Tools(ctx)
	if err != nil {
		return nil, err
	}
	changed := make([]Tool, 0, len(all))
	for i, t := range all {
		if t == nil {
			return nil, fmt.Errorf("toolset %q: tool %d of its list is nil", s.Name(), i)
		}
		if t = s.change(ctx, t); t != nil {
			changed = append(changed, t)
		}
	}
	return changed, nil
}

// Close closes the set below.
func (s *setLayer) Close() error {
	if c, ok := s.Toolset.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Changed is the channel of the set below; nil, which never delivers, when its list does not change.
func (s *setLayer) Changed() <-chan struct{} {
	if c, ok := s.Toolset.(Changing); ok {
		return c.Changed()
	}
	return nil
}

// ProcessRequest has the set below shape the request, with the names that tools have there.
func (s *setLayer) ProcessRequest(ctx Context, req *model.LLMRequest) error {
	if p, ok := s.Toolset.(RequestProcessor); ok {
		return p.ProcessRequest(ctx, req)
	}
	return nil
}
