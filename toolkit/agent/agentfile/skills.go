package agentfile

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
)

// Option adds to what files may name.
type Option func(*tree)

// WithSharedSkills lets agents have skills that all coordinators share. source returns those of the names, or all when there
// is none; whether they are there shows when they are used.
func WithSharedSkills(source func(names []string) skill.Source) Option {
	return func(t *tree) { t.shared = source }
}

// skillsEntry is what a file says about skills.
type skillsEntry struct {
	Folder         string              `yaml:"folder"`
	Shared         []string            `yaml:"shared"`
	Scripts        map[string][]string `yaml:"scripts"`
	ConfirmScripts *bool               `yaml:"confirm_scripts"`
}

const skillsPath = "toolfabric.skills"

// skills makes the toolset of an agent's skills; nil when it has none, and after a fault.
func (r *reader) skills(agent string, e *skillsEntry) tool.Toolset {
	at, found := r.at[skillsPath]
	if !found || r.told(at) {
		return nil
	}
	before := len(r.faults)
	var sources []skill.Source
	if e.Folder != "" {
		folder := e.Folder
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(filepath.Dir(r.file), filepath.FromSlash(folder))
		}
		source, err := skill.NewDirectorySource(folder)
		if err != nil {
			r.fault(r.at[skillsPath+".folder"], "skills: %s", public(err))
		}
		sources = append(sources, source)
	}
	if len(e.Shared) > 0 {
		sources = append(sources, r.sharedSkills(e.Shared))
	}
	if len(sources) == 0 {
		r.fault(at, "skills: name a folder, or skills that are shared: folder: skills")
	}
	if len(r.faults) > before {
		return nil
	}
	set, err := skilltoolset.New(context.Background(), skilltoolset.Config{
		Source: skill.NewMergedSource(sources...), Name: "skills of " + agent, Prefix: agent + "_",
		Scripts: skilltoolset.Scripts{Interpreters: e.Scripts, Unconfirmed: e.ConfirmScripts != nil && !*e.ConfirmScripts},
	})
	switch {
	case protocol.CodeOf(err) == protocol.CodeBadName:
		r.fault(at, "skills: their tools have the agent's name in front: %s", public(err))
		return nil
	case err != nil:
		r.fault(r.at[skillsPath+".scripts"], "%s", public(err))
		return nil
	}
	return set
}

// allShared stands for every shared skill.
const allShared = "*"

func (r *reader) sharedSkills(names []string) skill.Source {
	at := r.at[skillsPath+".shared"]
	if r.tree.shared == nil {
		r.fault(at, "shared skills are on a bus, and there is none here: name a folder")
		return nil
	}
	if slices.Equal(names, []string{allShared}) {
		return r.tree.shared(nil)
	}
	for _, name := range names {
		if err := skill.Validate(&skill.Frontmatter{Name: name, Description: "-"}); err != nil {
			r.fault(at, "shared: %s", err)
		}
	}
	return r.tree.shared(names)
}
