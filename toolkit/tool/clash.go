package tool

import (
	"fmt"

	"github.com/toolfabric/toolfabric/toolkit/agent"
)

// ClashError says that two tools have one name, and whose they are.
type ClashError struct {
	Name          string
	First, Second string // owners, as a person looks for them: Tools[2], toolset "fs", worker.yaml:12
}

func (e *ClashError) Error() string {
	return fmt.Sprintf("two tools are named %s: one is of %s, one of %s; give one another name: tool.Prefix for all tools of a toolset, tool.Rename or tool.ToolWithName for one",
		e.Name, e.First, e.Second)
}

// Names is who has which name. The zero Names is ready to use, by one goroutine.
type Names struct{ owners map[string]string }

// Take gives t's name to owner. It returns a *ClashError when the name is taken, which stays as it is.
func (n *Names) Take(t Tool, owner string) error {
	name := t.Name()
	if original := Original(t); original != name {
		owner += " (there " + visible(original) + ")"
	}
	if first, taken := n.owners[name]; taken {
		return &ClashError{Name: name, First: first, Second: owner}
	}
	if n.owners == nil {
		n.owners = map[string]string{}
	}
	n.owners[name] = owner
	return nil
}

// Taken reports whether somebody has name.
func (n *Names) Taken(name string) bool {
	_, taken := n.owners[name]
	return taken
}

// Gather lists tools and then those of sets, in order, each under a legal name: see Aliased. What cannot be listed is left
// out and takes nothing else along: a set that List has no answer of, a nil, and a tool whose name an earlier one has. faults
// say what was left out and whose it was; a clash is a *ClashError.
func Gather(ctx agent.ReadonlyContext, tools []Tool, sets []Toolset) (all []Tool, faults []error) {
	var names Names
	add := func(t Tool, owner string) {
		if t == nil {
			faults = append(faults, fmt.Errorf("%s: the tool is nil", owner))
			return
		}
		t = Aliased(t)
		if err := names.Take(t, owner); err != nil {
			faults = append(faults, err)
			return
		}
		all = append(all, t)
	}
	for i, t := range tools {
		add(t, fmt.Sprintf("Tools[%d]", i))
	}
	for i, set := range sets {
		if set == nil {
			faults = append(faults, fmt.Errorf("Toolsets[%d]: the toolset is nil", i))
			continue
		}
		owner := "toolset " + visible(NameOf(set))
		listed, err := List(ctx, set)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", owner, err))
			continue
		}
		for _, l := range listed {
			add(l.Tool, owner)
		}
	}
	return all, faults
}
