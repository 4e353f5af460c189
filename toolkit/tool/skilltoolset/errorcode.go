package skilltoolset

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
)

// What a model reads as error_code. Those up to ExecutionError are adk-python's words.
const (
	MissingSkillName      = "MISSING_SKILL_NAME"
	SkillNotFound         = "SKILL_NOT_FOUND" // a name that is not legal is of no skill either
	MissingResourcePath   = "MISSING_RESOURCE_PATH"
	InvalidResourcePath   = "INVALID_RESOURCE_PATH"
	ResourceNotFound      = "RESOURCE_NOT_FOUND"
	MissingScriptName     = "MISSING_SCRIPT_NAME"
	ScriptNotFound        = "SCRIPT_NOT_FOUND"
	UnsupportedScriptType = "UNSUPPORTED_SCRIPT_TYPE"
	ExecutionError        = "EXECUTION_ERROR" // the script could not be run, or wrote too much
	InvalidArguments      = "INVALID_ARGUMENTS"
	InvalidSkill          = "INVALID_SKILL"      // it is broken
	ResourceTooLarge      = "RESOURCE_TOO_LARGE" // there, but not to be shown
	SkillsUnavailable     = "SKILLS_UNAVAILABLE" // the source cannot be read now
)

func fail(code, format string, args ...any) error {
	return tool.WithErrorCode(code, fmt.Errorf(format, args...))
}

const shownNames = 5 // how many names an error lists

// explain makes the error of a source one that a model can do something with. path is empty when only the skill was asked
// for.
func (s *SkillToolset) explain(ctx tool.Context, err error, name, path string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if f, ok := errors.AsType[*skill.Fault](err); ok {
		at := skillFile
		if f.Line > 0 {
			at = fmt.Sprintf("%s:%d", skillFile, f.Line)
		}
		return fail(InvalidSkill, "skill %q is broken and cannot be used until its author mends it: %s: %w", name, at, f.Err)
	}
	switch {
	case errors.Is(err, skill.ErrSkillNotFound), errors.Is(err, skill.ErrInvalidSkillName):
		return fail(SkillNotFound, "there is no skill %.80q%s", name, s.others(ctx, name))
	case errors.Is(err, skill.ErrInvalidResourcePath):
		return tool.WithErrorCode(InvalidResourcePath, err)
	case errors.Is(err, skill.ErrResourceNotFound):
		return fail(ResourceNotFound, "skill %s has no file %.200q%s", name, path, s.siblings(ctx, name, path))
	case errors.Is(err, skill.ErrTooLarge):
		return tool.WithErrorCode(ResourceTooLarge, err)
	}
	text := err.Error()
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		text = e.Public
	}
	return tool.Retryable(fail(SkillsUnavailable, "the skills cannot be read now: %s", text))
}

const skillFile = "SKILL.md"

// others lists the skills that name may be a slip of.
func (s *SkillToolset) others(ctx tool.Context, name string) string {
	list, err := s.list(ctx)
	if err != nil || len(list) == 0 {
		return ""
	}
	known := make([]string, 0, len(list))
	for _, fm := range list {
		known = append(known, fm.Name)
	}
	return "; skills: " + nearest(name, known)
}

func (s *SkillToolset) siblings(ctx tool.Context, name, path string) string {
	known, err := s.cfg.Source.ListResources(ctx, name, ".")
	if err != nil || len(known) == 0 {
		return ""
	}
	return "; its files: " + nearest(path, known)
}

func nearest(name string, known []string) string {
	near := protocol.Closest(name, known)
	if more := len(near) - shownNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(near[:shownNames], ", "), more)
	}
	return strings.Join(near, ", ")
}
