package skill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
)

// MaxPreload is how many bytes WithCompletePreloadSource keeps.
const MaxPreload = 256 << 20

// WithFrontmatterPreloadSource is source with the frontmatters in memory, sorted by name; a skill that is not among them is not
// found. reload reads them anew; when it fails the old ones stay. Broken skills are no failure: the list goes on to report
// them.
func WithFrontmatterPreloadSource(ctx context.Context, source Source) (_ Source, reload func(ctx context.Context) error, _ error) {
	p := &frontmatters{Source: source}
	if err := p.reload(ctx); err != nil {
		return nil, nil, err
	}
	return p, p.reload, nil
}

// listing is a list as it was read once.
type listing struct {
	all    map[string]*Frontmatter
	faults []*Fault
}

func read(ctx context.Context, source Source) (*listing, error) {
	list, err := source.ListFrontmatters(ctx)
	faults, err := Broken(err)
	if err != nil {
		return nil, err
	}
	l := &listing{all: make(map[string]*Frontmatter, len(list)), faults: faults}
	for _, fm := range list {
		l.all[fm.Name] = fm
	}
	return l, nil
}

func (l *listing) list() ([]*Frontmatter, error) {
	list := slices.SortedFunc(maps.Values(l.all), byName)
	for i, fm := range list {
		list[i] = fm.clone()
	}
	return list, broken(l.faults)
}

func (l *listing) get(name string) (*Frontmatter, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if fm := l.all[name]; fm != nil {
		return fm.clone(), nil
	}
	for _, f := range l.faults {
		if f.Skill == name {
			return nil, f
		}
	}
	return nil, fmt.Errorf("%w: %q", ErrSkillNotFound, name)
}

func (fm *Frontmatter) clone() *Frontmatter {
	c := *fm
	c.Metadata, c.AllowedTools = maps.Clone(fm.Metadata), slices.Clone(fm.AllowedTools)
	return &c
}

// frontmatters asks its source for everything but the list.
type frontmatters struct {
	Source
	now atomic.Pointer[listing]
}

func (p *frontmatters) reload(ctx context.Context) error {
	l, err := read(ctx, p.Source)
	if err == nil {
		p.now.Store(l)
	}
	return err
}

func (p *frontmatters) ListFrontmatters(context.Context) ([]*Frontmatter, error) {
	return p.now.Load().list()
}

func (p *frontmatters) LoadFrontmatter(_ context.Context, name string) (*Frontmatter, error) {
	return p.now.Load().get(name)
}

// WithCompletePreloadSource is source in memory: frontmatters, instructions and files, MaxPreload bytes at most. Once it is
// made, source is asked again by reload only, which keeps the old state when it fails. A skill whose instructions cannot be
// read is reported as broken; a file that cannot be read fails as before when it is asked for.
func WithCompletePreloadSource(ctx context.Context, source Source) (_ Source, reload func(ctx context.Context) error, _ error) {
	p := &complete{source: source}
	if err := p.reload(ctx); err != nil {
		return nil, nil, err
	}
	return p, p.reload, nil
}

type complete struct {
	source Source
	now    atomic.Pointer[content]
}

// content is everything at one time.
type content struct {
	*listing
	instructions map[string]string
	files        map[string]map[string]loaded // by skill and path
	left         int
}

type loaded struct {
	data []byte
	err  error
}

func (p *complete) reload(ctx context.Context) error {
	l, err := read(ctx, p.source)
	if err != nil {
		return err
	}
	c := &content{listing: l, instructions: map[string]string{}, files: map[string]map[string]loaded{}, left: MaxPreload}
	for _, name := range slices.Sorted(maps.Keys(l.all)) {
		if err := c.load(ctx, p.source, name); err != nil {
			if f, ok := errors.AsType[*Fault](err); ok {
				delete(l.all, name)
				l.faults = append(l.faults, f)
				continue
			}
			return err
		}
	}
	p.now.Store(c)
	return nil
}

func (c *content) load(ctx context.Context, source Source, name string) error {
	text, err := source.LoadInstructions(ctx, name)
	if err != nil {
		return err
	}
	paths, err := source.ListResources(ctx, name, ".")
	if err != nil {
		return err
	}
	c.left -= len(text)
	files := make(map[string]loaded, len(paths))
	for _, path := range paths {
		var f loaded
		f.data, f.err = readResource(ctx, source, name, path)
		if err := ctx.Err(); err != nil {
			return err
		}
		files[path] = f
		if c.left -= len(f.data); c.left < 0 {
			return fmt.Errorf("%w: the skills have more than %d bytes", ErrTooLarge, MaxPreload)
		}
	}
	c.instructions[name], c.files[name] = text, files
	return nil
}

func readResource(ctx context.Context, source Source, name, path string) ([]byte, error) {
	r, err := source.LoadResource(ctx, name, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(limit(r, path))
}

func (p *complete) ListFrontmatters(context.Context) ([]*Frontmatter, error) {
	return p.now.Load().list()
}

func (p *complete) LoadFrontmatter(_ context.Context, name string) (*Frontmatter, error) {
	return p.now.Load().get(name)
}

func (p *complete) LoadInstructions(_ context.Context, name string) (string, error) {
	c := p.now.Load()
	if _, err := c.get(name); err != nil {
		return "", err
	}
	return c.instructions[name], nil
}

func (p *complete) ListResources(_ context.Context, name, subpath string) ([]string, error) {
	c := p.now.Load()
	if _, err := c.get(name); err != nil {
		return nil, err
	}
	all := slices.Sorted(maps.Keys(c.files[name]))
	if subpath == "" || subpath == "." {
		return all, nil
	}
	top, err := cleanPath(subpath)
	if err != nil {
		return nil, err
	}
	below := slices.DeleteFunc(all, func(p string) bool { return p != top && !strings.HasPrefix(p, top+"/") })
	if len(below) == 0 {
		return nil, fmt.Errorf("%w: %.200q in skill %s", ErrResourceNotFound, top, name)
	}
	return below, nil
}

func (p *complete) LoadResource(_ context.Context, name, resourcePath string) (io.ReadCloser, error) {
	clean, err := CleanPath(resourcePath)
	if err != nil {
		return nil, err
	}
	c := p.now.Load()
	if _, err := c.get(name); err != nil {
		return nil, err
	}
	f, ok := c.files[name][clean]
	if !ok {
		return nil, fmt.Errorf("%w: %.200q in skill %s", ErrResourceNotFound, clean, name)
	}
	if f.err != nil {
		return nil, f.err
	}
	return io.NopCloser(bytes.NewReader(f.data)), nil
}
