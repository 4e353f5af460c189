package skill

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

const skillFile = "SKILL.md"

// NewFileSystemSource reads skills from the folders at the top of fsys. A folder with a SKILL.md is a skill, whose name must
// be the folder's; other folders, and those that begin with a dot, are none. What changes in fsys is seen at the next call.
//
// Symbolic links are followed when fsys tells of them (fs.ReadLinkFS, as os.DirFS does) and they stay inside; others are
// refused. Between the look and the opening a link can be changed: where others may write, use NewDirectorySource.
func NewFileSystemSource(fsys fs.FS) Source {
	return &fileSystem{open: func() (fs.FS, func() error, error) { return contained{fsys}, func() error { return nil }, nil }}
}

// fileSystem reads everything anew at each call.
type fileSystem struct {
	open func() (fsys fs.FS, done func() error, err error)
	in   string // where the file system is, for those who look for a fault
}

func (s *fileSystem) ListFrontmatters(ctx context.Context) ([]*Frontmatter, error) {
	fsys, done, err := s.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = done() }()
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("read the folder of skills: %w", err)
	}
	var list []*Frontmatter
	var faults []*Fault
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") || entry.Type().IsRegular() {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		fm, _, err := s.skill(fsys, name, false)
		switch {
		case errors.Is(err, ErrSkillNotFound):
		case err != nil:
			faults = append(faults, faultIn(err, name, s.file(name)))
		case len(list) == MaxSkills:
			return nil, fmt.Errorf("%w: there are more than %d skills", ErrTooLarge, MaxSkills)
		default:
			list = append(list, fm)
		}
	}
	return list, broken(faults)
}

// faultIn makes a fault of err, unless it is one.
func faultIn(err error, name, file string) *Fault {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	return faultOf(name, file, err)
}

func (s *fileSystem) LoadFrontmatter(_ context.Context, name string) (*Frontmatter, error) {
	fm, _, err := s.load(name, false)
	return fm, err
}

func (s *fileSystem) LoadInstructions(_ context.Context, name string) (string, error) {
	_, text, err := s.load(name, true)
	return text, err
}

func (s *fileSystem) load(name string, whole bool) (*Frontmatter, string, error) {
	if err := checkName(name); err != nil {
		return nil, "", err
	}
	fsys, done, err := s.open()
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = done() }()
	return s.skill(fsys, name, whole)
}

func (s *fileSystem) file(name string) string { return path.Join(s.in, name, skillFile) }

// skill reads the SKILL.md of a folder. Its errors are ErrSkillNotFound and Faults.
func (s *fileSystem) skill(fsys fs.FS, folder string, whole bool) (*Frontmatter, string, error) {
	f, _, err := openRegular(fsys, path.Join(folder, skillFile))
	if errors.Is(err, fs.ErrNotExist) {
		if other := misspelled(fsys, folder); other != "" {
			return nil, "", faultOf(folder, s.file(folder), fmt.Errorf("%w: it is written %s here", ErrInvalidFrontmatter, other))
		}
		return nil, "", fmt.Errorf("%w: %q", ErrSkillNotFound, folder)
	}
	if err != nil {
		return nil, "", faultOf(folder, s.file(folder), fmt.Errorf("%w: it cannot be read: %w", ErrInvalidFrontmatter, err))
	}
	defer f.Close()
	r := bufio.NewReader(f)
	fm, err := Parse(r)
	if err == nil && fm.Name != folder {
		err = fmt.Errorf("%w: it says that its name is %q, and is in the folder %q", ErrInvalidSkillName, fm.Name, folder)
	}
	text := ""
	if err == nil && whole {
		text, err = readInstructions(r)
	}
	if err != nil {
		return nil, "", faultOf(folder, s.file(folder), err)
	}
	return fm, strings.ReplaceAll(text, "\r\n", "\n"), nil
}

// misspelled is a file of a folder that was probably meant to be its SKILL.md.
func misspelled(fsys fs.FS, folder string) string {
	entries, err := fs.ReadDir(fsys, folder)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if strings.EqualFold(e.Name(), skillFile) {
			return e.Name()
		}
	}
	return ""
}

// openRegular opens what is a file and nothing else: a pipe would be waited for, a device has no end.
func openRegular(fsys fs.FS, name string) (fs.File, int64, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is no file: %w", name, fs.ErrInvalid)
	}
	f, err := fsys.Open(name)
	return f, info.Size(), err
}

func (s *fileSystem) LoadResource(_ context.Context, name, resourcePath string) (io.ReadCloser, error) {
	clean, err := CleanPath(resourcePath)
	if err != nil {
		return nil, err
	}
	fsys, done, err := s.within(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = done() }()
	f, size, err := openRegular(fsys, path.Join(name, clean))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %.200q in skill %s", ErrResourceNotFound, clean, name)
	case errors.Is(err, fs.ErrInvalid):
		return nil, fmt.Errorf("%w: %.200q in skill %s is no file", ErrInvalidResourcePath, clean, name)
	case err != nil:
		return nil, fmt.Errorf("%w: %.200q in skill %s cannot be opened: %w", ErrInvalidResourcePath, clean, name, err)
	case size > MaxResource:
		_ = f.Close()
		return nil, tooLarge(clean)
	}
	return limit(f, clean), nil
}

func (s *fileSystem) ListResources(ctx context.Context, name, subpath string) ([]string, error) {
	tops := folders
	if subpath != "" && subpath != "." {
		clean, err := cleanPath(subpath)
		if err != nil {
			return nil, err
		}
		tops = []string{clean}
	}
	fsys, done, err := s.within(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = done() }()
	var files []string
	for _, top := range tops {
		err := fs.WalkDir(fsys, path.Join(name, top), func(p string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case ctx.Err() != nil:
				return ctx.Err()
			case d.IsDir() || !regular(fsys, p, d):
				return nil
			case len(files) == MaxResources:
				return fmt.Errorf("%w: skill %s has more than %d files", ErrTooLarge, name, MaxResources)
			}
			files = append(files, strings.TrimPrefix(p, name+"/"))
			return nil
		})
		switch {
		case errors.Is(err, fs.ErrNotExist) && len(tops) > 1:
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%w: %.200q in skill %s", ErrResourceNotFound, top, name)
		case err != nil:
			return nil, fmt.Errorf("list the files of skill %s: %w", name, err)
		}
	}
	slices.Sort(files)
	return files, nil
}

// regular leaves out what LoadResource would refuse: pipes, devices, links to folders, and links that lead out.
func regular(fsys fs.FS, name string, d fs.DirEntry) bool {
	if d.Type().IsRegular() {
		return true
	}
	info, err := fs.Stat(fsys, name)
	return err == nil && info.Mode().IsRegular()
}

// within opens the file system for a skill that is whole.
func (s *fileSystem) within(name string) (fs.FS, func() error, error) {
	if err := checkName(name); err != nil {
		return nil, nil, err
	}
	fsys, done, err := s.open()
	if err != nil {
		return nil, nil, err
	}
	if _, _, err := s.skill(fsys, name, false); err != nil {
		_ = done()
		return nil, nil, err
	}
	return fsys, done, nil
}
