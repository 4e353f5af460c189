package runner

import (
	"reflect"
	"slices"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/plugin"
	"github.com/toolfabric/toolfabric/toolkit/tool"
)

// served is what the worker of an agent serves, and what its coordinator asks beside.
type served struct {
	tools   []tool.Tool
	sets    []tool.Toolset
	plugins []*plugin.Plugin
}

// owned is a tool and the agent that brought it first.
type owned struct {
	tool  tool.Tool
	agent string
}

func (s *served) add(a *llmagent.LLMAgent, owners map[string]owned) error {
	cfg := a.Config()
	for _, t := range cfg.Tools {
		if _, runs := tool.AsRunnable(t); !runs {
			continue // it shapes requests, or other workers serve it
		}
		first, taken := owners[t.Name()]
		switch {
		case !taken:
			owners[t.Name()] = owned{t, a.Name()}
			s.tools = append(s.tools, t)
		case !same(first.tool, t):
			return protocol.Errorf(protocol.CodeUsage, "agents %s and %s have different tools named %s: a name is how calls find their tool, so rename one", first.agent, a.Name(), t.Name())
		}
	}
	for _, set := range cfg.Toolsets {
		if !slices.ContainsFunc(s.sets, func(one tool.Toolset) bool { return same(one, set) }) {
			s.sets = append(s.sets, set)
		}
	}
	return nil
}

// same compares what may be of any type, also of one that == panics on.
func same(a, b any) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}
