package skilltoolset

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/toolfabric/toolfabric/toolkit/model"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
)

// ProcessRequest tells the model how to use skills, and which there are. It does nothing when there is none, and when the
// request declares tools, but none of this set. It returns an error when the source has no list at all; broken skills are
// logged and left out.
func (s *SkillToolset) ProcessRequest(ctx tool.Context, req *model.LLMRequest) error {
	list, err := s.list(ctx)
	if err != nil {
		return fmt.Errorf("skill toolset %s: %w", s.cfg.Name, err)
	}
	names := s.declared(req)
	if len(list) == 0 || len(names) == 0 {
		return nil
	}
	text := s.cfg.SystemInstruction
	if text == "" {
		text = s.instruction(names)
	}
	req.AppendInstructions(text, catalogue(list))
	return nil
}

// declared is the names under which the request declares the tools of the set, by their own names; all of them when it
// declares no tool. Behind tool.Prefix a tool has a longer name, which counts if no other one ends like it.
func (s *SkillToolset) declared(req *model.LLMRequest) map[string]string {
	var all []string
	if req.Config != nil {
		for _, t := range req.Config.Tools {
			if t != nil {
				for _, d := range t.FunctionDeclarations {
					all = append(all, d.Name)
				}
			}
		}
	}
	names := map[string]string{}
	for _, t := range s.tools {
		own := t.Name()
		if len(all) == 0 || slices.Contains(all, own) {
			names[own] = own
			continue
		}
		longer := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !strings.HasSuffix(name, "_"+own) })
		if len(longer) == 1 {
			names[own] = longer[0]
		}
	}
	return names
}

// instruction names no tool that the model does not have.
func (s *SkillToolset) instruction(names map[string]string) string {
	var b strings.Builder
	b.WriteString("You have skills: folders of instructions, and of files that belong to them, for tasks of a certain kind. " +
		"The skills that you have are listed below, each with what it is for. A skill's folder holds:\n" +
		"- SKILL.md: the instructions.\n" +
		"- references/: more to read, when the instructions say so.\n" +
		"- assets/: templates, images and other files to work with.\n" +
		"- scripts/: programs.\n")
	n := 0
	rule := func(of, format string) {
		if name := names[s.cfg.Prefix+of]; name != "" {
			n++
			fmt.Fprintf(&b, "\n%d. "+format, n, name)
		}
	}
	rule(LoadSkill, "When a skill may help with what the user wants, call `%s` with its name first, and do what its instructions say, step by step, before you answer.")
	rule(LoadSkillResource, "Read a file that the instructions name with `%s`, by its path in the skill's folder, such as references/guide.md. No other tool reads these files.")
	rule(RunSkillScript, "Run a script that the instructions name with `%s`.")
	rule(ListSkills, "Call `%s` to see the list of skills again.")
	return b.String()
}

// catalogue is the list as a model reads it.
func catalogue(list []*skill.Frontmatter) string {
	var b strings.Builder
	b.WriteString("<available_skills>\n")
	for _, fm := range list {
		fmt.Fprintf(&b, "<skill>\n<name>\n%s\n</name>\n<description>\n%s\n</description>\n</skill>\n", html.EscapeString(fm.Name), html.EscapeString(fm.Description))
	}
	b.WriteString("</available_skills>")
	return b.String()
}
