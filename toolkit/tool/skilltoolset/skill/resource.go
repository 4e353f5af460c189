package skill

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// folders are what of a skill, beside its SKILL.md, can be read.
var folders = []string{"references", "assets", "scripts"}

const maxPath = 512 // bytes of a resource's path

// CleanPath checks the path of a resource and returns it in its shortest form. The result is relative, has no "..", and its
// first element is references, assets or scripts. It returns ErrInvalidResourcePath for anything else; backslashes, which some
// systems take for separators, are refused too.
func CleanPath(resourcePath string) (string, error) {
	clean, err := cleanPath(resourcePath)
	if err == nil && !strings.Contains(clean, "/") {
		return "", fmt.Errorf("%w: %.80q is a folder, not a file in one", ErrInvalidResourcePath, resourcePath)
	}
	return clean, err
}

func cleanPath(resourcePath string) (string, error) {
	refuse := func(why string) (string, error) {
		return "", fmt.Errorf("%w: %.80q %s", ErrInvalidResourcePath, resourcePath, why)
	}
	switch {
	case len(resourcePath) > maxPath:
		return refuse(fmt.Sprintf("has more than %d bytes", maxPath))
	case !utf8.ValidString(resourcePath) || strings.ContainsRune(resourcePath, 0):
		return refuse("is no text")
	case strings.Contains(resourcePath, `\`):
		return refuse("holds a backslash; folders are separated by /")
	case strings.HasPrefix(resourcePath, "/"):
		return refuse("is absolute; write it relative to the skill's folder")
	}
	clean := path.Clean(resourcePath)
	first, _, _ := strings.Cut(clean, "/")
	if !fs.ValidPath(clean) || !slices.Contains(folders, first) {
		return refuse("is not within references/, assets/ or scripts/")
	}
	return clean, nil
}

// limited is a file of which no more than MaxResource bytes are read.
type limited struct {
	io.ReadCloser
	path string
	left int64
}

func limit(f io.ReadCloser, path string) io.ReadCloser {
	return &limited{ReadCloser: f, path: path, left: MaxResource}
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.ReadCloser.Read(p)
	if int64(n) > l.left {
		n, err = int(l.left), tooLarge(l.path)
	}
	l.left -= int64(n)
	return n, err
}

func tooLarge(path string) error {
	return fmt.Errorf("%w: %s has more than %d bytes", ErrTooLarge, path, MaxResource)
}
