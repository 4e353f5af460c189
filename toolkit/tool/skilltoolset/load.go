package skilltoolset

import (
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/functiontool"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
)

func (s *SkillToolset) listSkills() (tool.Tool, error) {
	type result struct {
		Skills string `json:"skills" jsonschema:"The skills as XML: <skill> with <name> and <description>."`
	}
	return functiontool.New(functiontool.Config{
		Name: s.cfg.Prefix + ListSkills, Effect: tool.Read,
		Description: "Lists the skills there are, with their names and descriptions.",
	}, func(ctx tool.Context, _ struct{}) (result, error) {
		list, err := s.list(ctx)
		if err != nil {
			return result{}, s.explain(ctx, err, "", "")
		}
		return result{Skills: catalogue(list)}, nil
	})
}

func (s *SkillToolset) loadSkill() (tool.Tool, error) {
	type args struct {
		Name string `json:"name" jsonschema:"The name of the skill to load."`
	}
	type result struct {
		SkillName    string             `json:"skill_name"`
		Instructions string             `json:"instructions"`
		Frontmatter  *skill.Frontmatter `json:"frontmatter"`
	}
	return functiontool.New(functiontool.Config{
		Name: s.cfg.Prefix + LoadSkill, Effect: tool.Read,
		Description: "Loads the instructions of a skill, the text of its SKILL.md.",
	}, func(ctx tool.Context, in args) (*result, error) {
		if in.Name == "" {
			return nil, fail(MissingSkillName, "a skill's name is needed")
		}
		fm, err := s.cfg.Source.LoadFrontmatter(ctx, in.Name)
		if err != nil {
			return nil, s.explain(ctx, err, in.Name, "")
		}
		text, err := s.cfg.Source.LoadInstructions(ctx, in.Name)
		if err != nil {
			return nil, s.explain(ctx, err, in.Name, "")
		}
		return &result{SkillName: in.Name, Instructions: text, Frontmatter: fm}, nil
	})
}
