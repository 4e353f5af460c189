package agents

import (
	"context"
	"iter"

	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/agent/llmagent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
)

// toolsets yields the sets of agents and of all agents below them, each with its agent.
func toolsets(apps []agent.Agent) iter.Seq2[agent.Agent, tool.Toolset] {
	return func(yield func(agent.Agent, tool.Toolset) bool) {
		for _, a := range apps {
			if l, ok := a.(*llmagent.LLMAgent); ok {
				for _, set := range l.Config().Toolsets {
					if !yield(a, set) {
						return
					}
				}
			}
			for below, set := range toolsets(a.SubAgents()) {
				if !yield(below, set) {
					return
				}
			}
		}
	}
}

// Toolsets are those of agents: what a worker beside the coordinator serves, since nobody else has them.
func Toolsets(apps []agent.Agent) []tool.Toolset {
	var all []tool.Toolset
	for _, set := range toolsets(apps) {
		all = append(all, set)
	}
	return all
}

// BrokenSkills is what is wrong with the skills in the folders of agents.
func BrokenSkills(ctx context.Context, apps []agent.Agent) []*skill.Fault {
	var all []*skill.Fault
	for _, set := range toolsets(apps) {
		if s, ok := set.(*skilltoolset.SkillToolset); ok {
			_, err := s.Skills(ctx)
			faults, _ := skill.Broken(err) // what cannot be listed at all is told when it is used
			all = append(all, faults...)
		}
	}
	return all
}
