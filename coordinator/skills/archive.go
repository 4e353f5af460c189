package skills

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
)

// Limits of one skill. Sizes are bytes.
const (
	MaxArchive = 16 << 20               // as it is stored
	MaxFolder  = 32 << 20               // all its files
	MaxEntries = 2 * skill.MaxResources // files and folders
	maxName    = 600                    // of an entry
	maxRatio   = 100                    // of a file larger than 1 MiB to what it takes in the archive
)

// Package is a skill ready to be put.
type Package struct {
	*skill.Frontmatter
	Archive []byte // the same for the same files
}

// Pack makes an archive of a skill's folder, whose SKILL.md is at the top of fsys. Everything is packed but what begins with a
// dot. It returns an *Error of code usage that says what is wrong with the folder.
func Pack(fsys fs.FS) (*Package, error) {
	text, err := readFile(fsys, skillFile)
	if err != nil {
		return nil, refused(err, "the folder has no SKILL.md that can be read")
	}
	fm, _, err := skill.ParseBytes(text)
	if err != nil {
		return nil, refused(err, "SKILL.md")
	}
	files, err := filesOf(fsys)
	if err != nil {
		return nil, refused(err, "the folder cannot be packed")
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	left := MaxFolder
	for _, p := range files {
		data, err := readFile(fsys, p)
		if err != nil {
			return nil, refused(err, "the folder cannot be packed")
		}
		if left -= len(data); left < 0 {
			return nil, protocol.Errorf(protocol.CodeUsage, "the folder cannot be packed: the files have more than %d bytes", MaxFolder)
		}
		var f io.Writer
		if f, err = w.CreateHeader(&zip.FileHeader{Name: path.Join(fm.Name, p), Method: zip.Deflate}); err == nil {
			_, err = f.Write(data)
		}
		if err != nil {
			return nil, refused(err, "the folder cannot be packed")
		}
	}
	if err := w.Close(); err != nil {
		return nil, refused(err, "the folder cannot be packed")
	}
	if _, err := unpack(fm.Name, b.Bytes()); err != nil {
		return nil, refused(err, "the folder")
	}
	return &Package{Frontmatter: fm, Archive: b.Bytes()}, nil
}

const skillFile = "SKILL.md"

// filesOf lists what is packed.
func filesOf(fsys fs.FS) ([]string, error) {
	var files []string
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || p == ".":
			return err
		case strings.HasPrefix(d.Name(), ".") && d.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(d.Name(), ".") || d.IsDir():
			return nil
		case len(files) == MaxEntries:
			return fmt.Errorf("there are more than %d files", MaxEntries)
		}
		files = append(files, p)
		return nil
	})
	return files, err
}

func refused(err error, what string) error {
	return protocol.Errorf(protocol.CodeUsage, "%s: %s", what, err)
}

func readFile(fsys fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", name)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, skill.MaxResource+1))
	if err == nil && len(data) > skill.MaxResource {
		err = fmt.Errorf("%s has more than %d bytes", name, skill.MaxResource)
	}
	return data, err
}

// archive is a skill as it is stored.
type archive struct {
	skill.Source // of this skill alone
	files        []*zip.File
}

// unpack checks an archive from its entries on, before any of them is read, and then its SKILL.md.
func unpack(name string, data []byte) (*archive, error) {
	if len(data) > MaxArchive {
		return nil, fmt.Errorf("%w: the archive has %d bytes, more than %d", skill.ErrTooLarge, len(data), MaxArchive)
	}
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("%w: no zip archive: %w", skill.ErrInvalidFrontmatter, err)
	}
	if len(r.File) > MaxEntries {
		return nil, fmt.Errorf("%w: the archive has %d entries, more than %d", skill.ErrTooLarge, len(r.File), MaxEntries)
	}
	a := &archive{Source: skill.NewFileSystemSource(r)}
	isDir := make(map[string]bool, len(r.File))
	total := uint64(0)
	for _, f := range r.File {
		if err := checkEntry(name, f); err != nil {
			return nil, err
		}
		clean := strings.TrimSuffix(f.Name, "/")
		if _, twice := isDir[clean]; twice {
			return nil, fmt.Errorf("%w: the entry %q is there twice", skill.ErrInvalidResourcePath, clean)
		}
		isDir[clean] = f.Mode().IsDir()
		if total += f.UncompressedSize64; total > MaxFolder {
			return nil, fmt.Errorf("%w: the files have more than %d bytes", skill.ErrTooLarge, MaxFolder)
		}
		if !f.Mode().IsDir() {
			a.files = append(a.files, f)
		}
	}
	for entry := range isDir {
		for above := path.Dir(entry); above != "."; above = path.Dir(above) {
			if dir, ok := isDir[above]; ok && !dir {
				return nil, fmt.Errorf("%w: %q is a file and a folder", skill.ErrInvalidResourcePath, above)
			}
		}
	}
	_, err = a.LoadInstructions(context.Background(), name) // from memory
	return a, err
}

func checkEntry(skillName string, f *zip.File) error {
	refuse := func(err error, why string) error { return fmt.Errorf("%w: the entry %.80q %s", err, f.Name, why) }
	clean := strings.TrimSuffix(f.Name, "/")
	switch mode := f.Mode(); {
	case len(f.Name) > maxName || !utf8.ValidString(f.Name) || strings.ContainsAny(f.Name, "\\\x00") || !fs.ValidPath(clean):
		return refuse(skill.ErrInvalidResourcePath, "is no path within a folder")
	case clean != skillName && !strings.HasPrefix(clean, skillName+"/"):
		return refuse(skill.ErrInvalidSkillName, fmt.Sprintf("is not in the folder %s", skillName))
	case !mode.IsRegular() && !mode.IsDir():
		return refuse(skill.ErrInvalidResourcePath, "is neither a file nor a folder")
	case mode.IsDir() != strings.HasSuffix(f.Name, "/"):
		return refuse(skill.ErrInvalidResourcePath, "is a file and a folder")
	case f.UncompressedSize64 > skill.MaxResource:
		return refuse(skill.ErrTooLarge, fmt.Sprintf("has %d bytes, more than %d", f.UncompressedSize64, skill.MaxResource))
	case f.UncompressedSize64 > 1<<20 && f.UncompressedSize64/maxRatio > f.CompressedSize64:
		return refuse(skill.ErrTooLarge, fmt.Sprintf("is packed to less than 1/%d of its size", maxRatio))
	}
	return nil
}
