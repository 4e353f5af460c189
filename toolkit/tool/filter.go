package tool

import (
	"slices"

	"github.com/toolfabric/toolfabric/toolkit/agent"
)

// Predicate decides whether a run may use a tool. It is asked each time a toolset is listed.
type Predicate func(ctx agent.ReadonlyContext, tool Tool) bool

// AllowedToolsPredicate lets the named tools through.
func AllowedToolsPredicate(allowedTools []string) Predicate {
	allowed := slices.Clone(allowedTools)
	return func(_ agent.ReadonlyContext, tool Tool) bool { return slices.Contains(allowed, tool.Name()) }
}

// StringPredicate is the name that earlier versions of ADK used for AllowedToolsPredicate.
func StringPredicate(allowedTools []string) Predicate { return AllowedToolsPredicate(allowedTools) }

// FilterToolset is toolset without the tools that predicate refuses. It keeps the name, and panics when an argument is nil.
func FilterToolset(toolset Toolset, predicate Predicate) Toolset {
	if toolset == nil {
		panic("tool.FilterToolset: the toolset is nil")
	}
	if predicate == nil {
		panic("tool.FilterToolset: the predicate is nil")
	}
	return &setLayer{toolset, func(ctx agent.ReadonlyContext, t Tool) Tool {
		if predicate(ctx, t) {
			return t
		}
		return nil
	}}
}
