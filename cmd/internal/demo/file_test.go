package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/protocol"
)

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPlainFilesAreChosenInOrder(t *testing.T) {
	dir := folder(t, map[string]string{
		".env": "secret", "-rf": "a b", "empty": "", "binary": "\x00", "latin": "caf\xe9", "utf8": "café", "huge": strings.Repeat("x", largest+1),
		"new\nline": "x", `back\slash`: "x", "bad\xff": "x", `q"uo'te`: "c d\te\n", "z": "f", "zz": "not asked",
	})
	if err := os.Mkdir(filepath.Join(dir, "a folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("z", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	where, files, err := choose(dir, filepath.Join(dir, "spare"))
	if err != nil || where != dir || len(files) != asked {
		t.Fatal(where, files, err)
	}
	for i, want := range []File{{Path: "-rf", Words: 2, Bytes: 3}, {Path: `q"uo'te`, Words: 3, Bytes: 6}, {Path: "z", Words: 1, Bytes: 1}} {
		if got := files[i]; got.Path != want.Path || got.Words != want.Words || got.Bytes != want.Bytes {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if got := files[2].SHA256; got != "252f10c83610ebca1a059c0bae8255eba2f95be4d1d7bcfa89d7248a82d9f111" { // printf f | sha256sum
		t.Errorf("SHA-256 of f: %s", got)
	}
}

func TestSamplesStandInForMissingFiles(t *testing.T) {
	for _, files := range []map[string]string{nil, {"a": "a", "b": "b"}} {
		dir, spare := folder(t, files), filepath.Join(t.TempDir(), "spare")
		where, files, err := choose(dir, spare)
		if err != nil || where != spare || len(files) != asked {
			t.Error(where, files, err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 2 {
			t.Errorf("the folder itself was written to: %v", left)
		}
	}
}

func TestAFolderThatIsNotThereIsSaid(t *testing.T) {
	if _, _, err := choose(filepath.Join(t.TempDir(), "gone"), t.TempDir()); protocol.CodeOf(err) != protocol.CodeUsage {
		t.Error(err)
	}
}

func TestAnEffectIsEnteredOnce(t *testing.T) {
	l := ledger(filepath.Join(t.TempDir(), "ledger"))
	if got, err := l.read(); len(got) != 0 || err != nil {
		t.Error(got, err)
	}
	for _, e := range []Effect{{Key: "a", Attempt: 1}, {Key: "b", Attempt: 1}, {Key: "a", Attempt: 2}} {
		if err := l.enter(e); err != nil {
			t.Fatal(err)
		}
	}
	got, err := l.read()
	if err != nil || len(got) != 2 || got[0].Key != "a" || got[0].Attempt != 1 || got[1].Key != "b" {
		t.Error(got, err)
	}
}
