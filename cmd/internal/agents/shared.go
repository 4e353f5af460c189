package agents

import (
	"context"
	"io"
	"slices"
	"sync/atomic"

	"github.com/toolfabric/toolfabric/coordinator/skills"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
)

// Shared are the skills on the bus. Agents are read, and their faults told, before there is a connection to it.
type Shared struct{ store atomic.Pointer[skills.Store] }

// Attach makes the skills available over a connection.
func (s *Shared) Attach(c *natswire.Conn) { s.store.Store(skills.New(c)) }

func (s *Shared) source(names []string) skill.Source {
	if s == nil {
		return skill.NewMergedSource()
	}
	return &late{s, slices.Clone(names)}
}

// late is a source that is there once its store is.
type late struct {
	shared *Shared
	names  []string
}

func (l *late) now() (skill.Source, error) {
	store := l.shared.store.Load()
	if store == nil {
		return nil, protocol.Errorf(protocol.CodeUnreachable, "shared skills are on the bus, which is not connected yet")
	}
	return store.Source(l.names...), nil
}

func (l *late) ListFrontmatters(ctx context.Context) ([]*skill.Frontmatter, error) {
	s, err := l.now()
	if err != nil {
		return nil, err
	}
	return s.ListFrontmatters(ctx)
}

func (l *late) ListResources(ctx context.Context, name, subpath string) ([]string, error) {
	s, err := l.now()
	if err != nil {
		return nil, err
	}
	return s.ListResources(ctx, name, subpath)
}

func (l *late) LoadFrontmatter(ctx context.Context, name string) (*skill.Frontmatter, error) {
	s, err := l.now()
	if err != nil {
		return nil, err
	}
	return s.LoadFrontmatter(ctx, name)
}

func (l *late) LoadInstructions(ctx context.Context, name string) (string, error) {
	s, err := l.now()
	if err != nil {
		return "", err
	}
	return s.LoadInstructions(ctx, name)
}

func (l *late) LoadResource(ctx context.Context, name, resourcePath string) (io.ReadCloser, error) {
	s, err := l.now()
	if err != nil {
		return nil, err
	}
	return s.LoadResource(ctx, name, resourcePath)
}
