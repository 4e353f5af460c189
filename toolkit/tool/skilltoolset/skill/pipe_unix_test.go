//go:build unix

package skill_test

import (
	"path/filepath"
	"syscall"
	"testing"
)

// Opening a pipe waits for its writer, for ever.
func TestAPipeIsNoFile(t *testing.T) {
	dir := written(t, sample())
	for _, at := range []string{"pdf/references/pipe", "piped/SKILL.md"} {
		at = filepath.Join(dir, filepath.FromSlash(at))
		_ = syscall.Mkdir(filepath.Dir(at), 0o755)
		if err := syscall.Mkfifo(at, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := directory(t, dir)
	if _, err := load(t, s, "pdf", "references/pipe"); err == nil {
		t.Error("a pipe is read")
	}
	if files, err := s.ListResources(t.Context(), "pdf", "references"); err != nil || len(files) != 2 {
		t.Errorf("%v, %v", files, err)
	}
	if list, err := s.ListFrontmatters(t.Context()); names(list) != "pdf weather" || err == nil {
		t.Errorf("%s, %v", names(list), err)
	}
}
