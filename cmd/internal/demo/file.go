package demo

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolfabric/toolfabric/protocol"
)

// File is what is true of a file, as this process sees it.
type File struct {
	Path   string `json:"path"` // relative to the folder that is asked about
	Words  int    `json:"words"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// asked is how many files the agent is asked about, and largest the limit of their size in bytes.
const (
	asked   = 3
	largest = 1 << 20
)

// samples stand in for the files of a folder that has too few.
var samples = map[string]string{
	"a note.md":   "# A note\n\nTools run in *other* processes.\n",
	"haiku.txt":   "An old silent pond\nA frog jumps into the pond\nSplash! Silence again\n",
	"numbers.csv": "n,square\n1,1\n2,4\n3,9\n",
}

// choose takes files of dir, in the order of their names. When there are too few it writes samples into spare and takes
// those; it returns the folder that the paths are relative to.
func choose(dir, spare string) (string, []File, error) {
	files, err := list(dir)
	if err != nil {
		return "", nil, protocol.Wrap(err, protocol.CodeUsage, "the folder %s cannot be read", dir)
	}
	if len(files) == asked {
		return dir, files, nil
	}
	if err := os.MkdirAll(spare, 0o700); err != nil {
		return "", nil, err
	}
	for name, text := range samples {
		if err := os.WriteFile(filepath.Join(spare, name), []byte(text), 0o600); err != nil {
			return "", nil, err
		}
	}
	files, err = list(spare)
	return spare, files, err
}

// list is the first files of dir that can be asked about.
func list(dir string) ([]File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []File
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() == 0 || info.Size() > largest || !speakable(e.Name()) {
			continue
		}
		if f, err := look(dir, e.Name()); err == nil {
			files = append(files, f)
		}
		if len(files) == asked {
			break
		}
	}
	return files, nil
}

// speakable names can be said to a model and come back from any sha256sum as they are. Hidden files are left alone: they
// are the ones that hold secrets.
func speakable(name string) bool {
	return utf8.ValidString(name) && !strings.HasPrefix(name, ".") &&
		!strings.ContainsFunc(name, func(r rune) bool { return r == '\\' || !unicode.IsPrint(r) })
}

// look computes a file's facts. Files that are not plain ASCII text are refused: what a word is in them depends on the
// locale of wc.
func look(dir, path string) (File, error) {
	text, err := os.ReadFile(filepath.Join(dir, path))
	if err != nil {
		return File{}, err
	}
	for _, c := range text {
		if c >= 0x7f || c < ' ' && !strings.ContainsRune("\t\n\v\f\r", rune(c)) {
			return File{}, protocol.Errorf(protocol.CodeUsage, "%s is no plain text", path)
		}
	}
	return File{Path: path, Words: len(bytes.Fields(text)), Bytes: len(text), SHA256: digest(string(text))}, nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
