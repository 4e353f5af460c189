package skill_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func skillMD(name string) *fstest.MapFile {
	return file("---\nname: " + name + "\ndescription: About " + name + ".\n---\nUse " + name + ".\r\nThen stop.\r\n")
}

func sample() fstest.MapFS {
	return fstest.MapFS{
		"pdf/SKILL.md":                skillMD("pdf"),
		"pdf/references/forms.md":     file("# Forms\n"),
		"pdf/references/deep/more.md": file("more"),
		"pdf/assets/logo.png":         file("\x89PNG\x00"),
		"pdf/scripts/fill.py":         file("print('ok')\n"),
		"pdf/secret.txt":              file("secret"),
		"weather/SKILL.md":            skillMD("weather"),
		"notes/readme.txt":            file("no skill"),
		".git/SKILL.md":               skillMD("git"),
		"README.md":                   file("no skill"),
	}
}

// written is files as a folder of the system.
func written(t testing.TB, files fstest.MapFS) string {
	t.Helper()
	dir := t.TempDir()
	for name, f := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func directory(t testing.TB, dir string) skill.Source {
	t.Helper()
	s, err := skill.NewDirectorySource(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// kinds are the same skills behind each kind of source.
func kinds(t *testing.T, files fstest.MapFS) map[string]skill.Source {
	t.Helper()
	plain := skill.NewFileSystemSource(files)
	some, _, err := skill.WithFrontmatterPreloadSource(t.Context(), plain)
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := skill.WithCompletePreloadSource(t.Context(), plain)
	if err != nil {
		t.Fatal(err)
	}
	dir := written(t, files)
	return map[string]skill.Source{
		"file system":            plain,
		"directory by its path":  skill.NewFileSystemSource(os.DirFS(dir)),
		"directory":              directory(t, dir),
		"merged":                 skill.NewMergedSource(skill.NewFileSystemSource(fstest.MapFS{}), plain),
		"frontmatters in memory": some,
		"all in memory":          all,
	}
}

func names(list []*skill.Frontmatter) string {
	var all []string
	for _, fm := range list {
		all = append(all, fm.Name)
	}
	return strings.Join(all, " ")
}

func load(t *testing.T, s skill.Source, name, path string) (string, error) {
	t.Helper()
	r, err := s.LoadResource(t.Context(), name, path)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return string(b), err
}

func TestEverySourceReadsSkills(t *testing.T) {
	for kind, s := range kinds(t, sample()) {
		t.Run(kind, func(t *testing.T) {
			list, err := s.ListFrontmatters(t.Context())
			if err != nil || names(list) != "pdf weather" {
				t.Errorf("listed %s, %v", names(list), err)
			}
			fm, err := s.LoadFrontmatter(t.Context(), "pdf")
			if err != nil || fm.Description != "About pdf." {
				t.Errorf("%+v, %v", fm, err)
			}
			text, err := s.LoadInstructions(t.Context(), "pdf")
			if err != nil || text != "Use pdf.\nThen stop.\n" {
				t.Errorf("%q, %v", text, err)
			}
			for under, want := range map[string]string{
				"":                 "assets/logo.png references/deep/more.md references/forms.md scripts/fill.py",
				".":                "assets/logo.png references/deep/more.md references/forms.md scripts/fill.py",
				"references":       "references/deep/more.md references/forms.md",
				"references/deep/": "references/deep/more.md",
			} {
				files, err := s.ListResources(t.Context(), "pdf", under)
				if err != nil || strings.Join(files, " ") != want {
					t.Errorf("below %q: %v, %v", under, files, err)
				}
			}
			if files, err := s.ListResources(t.Context(), "weather", "."); err != nil || len(files) != 0 {
				t.Errorf("%v, %v", files, err)
			}
			for path, want := range map[string]string{"assets/logo.png": "\x89PNG\x00", "./references//deep/../forms.md": "# Forms\n"} {
				if got, err := load(t, s, "pdf", path); err != nil || got != want {
					t.Errorf("%s: %q, %v", path, got, err)
				}
			}
		})
	}
}

func TestEverySourceRefusesWhatIsNotThere(t *testing.T) {
	for kind, s := range kinds(t, sample()) {
		t.Run(kind, func(t *testing.T) {
			for name, want := range map[string]error{
				"nosuch": skill.ErrSkillNotFound, "notes": skill.ErrSkillNotFound,
				"": skill.ErrInvalidSkillName, ".": skill.ErrInvalidSkillName, "..": skill.ErrInvalidSkillName, "../pdf": skill.ErrInvalidSkillName,
				"pdf/": skill.ErrInvalidSkillName, "PDF": skill.ErrInvalidSkillName, "pdf\x00": skill.ErrInvalidSkillName, "/etc": skill.ErrInvalidSkillName,
				".git": skill.ErrInvalidSkillName, `..\pdf`: skill.ErrInvalidSkillName, strings.Repeat("a", 1000): skill.ErrInvalidSkillName,
			} {
				_, fm := s.LoadFrontmatter(t.Context(), name)
				_, text := s.LoadInstructions(t.Context(), name)
				_, files := s.ListResources(t.Context(), name, ".")
				_, one := s.LoadResource(t.Context(), name, "references/forms.md")
				for i, err := range []error{fm, text, files, one} {
					if !errors.Is(err, want) {
						t.Errorf("%.20q: method %d returns %v", name, i, err)
					}
				}
			}
			for path, want := range map[string]error{
				"references/nosuch.md": skill.ErrResourceNotFound, "references/forms.md/x": skill.ErrResourceNotFound,
				"references/%2e%2e/%2e%2e/secret": skill.ErrResourceNotFound,
				"":                                skill.ErrInvalidResourcePath, ".": skill.ErrInvalidResourcePath, "references": skill.ErrInvalidResourcePath,
				"references/": skill.ErrInvalidResourcePath, "SKILL.md": skill.ErrInvalidResourcePath, "secret.txt": skill.ErrInvalidResourcePath,
				"references/../secret.txt": skill.ErrInvalidResourcePath, "references/../../../etc/passwd": skill.ErrInvalidResourcePath,
				"../pdf/references/forms.md": skill.ErrInvalidResourcePath, "/etc/passwd": skill.ErrInvalidResourcePath,
				`references\..\..\secret`: skill.ErrInvalidResourcePath, `\\host\share\x`: skill.ErrInvalidResourcePath, "C:/x": skill.ErrInvalidResourcePath,
				"references/forms.md\x00.png": skill.ErrInvalidResourcePath, "references/\xff": skill.ErrInvalidResourcePath,
				"references/" + strings.Repeat("a/", 1000): skill.ErrInvalidResourcePath,
			} {
				if got, err := load(t, s, "pdf", path); !errors.Is(err, want) && !(want == skill.ErrResourceNotFound && errors.Is(err, skill.ErrInvalidResourcePath)) {
					t.Errorf("%.40q: %q, %v", path, got, err)
				}
			}
			if _, err := load(t, s, "pdf", "references/deep"); err == nil {
				t.Error("a folder is read")
			}
			for under, want := range map[string]error{"references/nosuch": skill.ErrResourceNotFound, "..": skill.ErrInvalidResourcePath, "/": skill.ErrInvalidResourcePath, "other": skill.ErrInvalidResourcePath} {
				if files, err := s.ListResources(t.Context(), "pdf", under); !errors.Is(err, want) {
					t.Errorf("below %q: %v, %v", under, files, err)
				}
			}
		})
	}
}

func brokenSample() fstest.MapFS {
	files := sample()
	files["colon/SKILL.md"] = file("---\nname: colon\ndescription: Use: when asked\n---\n")
	files["other/SKILL.md"] = skillMD("another")
	files["lower/skill.md"] = skillMD("lower")
	return files
}

// FIELD: one bad file must neither take the others down nor vanish.
func TestABrokenSkillIsReportedAndHidesNoOther(t *testing.T) {
	for kind, s := range kinds(t, brokenSample()) {
		t.Run(kind, func(t *testing.T) {
			list, err := s.ListFrontmatters(t.Context())
			if names(list) != "pdf weather" {
				t.Errorf("listed %s", names(list))
			}
			faults, other := skill.Broken(err)
			if other != nil || len(faults) != 3 {
				t.Fatalf("%v, %v", faults, other)
			}
			for i, want := range []struct {
				skill, file string
				line        int
				err         error
			}{
				{"colon", "colon/SKILL.md", 3, skill.ErrInvalidFrontmatter}, {"lower", "lower/SKILL.md", 0, skill.ErrInvalidFrontmatter}, {"other", "other/SKILL.md", 0, skill.ErrInvalidSkillName},
			} {
				f := faults[i]
				if f.Skill != want.skill || !strings.HasSuffix(f.File, want.file) || f.Line != want.line || !errors.Is(f, want.err) {
					t.Errorf("%+v: %v", f, f)
				}
			}
			if !errors.Is(err, skill.ErrInvalidFrontmatter) || !errors.Is(err, skill.ErrInvalidSkillName) || !strings.Contains(err.Error(), "colon/SKILL.md:3:") {
				t.Errorf("the error is %v", err)
			}
			_, err = s.LoadInstructions(t.Context(), "colon")
			if f, ok := errors.AsType[*skill.Fault](err); !ok || f.Line != 3 {
				t.Errorf("a broken skill loads, or fails with %v", err)
			}
		})
	}
}

func TestAFaultOfADirectoryNamesTheWholePath(t *testing.T) {
	dir := written(t, brokenSample())
	_, err := directory(t, dir).ListFrontmatters(t.Context())
	if want := filepath.Join(dir, "colon", "SKILL.md") + ":3:"; !strings.Contains(err.Error(), want) {
		t.Errorf("%v does not name %s", err, want)
	}
}

func TestNoLinkLeadsOut(t *testing.T) {
	outside := written(t, fstest.MapFS{"passwd": file("secret"), "evil/SKILL.md": skillMD("evil")})
	dir := written(t, sample())
	for link, target := range map[string]string{
		"pdf/references/passwd": filepath.Join(outside, "passwd"),
		"pdf/references/climbs": "../../../" + filepath.Base(outside) + "/passwd",
		"pdf/assets/all":        outside,
		"pdf/references/loop":   "loop",
		"pdf/references/inside": "forms.md",
		"pdf/references/across": "../../weather/SKILL.md",
		"pdf/scripts/through":   "../assets/all/passwd",
		"evil":                  filepath.Join(outside, "evil"),
		"..data":                "pdf",
	} {
		if err := os.Symlink(target, filepath.Join(dir, filepath.FromSlash(link))); err != nil {
			t.Skipf("this system makes no links: %v", err)
		}
	}
	for kind, s := range map[string]skill.Source{"directory": directory(t, dir), "directory by its path": skill.NewFileSystemSource(os.DirFS(dir))} {
		t.Run(kind, func(t *testing.T) {
			for _, path := range []string{"references/passwd", "references/climbs", "assets/all/passwd", "references/loop", "scripts/through"} {
				if text, err := load(t, s, "pdf", path); err == nil {
					t.Errorf("%s is read: %q", path, text)
				}
			}
			for path, want := range map[string]string{"references/inside": "# Forms\n", "references/across": "---\nname: weather"} {
				if text, err := load(t, s, "pdf", path); err != nil || !strings.HasPrefix(text, want) {
					t.Errorf("%s: %q, %v", path, text, err)
				}
			}
			files, err := s.ListResources(t.Context(), "pdf", ".")
			if err != nil || !slices.Contains(files, "references/inside") || slices.Contains(files, "references/passwd") || slices.Contains(files, "assets/all/passwd") {
				t.Errorf("%v, %v", files, err)
			}
			list, err := s.ListFrontmatters(t.Context())
			faults, other := skill.Broken(err)
			if other != nil || names(list) != "pdf weather" || len(faults) != 1 || faults[0].Skill != "evil" {
				t.Errorf("%s, %v", names(list), err)
			}
			if _, err := s.LoadInstructions(t.Context(), "evil"); err == nil {
				t.Error("a skill outside is read")
			}
		})
	}
}

func TestADirectoryMayBeReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "skills")
	if err := os.CopyFS(dir, fstest.MapFS{"a/SKILL.md": skillMD("a")}); err != nil {
		t.Fatal(err)
	}
	s := directory(t, dir)
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if list, err := s.ListFrontmatters(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s, %v", names(list), err)
	}
	if err := os.CopyFS(dir, fstest.MapFS{"b/SKILL.md": skillMD("b")}); err != nil {
		t.Fatal(err)
	}
	if list, err := s.ListFrontmatters(t.Context()); err != nil || names(list) != "b" {
		t.Errorf("%s, %v", names(list), err)
	}
}

func TestAMissingDirectoryIsAUsageError(t *testing.T) {
	if _, err := skill.NewDirectorySource(filepath.Join(t.TempDir(), "nosuch")); protocol.CodeOf(err) != protocol.CodeUsage {
		t.Error(err)
	}
}

func TestSizesAreCapped(t *testing.T) {
	files := fstest.MapFS{"big/SKILL.md": skillMD("big"), "long/SKILL.md": file("---\nname: long\ndescription: x\n---\n" + strings.Repeat("x", skill.MaxInstructions+1))}
	files["big/assets/huge.bin"] = &fstest.MapFile{Data: make([]byte, skill.MaxResource+1)}
	for kind, s := range map[string]skill.Source{"file system": skill.NewFileSystemSource(files), "lying file system": skill.NewFileSystemSource(lying{files})} {
		t.Run(kind, func(t *testing.T) {
			if text, err := load(t, s, "big", "assets/huge.bin"); !errors.Is(err, skill.ErrTooLarge) {
				t.Errorf("%d bytes, %v", len(text), err)
			}
			if _, err := s.LoadInstructions(t.Context(), "long"); !errors.Is(err, skill.ErrTooLarge) {
				t.Error(err)
			}
		})
	}
	all, _, err := skill.WithCompletePreloadSource(t.Context(), skill.NewFileSystemSource(files))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := load(t, all, "big", "assets/huge.bin"); !errors.Is(err, skill.ErrTooLarge) {
		t.Error(err)
	}
	if list, err := all.ListFrontmatters(t.Context()); names(list) != "big" || !errors.Is(err, skill.ErrTooLarge) {
		t.Errorf("%s, %v", names(list), err)
	}
	for i := range skill.MaxResources + 1 {
		files[fmt.Sprintf("big/references/%d.md", i)] = file("x")
	}
	if files, err := skill.NewFileSystemSource(files).ListResources(t.Context(), "big", "."); !errors.Is(err, skill.ErrTooLarge) {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// lying says that every file is empty.
type lying struct{ fstest.MapFS }

func (l lying) Stat(name string) (fs.FileInfo, error) {
	info, err := l.MapFS.Stat(name)
	if err != nil || info.IsDir() {
		return info, err
	}
	return emptied{info}, nil
}

type emptied struct{ fs.FileInfo }

func (emptied) Size() int64 { return 0 }

func TestTheFirstSourceThatKnowsASkillHasIt(t *testing.T) {
	first := skill.NewFileSystemSource(fstest.MapFS{"a/SKILL.md": skillMD("a"), "bad/SKILL.md": file("no"), "a/references/x.md": file("first")})
	second := skill.NewFileSystemSource(fstest.MapFS{
		"a/SKILL.md": file("---\nname: a\ndescription: other\n---\n"), "b/SKILL.md": skillMD("b"), "bad/SKILL.md": skillMD("bad"), "a/references/y.md": file("second"),
	})
	s := skill.NewMergedSource(first, second)
	list, err := s.ListFrontmatters(t.Context())
	if names(list) != "a b" || list[0].Description != "About a." {
		t.Errorf("%s", names(list))
	}
	faults, _ := skill.Broken(err)
	var texts []string
	for _, f := range faults {
		texts = append(texts, f.Skill+" "+f.File)
	}
	if got := strings.Join(texts, "; "); got != "a a/SKILL.md; bad bad/SKILL.md; bad bad/SKILL.md" || !errors.Is(err, skill.ErrDuplicateSkill) {
		t.Errorf("%s: %v", got, err)
	}
	if _, err := load(t, s, "a", "references/y.md"); !errors.Is(err, skill.ErrResourceNotFound) {
		t.Errorf("the other source's file: %v", err)
	}
	if _, err := s.LoadInstructions(t.Context(), "bad"); !errors.Is(err, skill.ErrInvalidFrontmatter) {
		t.Errorf("a broken skill: %v", err)
	}
	if _, err := s.LoadInstructions(t.Context(), "b"); err != nil {
		t.Error(err)
	}
}

// gate is a source whose list fails while it is closed.
type gate struct {
	skill.Source
	closed error
}

func (g *gate) ListFrontmatters(ctx context.Context) ([]*skill.Frontmatter, error) {
	if g.closed != nil {
		return nil, g.closed
	}
	return g.Source.ListFrontmatters(ctx)
}

func TestAReloadThatFailsKeepsWhatWasThere(t *testing.T) {
	for kind, preload := range map[string]func(context.Context, skill.Source) (skill.Source, func(context.Context) error, error){
		"frontmatters": skill.WithFrontmatterPreloadSource, "all": skill.WithCompletePreloadSource,
	} {
		t.Run(kind, func(t *testing.T) {
			files := fstest.MapFS{"b/SKILL.md": skillMD("b")}
			g := &gate{Source: skill.NewFileSystemSource(files)}
			s, reload, err := preload(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			files["a/SKILL.md"] = skillMD("a")
			g.closed = errors.New("closed")
			if err := reload(t.Context()); !errors.Is(err, g.closed) {
				t.Errorf("reload: %v", err)
			}
			if list, err := s.ListFrontmatters(t.Context()); err != nil || names(list) != "b" {
				t.Errorf("%s, %v", names(list), err)
			}
			if _, err := s.LoadFrontmatter(t.Context(), "a"); !errors.Is(err, skill.ErrSkillNotFound) {
				t.Error(err)
			}
			g.closed = nil
			if err := reload(t.Context()); err != nil {
				t.Error(err)
			}
			list, err := s.ListFrontmatters(t.Context())
			if err != nil || names(list) != "a b" {
				t.Errorf("%s, %v", names(list), err)
			}
			list[0].Description = "changed by a caller"
			if fm, err := s.LoadFrontmatter(t.Context(), "a"); err != nil || fm.Description != "About a." {
				t.Errorf("%+v, %v", fm, err)
			}
			g.closed = errors.New("closed")
			if s, _, err := preload(t.Context(), g); err == nil || s != nil {
				t.Errorf("a source that cannot be read is preloaded: %v", err)
			}
		})
	}
}
