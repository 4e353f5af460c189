package skills

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
)

// Store is the skills of a namespace. All methods may be called concurrently. Errors are *protocol.Error, those of
// natswire.Bus among them.
type Store struct {
	bucket natswire.Bucket

	mu    sync.Mutex
	known map[key]*entry
	held  int    // bytes of the archives in known
	clock uint64 // counts uses
}

// key is a version of a skill.
type key struct{ name, digest string }

// entry is what came of one version. It does not change but for used and archive, which the store's mutex guards.
type entry struct {
	fm      *skill.Frontmatter
	fault   *skill.Fault // instead of fm
	archive *archive     // nil when its room was needed
	size    int
	used    uint64
}

// maxHeld is how many bytes of archives a store keeps.
const maxHeld = 64 << 20

// New is the store on a connection.
func New(c *natswire.Conn) *Store {
	return &Store{bucket: c.Skills(), known: map[key]*entry{}}
}

// Skill is a skill as it is stored.
type Skill struct {
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Size        int64     `json:"size"`   // bytes of its archive
	Digest      string    `json:"digest"` // SHA-256 of its archive, in hex
	PutAt       time.Time `json:"put_at"`
}

// File is a file of a skill.
type File struct {
	Path string `json:"path"` // relative to the skill's folder
	Size int64  `json:"size"`
}

// Detail is a skill with what is in it.
type Detail struct {
	Skill
	Frontmatter  *skill.Frontmatter `json:"frontmatter"`
	Files        []File             `json:"files"`
	Instructions string             `json:"instructions"`
}

// Put stores a skill in the place of one of its name, and reports whether that was another one. When others put it at the same
// time it returns code fenced, and theirs stays.
func (s *Store) Put(ctx context.Context, p *Package) (changed bool, err error) {
	if _, err := unpack(p.Name, p.Archive); err != nil {
		return false, refused(err, "skill "+p.Name)
	}
	return s.bucket.Put(ctx, p.Name, p.Description, p.Archive)
}

// List is what is stored, by name; what is in it is not looked at.
func (s *Store) List(ctx context.Context) ([]Skill, error) {
	objects, err := s.bucket.List(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Skill, 0, len(objects))
	for _, o := range objects {
		list = append(list, stored(o))
	}
	return list, nil
}

func stored(o natswire.Object) Skill {
	return Skill{Name: o.Name, Description: o.Description, Size: o.Size, Digest: o.Digest, PutAt: o.Put}
}

// Get reads a skill whole. It returns code not_found when there is none of that name, and bad_message for one that is broken.
func (s *Store) Get(ctx context.Context, name string) (*Detail, error) {
	data, o, err := s.bucket.Get(ctx, name)
	if err != nil {
		return nil, missing(err, name)
	}
	a, err := unpack(name, data)
	if err != nil {
		return nil, protocol.Wrap(err, protocol.CodeBadMessage, "skill %s is broken: %s", name, err)
	}
	d := &Detail{Skill: stored(o)}
	for _, f := range a.files {
		d.Files = append(d.Files, File{Path: strings.TrimPrefix(f.Name, name+"/"), Size: int64(f.UncompressedSize64)})
	}
	if d.Frontmatter, err = a.LoadFrontmatter(ctx, name); err == nil {
		d.Instructions, err = a.LoadInstructions(ctx, name)
	}
	return d, err
}

// Remove removes a skill; code not_found when there is none of that name.
func (s *Store) Remove(ctx context.Context, name string) error {
	return missing(s.bucket.Delete(ctx, name), name)
}

func missing(err error, name string) error {
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		return protocol.Errorf(protocol.CodeNotFound, "there is no skill %.80q on the bus; toolfabric skills ls lists them", name)
	}
	return err
}

// entry is what is stored under a record, from memory if it is there. Without whole the archive may be missing.
func (s *Store) entry(ctx context.Context, o natswire.Object, whole bool) (*entry, *archive, error) {
	s.mu.Lock()
	if e := s.known[key{o.Name, o.Digest}]; e != nil && (e.archive != nil || e.fault != nil || !whole) {
		s.clock++
		e.used = s.clock
		a := e.archive
		s.mu.Unlock()
		return e, a, nil
	}
	s.mu.Unlock()
	if o.Size > MaxArchive {
		return &entry{fault: broken(o.Name, fmt.Errorf("%w: the archive has %d bytes, more than %d", skill.ErrTooLarge, o.Size, MaxArchive))}, nil, nil
	}
	data, now, err := s.bucket.Get(ctx, o.Name)
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		if again, e := s.bucket.Info(ctx, o.Name); e == nil && again == o {
			return &entry{fault: broken(o.Name, fmt.Errorf("%w: what is stored of it is incomplete; put it again", skill.ErrInvalidFrontmatter))}, nil, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	e := &entry{}
	a, err := unpack(o.Name, data)
	if err == nil {
		e.fm, err = a.LoadFrontmatter(ctx, o.Name)
	}
	if err != nil {
		e.fault = broken(o.Name, err)
	} else {
		e.archive, e.size = a, len(data)
	}
	s.keep(key{o.Name, now.Digest}, e)
	return e, a, nil
}

// keep remembers an entry, and forgets the archives that were not used for the longest time.
func (s *Store) keep(version key, e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.known[version]; old != nil && old.archive != nil {
		s.held -= old.size
	}
	s.clock++
	e.used = s.clock
	s.known[version] = e
	s.held += e.size
	for s.held > maxHeld {
		var oldest *entry
		for _, k := range s.known {
			if k.archive != nil && k != e && (oldest == nil || k.used < oldest.used) {
				oldest = k
			}
		}
		if oldest == nil {
			return
		}
		oldest.archive = nil
		s.held -= oldest.size
	}
}

// forget drops what is stored no longer.
func (s *Store) forget(objects []natswire.Object) {
	stored := make(map[key]bool, len(objects))
	for _, o := range objects {
		stored[key{o.Name, o.Digest}] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for version, e := range s.known {
		if !stored[version] {
			delete(s.known, version)
			if e.archive != nil {
				s.held -= e.size
			}
		}
	}
}

func broken(name string, err error) *skill.Fault {
	if f, ok := err.(*skill.Fault); ok {
		return f
	}
	return &skill.Fault{Skill: name, File: name + "/" + skillFile, Err: err}
}
