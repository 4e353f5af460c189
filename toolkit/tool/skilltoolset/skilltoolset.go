package skilltoolset

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/toolfabric/toolfabric/toolkit/agent"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
)

// DefaultName is the name of a toolset whose Config has none.
const DefaultName = "SkillToolset"

// The names of the tools, behind Config.Prefix.
const (
	ListSkills        = "list_skills"
	LoadSkill         = "load_skill"
	LoadSkillResource = "load_skill_resource"
	RunSkillScript    = "run_skill_script"
)

// Config describes a set of skills. Source is needed.
type Config struct {
	Source skill.Source
	// Name of the toolset; empty is DefaultName.
	Name string
	// SystemInstruction tells the model how to use skills; the list of them follows it. Empty is a text that names the tools
	// of the set that the request declares.
	SystemInstruction string

	// Prefix of the tools' names. Whoever serves a tool's name is its pool, so that sets with different skills on one bus need
	// names of their own.
	Prefix string
	// Scripts says how scripts are run. The zero value runs none, and there is no run_skill_script.
	Scripts Scripts
}

// SkillToolset is a tool.Toolset and a tool.RequestProcessor. It may be used concurrently.
type SkillToolset struct {
	cfg   Config
	tools []tool.Tool

	mu   sync.Mutex
	told map[string]bool // faults that were logged; see report
}

// New makes the set. It asks the source nothing. It returns an error for a Config without a source, with a Prefix that makes
// names that are not legal, or with Scripts that cannot run.
func New(_ context.Context, cfg Config) (*SkillToolset, error) {
	if cfg.Source == nil {
		return nil, errors.New("skill toolset: a source is needed")
	}
	if cfg.Name == "" {
		cfg.Name = DefaultName
	}
	s := &SkillToolset{cfg: cfg, told: map[string]bool{}}
	makers := []func() (tool.Tool, error){s.listSkills, s.loadSkill, s.loadResource}
	if len(cfg.Scripts.Interpreters) > 0 {
		makers = append(makers, s.runScript)
	}
	for _, mk := range makers {
		t, err := mk()
		if err != nil {
			return nil, fmt.Errorf("skill toolset %s: %w", cfg.Name, err)
		}
		s.tools = append(s.tools, t)
	}
	return s, nil
}

// Name implements tool.Toolset.
func (s *SkillToolset) Name() string { return s.cfg.Name }

// Tools implements tool.Toolset. The tools are always the same ones.
func (s *SkillToolset) Tools(agent.ReadonlyContext) ([]tool.Tool, error) {
	return append([]tool.Tool(nil), s.tools...), nil
}

// Skills is what the source lists now, a *skill.BrokenError included; see skill.Source.
func (s *SkillToolset) Skills(ctx context.Context) ([]*skill.Frontmatter, error) {
	return s.cfg.Source.ListFrontmatters(ctx)
}

// list is the skills that are whole. What is wrong with the others is logged.
func (s *SkillToolset) list(ctx tool.Context) ([]*skill.Frontmatter, error) {
	list, err := s.Skills(ctx)
	faults, err := skill.Broken(err)
	s.report(ctx, faults)
	return list, err
}

// report logs each fault once: a list is made on every turn.
func (s *SkillToolset) report(ctx tool.Context, faults []*skill.Fault) {
	log := ctx.Logger()
	if len(faults) == 0 || log == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		text := f.Error()
		if s.told[text] {
			continue
		}
		if len(s.told) >= skill.MaxSkills {
			clear(s.told)
		}
		s.told[text] = true
		log.Warn("a skill is broken and left out", "toolset", s.cfg.Name, "skill", f.Skill, "fault", text)
	}
}
