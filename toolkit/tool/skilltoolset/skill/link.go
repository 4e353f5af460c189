package skill

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// contained is a file system whose symbolic links lead nowhere outside. One that knows of no links is left as it is.
type contained struct{ fs.FS }

// maxLinks bounds the links on the way to one file.
const maxLinks = 40

// errLeaves is in the chain of what is refused for a link that leads out.
var errLeaves = errors.New("a symbolic link leads out of the folder of skills")

func (c contained) Open(name string) (fs.File, error) {
	at, err := c.resolve(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return c.FS.Open(at)
}

func (c contained) Stat(name string) (fs.FileInfo, error) {
	at, err := c.resolve(name)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return fs.Stat(c.FS, at)
}

func (c contained) ReadDir(name string) ([]fs.DirEntry, error) {
	at, err := c.resolve(name)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	return fs.ReadDir(c.FS, at)
}

// resolve is name without links.
func (c contained) resolve(name string) (string, error) {
	links, ok := c.FS.(fs.ReadLinkFS)
	if !ok || name == "." {
		return name, nil
	}
	if !fs.ValidPath(name) {
		return "", fs.ErrInvalid
	}
	at, followed := "", 0
	rest := strings.Split(name, "/")
	for len(rest) > 0 {
		next := path.Join(at, rest[0])
		rest = rest[1:]
		info, err := links.Lstat(next)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if followed++; followed > maxLinks {
			return "", fmt.Errorf("more than %d symbolic links", maxLinks)
		}
		target, err := links.ReadLink(next)
		if err != nil {
			return "", err
		}
		joined := path.Join(path.Dir(next), target)
		if path.IsAbs(target) || strings.Contains(target, `\`) || !fs.ValidPath(joined) {
			return "", errLeaves
		}
		at = ""
		if joined != "." {
			rest = append(strings.Split(joined, "/"), rest...)
		}
	}
	if at == "" {
		at = "."
	}
	return at, nil
}
