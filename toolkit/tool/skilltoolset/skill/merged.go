package skill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// NewMergedSource is the skills of several sources. A name that several have belongs to the first; the list reports the
// others as faults with ErrDuplicateSkill. A skill that is broken in the first source is not looked for in the others.
func NewMergedSource(sources ...Source) Source {
	return merged(slices.Clone(sources))
}

type merged []Source

func (m merged) ListFrontmatters(ctx context.Context) ([]*Frontmatter, error) {
	var all []*Frontmatter
	var faults []*Fault
	taken := map[string]bool{}
	for _, s := range m {
		list, err := s.ListFrontmatters(ctx)
		found, err := Broken(err)
		if err != nil {
			return nil, err
		}
		for _, fm := range list {
			if taken[fm.Name] {
				faults = append(faults, &Fault{Skill: fm.Name, File: fm.Name + "/" + skillFile, Err: fmt.Errorf("%w: another source has a skill %q and comes first", ErrDuplicateSkill, fm.Name)})
				continue
			}
			taken[fm.Name] = true
			all = append(all, fm)
		}
		for _, f := range found {
			taken[f.Skill] = true
		}
		faults = append(faults, found...)
	}
	slices.SortStableFunc(all, byName)
	slices.SortStableFunc(faults, func(x, y *Fault) int { return cmp.Compare(x.Skill, y.Skill) })
	return all, broken(faults)
}

func byName(x, y *Frontmatter) int { return cmp.Compare(x.Name, y.Name) }

// first asks the sources in order until one knows the skill.
func first[T any](m merged, name string, ask func(Source) (T, error)) (T, error) {
	for _, s := range m {
		if v, err := ask(s); !errors.Is(err, ErrSkillNotFound) {
			return v, err
		}
	}
	var none T
	return none, fmt.Errorf("%w: %.80q", ErrSkillNotFound, name)
}

func (m merged) ListResources(ctx context.Context, name, subpath string) ([]string, error) {
	return first(m, name, func(s Source) ([]string, error) { return s.ListResources(ctx, name, subpath) })
}

func (m merged) LoadFrontmatter(ctx context.Context, name string) (*Frontmatter, error) {
	return first(m, name, func(s Source) (*Frontmatter, error) { return s.LoadFrontmatter(ctx, name) })
}

func (m merged) LoadInstructions(ctx context.Context, name string) (string, error) {
	return first(m, name, func(s Source) (string, error) { return s.LoadInstructions(ctx, name) })
}

func (m merged) LoadResource(ctx context.Context, name, resourcePath string) (io.ReadCloser, error) {
	return first(m, name, func(s Source) (io.ReadCloser, error) { return s.LoadResource(ctx, name, resourcePath) })
}
