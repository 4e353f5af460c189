package skills

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
)

// Source is the named skills of the store as agents see them, or all when none is named. A name under which nothing is
// stored is reported as a fault. Every call asks the broker what is there now; archives that did not change are in memory.
func (s *Store) Source(names ...string) skill.Source {
	return &source{store: s, names: slices.Clone(names)}
}

type source struct {
	store *Store
	names []string
}

func (s *source) has(name string) bool { return len(s.names) == 0 || slices.Contains(s.names, name) }

func (s *source) ListFrontmatters(ctx context.Context) ([]*skill.Frontmatter, error) {
	objects, err := s.store.bucket.List(ctx)
	if err != nil {
		return nil, err
	}
	s.store.forget(objects)
	var list []*skill.Frontmatter
	var faults []*skill.Fault
	absent := slices.Clone(s.names)
	for _, o := range objects {
		if !s.has(o.Name) {
			continue
		}
		absent = slices.DeleteFunc(absent, func(name string) bool { return name == o.Name })
		e, _, err := s.store.entry(ctx, o, false)
		switch {
		case protocol.CodeOf(err) == protocol.CodeNotFound: // removed a moment ago
		case err != nil:
			return nil, err
		case e.fault != nil:
			faults = append(faults, e.fault)
		case len(list) == skill.MaxSkills:
			return nil, fmt.Errorf("%w: there are more than %d skills", skill.ErrTooLarge, skill.MaxSkills)
		default:
			fm := *e.fm
			fm.Metadata, fm.AllowedTools = maps.Clone(fm.Metadata), slices.Clone(fm.AllowedTools)
			list = append(list, &fm)
		}
	}
	for _, name := range absent {
		faults = append(faults, broken(name, fmt.Errorf("%w: it is not on the bus; toolfabric skills put DIR puts it there", skill.ErrSkillNotFound)))
	}
	slices.SortFunc(faults, func(x, y *skill.Fault) int { return cmp.Compare(x.Skill, y.Skill) })
	if len(faults) > 0 {
		return list, &skill.BrokenError{Faults: faults}
	}
	return list, nil
}

// open is one skill as it is stored now.
func (s *source) open(ctx context.Context, name string) (*archive, error) {
	unknown := fmt.Errorf("%w: %.80q", skill.ErrSkillNotFound, name)
	if !s.has(name) || skill.Validate(&skill.Frontmatter{Name: name, Description: "-"}) != nil {
		return nil, unknown
	}
	var o natswire.Object
	o, err := s.store.bucket.Info(ctx, name)
	if err == nil {
		var e *entry
		var a *archive
		if e, a, err = s.store.entry(ctx, o, true); err == nil && e.fault != nil {
			return nil, e.fault
		} else if err == nil {
			return a, nil
		}
	}
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return nil, unknown
	}
	return nil, err
}

func (s *source) LoadFrontmatter(ctx context.Context, name string) (*skill.Frontmatter, error) {
	a, err := s.open(ctx, name)
	if err != nil {
		return nil, err
	}
	return a.LoadFrontmatter(ctx, name)
}

func (s *source) LoadInstructions(ctx context.Context, name string) (string, error) {
	a, err := s.open(ctx, name)
	if err != nil {
		return "", err
	}
	return a.LoadInstructions(ctx, name)
}

func (s *source) ListResources(ctx context.Context, name, subpath string) ([]string, error) {
	a, err := s.open(ctx, name)
	if err != nil {
		return nil, err
	}
	return a.ListResources(ctx, name, subpath)
}

func (s *source) LoadResource(ctx context.Context, name, resourcePath string) (io.ReadCloser, error) {
	a, err := s.open(ctx, name)
	if err != nil {
		return nil, err
	}
	return a.LoadResource(ctx, name, resourcePath)
}
