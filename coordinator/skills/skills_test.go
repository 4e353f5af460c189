package skills_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"

	"github.com/toolfabric/toolfabric/coordinator/skills"
	"github.com/toolfabric/toolfabric/protocol"
	"github.com/toolfabric/toolfabric/protocol/natswire"
	"github.com/toolfabric/toolfabric/tests/natstest"
	"github.com/toolfabric/toolfabric/toolkit/tool/skilltoolset/skill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func folder(name, about string, more map[string]string) fstest.MapFS {
	files := fstest.MapFS{"SKILL.md": {Data: []byte("---\nname: " + name + "\ndescription: " + about + "\n---\nUse it.\n")}}
	for path, text := range more {
		files[path] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

func pack(t *testing.T, fsys fs.FS) *skills.Package {
	t.Helper()
	p, err := skills.Pack(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func put(t *testing.T, s *skills.Store, fsys fs.FS) bool {
	t.Helper()
	changed, err := s.Put(t.Context(), pack(t, fsys))
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// listed is a source's list as text: names, then faults behind a bar.
func listed(t *testing.T, s skill.Source) string {
	t.Helper()
	list, err := s.ListFrontmatters(t.Context())
	faults, err := skill.Broken(err)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, fm := range list {
		fmt.Fprintf(&b, "%s: %s; ", fm.Name, fm.Description)
	}
	for _, f := range faults {
		fmt.Fprintf(&b, "| %s ", f.Skill)
	}
	return strings.TrimSpace(b.String())
}

func TestWhatIsPutIsSeenByAllCoordinatorsAtOnce(t *testing.T) {
	server := natstest.Start(t)
	here := skills.New(server.Connect(t, ""))
	there := skills.New(server.Dial(t, natswire.Config{}))
	all, some := there.Source(), there.Source("pdf", "later")
	if got := listed(t, all); got != "" {
		t.Errorf("an empty bucket: %s", got)
	}
	if !put(t, here, folder("pdf", "one", map[string]string{"references/a.md": "first", ".git/config": "x", ".env": "secret", "LICENSE": "MIT"})) {
		t.Error("the first one is no change")
	}
	put(t, here, folder("weather", "sun", nil))
	if got := listed(t, all); got != "pdf: one; weather: sun;" {
		t.Error(got)
	}
	if got := listed(t, some); got != "pdf: one; | later" {
		t.Error(got)
	}
	read := func(s skill.Source, name, path string) string {
		r, err := s.LoadResource(t.Context(), name, path)
		if err != nil {
			return err.Error()
		}
		defer r.Close()
		text, _ := io.ReadAll(r)
		return string(text)
	}
	if got := read(all, "pdf", "references/a.md"); got != "first" {
		t.Error(got)
	}
	if put(t, here, folder("pdf", "one", map[string]string{"references/a.md": "first", "LICENSE": "MIT"})) {
		t.Error("the same files are a change")
	}
	if !put(t, here, folder("pdf", "two", map[string]string{"references/a.md": "second"})) {
		t.Error("other files are no change")
	}
	if got := read(all, "pdf", "references/a.md"); got != "second" {
		t.Error(got)
	}
	if got := listed(t, all); got != "pdf: two; weather: sun;" {
		t.Error(got)
	}
	if files, err := all.ListResources(t.Context(), "pdf", ""); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	if text, err := all.LoadInstructions(t.Context(), "pdf"); err != nil || text != "Use it.\n" {
		t.Errorf("%q, %v", text, err)
	}
	if fm, err := all.LoadFrontmatter(t.Context(), "weather"); err != nil || fm.Description != "sun" {
		t.Errorf("%+v, %v", fm, err)
	}
	for _, name := range []string{"weather", "nosuch", "../pdf", ""} {
		if _, err := some.LoadFrontmatter(t.Context(), name); !errors.Is(err, skill.ErrSkillNotFound) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := here.Remove(t.Context(), "pdf"); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, all); got != "weather: sun;" {
		t.Error(got)
	}
	if _, err := all.LoadInstructions(t.Context(), "pdf"); !errors.Is(err, skill.ErrSkillNotFound) {
		t.Error(err)
	}
	if err := here.Remove(t.Context(), "pdf"); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Error(err)
	}
}

func TestASkillIsShownWhole(t *testing.T) {
	s := skills.New(natstest.Start(t).Connect(t, ""))
	put(t, s, folder("pdf", "one", map[string]string{"scripts/run.sh": "echo", "LICENSE": "MIT"}))
	list, err := s.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != "pdf" || list[0].Description != "one" || list[0].Size == 0 || len(list[0].Digest) != 64 || list[0].PutAt.IsZero() {
		t.Fatalf("%+v, %v", list, err)
	}
	d, err := s.Get(t.Context(), "pdf")
	if err != nil || d.Skill != list[0] || d.Instructions != "Use it.\n" || d.Frontmatter.Name != "pdf" || fmt.Sprint(d.Files) != "[{LICENSE 3} {SKILL.md 43} {scripts/run.sh 4}]" {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := s.Get(t.Context(), "nosuch"); protocol.CodeOf(err) != protocol.CodeNotFound {
		t.Error(err)
	}
}

func TestAFolderThatIsNoSkillIsNotPacked(t *testing.T) {
	many := folder("a", "b", nil)
	for i := range skills.MaxEntries + 1 {
		many[fmt.Sprintf("assets/%d", i)] = &fstest.MapFile{}
	}
	long := folder("a", "b", nil)
	long["SKILL.md"].Data = append(long["SKILL.md"].Data, bytes.Repeat([]byte("x"), skill.MaxInstructions)...)
	for name, fsys := range map[string]fs.FS{
		"empty":                 fstest.MapFS{},
		"no frontmatter":        fstest.MapFS{"SKILL.md": {Data: []byte("x")}},
		"a folder as SKILL.md":  fstest.MapFS{"SKILL.md/x": {}},
		"a huge file":           folder("a", "b", map[string]string{"assets/x": strings.Repeat("x", skill.MaxResource+1)}),
		"a bomb":                folder("a", "b", map[string]string{"assets/x": strings.Repeat("x", 2<<20)}),
		"many files":            many,
		"long instructions":     long,
		"a name of another one": folder("../a", "b", nil),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := skills.Pack(fsys); protocol.CodeOf(err) != protocol.CodeUsage {
				t.Error(err)
			}
		})
	}
}

// hostile are archives that somebody else may put, past our own checks.
func hostile(t *testing.T) map[string][]byte {
	t.Helper()
	md := "---\nname: evil\ndescription: x\n---\n"
	// An entry's comment is its text; one that says its sizes has zeros for it, and lies.
	made := func(entries ...zip.FileHeader) []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for _, e := range entries {
			text, create := []byte(e.Comment), w.CreateHeader
			if e.Comment, e.Method = "", zip.Deflate; e.UncompressedSize64 > 0 {
				text, create = make([]byte, e.CompressedSize64), w.CreateRaw
			}
			f, err := create(&e)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(text); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	good := zip.FileHeader{Name: "evil/SKILL.md", Comment: md}
	link := zip.FileHeader{Name: "evil/references/passwd", Comment: "/etc/passwd"}
	link.SetMode(fs.ModeSymlink | 0o777)
	many := []zip.FileHeader{good}
	for i := range skills.MaxEntries {
		many = append(many, zip.FileHeader{Name: fmt.Sprintf("evil/assets/%d", i)})
	}
	var four []zip.FileHeader
	for i := range 4 {
		four = append(four, zip.FileHeader{Name: fmt.Sprintf("evil/assets/%d", i), UncompressedSize64: 9 << 20, CompressedSize64: 200 << 10})
	}
	return map[string][]byte{
		"no archive":          []byte("PK"),
		"empty":               made(),
		"no SKILL.md":         made(zip.FileHeader{Name: "evil/x"}),
		"out of the folder":   made(good, zip.FileHeader{Name: "evil/../../x"}),
		"absolute":            made(good, zip.FileHeader{Name: "/evil/x"}),
		"backslashes":         made(good, zip.FileHeader{Name: `evil\..\x`}),
		"a NUL":               made(good, zip.FileHeader{Name: "evil/x\x00.md"}),
		"another folder":      made(good, zip.FileHeader{Name: "good/SKILL.md", Comment: md}),
		"another name":        made(zip.FileHeader{Name: "other/SKILL.md", Comment: md}),
		"a link":              made(good, link),
		"twice":               made(good, good),
		"a file and a folder": made(good, zip.FileHeader{Name: "evil/a"}, zip.FileHeader{Name: "evil/a/b"}),
		"a long name":         made(good, zip.FileHeader{Name: "evil/" + strings.Repeat("a/", 20000) + "x"}),
		"many entries":        made(many...),
		"a bomb":              made(good, zip.FileHeader{Name: "evil/assets/x", UncompressedSize64: 9 << 20, CompressedSize64: 90 << 10}),
		"a huge file":         made(good, zip.FileHeader{Name: "evil/assets/x", UncompressedSize64: skill.MaxResource + 1, CompressedSize64: 900 << 10}),
		"too much in all":     made(append(four, good)...),
		"broken frontmatter":  made(zip.FileHeader{Name: "evil/SKILL.md", Comment: "---\nname: evil\ndescription: a: b\n---\n"}),
	}
}

func TestAnArchiveThatSomebodyElsePutIsCheckedToo(t *testing.T) {
	c := natstest.Start(t).Connect(t, "")
	s := skills.New(c)
	put(t, s, folder("good", "fine", nil))
	source := s.Source()
	why := map[string]string{
		"no archive": "no zip archive", "empty": "skill not found", "no SKILL.md": "skill not found", "out of the folder": "no path within", "absolute": "no path within",
		"backslashes": "no path within", "a NUL": "no path within", "another folder": "not in the folder", "another name": "not in the folder", "a link": "neither a file nor a folder",
		"twice": "there twice", "a file and a folder": "is a file and a folder", "a long name": "no path within", "many entries": "more than 4000", "a bomb": "less than 1/100", "a huge file": "more than 10485760",
		"too much in all": "more than 33554432 bytes", "broken frontmatter": "evil/SKILL.md:3:",
	}
	for name, data := range hostile(t) {
		t.Run(name, func(t *testing.T) {
			_, err := s.Put(t.Context(), &skills.Package{Frontmatter: &skill.Frontmatter{Name: "evil"}, Archive: data})
			if protocol.CodeOf(err) != protocol.CodeUsage || !strings.Contains(err.Error(), why[name]) || why[name] == "" {
				t.Errorf("it is put, or refused for another reason: %v", err)
			}
			if _, err := c.Skills().Put(t.Context(), "evil", "", data); err != nil {
				t.Fatal(err)
			}
			if got := listed(t, source); got != "good: fine; | evil" {
				t.Error(got)
			}
			if _, err := source.LoadInstructions(t.Context(), "evil"); err == nil {
				t.Error("its instructions are read")
			}
			if _, err := s.Get(t.Context(), "evil"); protocol.CodeOf(err) != protocol.CodeBadMessage {
				t.Error(err)
			}
		})
	}
}

func TestAnArchiveThatIsDamagedOrTooLargeIsReported(t *testing.T) {
	c := natstest.Start(t).Connect(t, "")
	s := skills.New(c)
	put(t, s, folder("whole", "fine", nil))
	put(t, s, folder("damaged", "fine", nil))
	if _, err := c.Skills().Put(t.Context(), "large", "", make([]byte, skills.MaxArchive+1)); err != nil {
		t.Fatal(err)
	}
	chunks, err := c.Read(t.Context(), c.Names().SkillsStream(), "$O.SKILLS.C.>", 0, 2)
	if err != nil || len(chunks) != 2 {
		t.Fatal(len(chunks), err)
	}
	if err := c.Remove(t.Context(), c.Names().SkillsStream(), chunks[1].Seq); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, s.Source()); got != "whole: fine; | damaged | large" {
		t.Error(got)
	}
}

func TestWithoutABusThereIsNoList(t *testing.T) {
	server := natstest.Start(t)
	s := skills.New(server.Connect(t, ""))
	server.Stop(t)
	if _, err := s.Source().ListFrontmatters(t.Context()); protocol.CodeOf(err) != protocol.CodeUnreachable {
		t.Error(err)
	}
	if _, err := s.Source().LoadFrontmatter(t.Context(), "a"); protocol.CodeOf(err) != protocol.CodeUnreachable {
		t.Error(err)
	}
}

// An archive may say that a file is small and hold one without end.
func TestAFileThatIsLargerThanItsArchiveSaysIsNotRead(t *testing.T) {
	const real = skill.MaxResource + 1
	var packed, b bytes.Buffer
	deflate, err := flate.NewWriter(&packed, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := deflate.Write(make([]byte, real)); err != nil {
		t.Fatal(err)
	}
	if err := deflate.Close(); err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(&b)
	md, err := w.Create("evil/SKILL.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(md, "---\nname: evil\ndescription: x\n---\n"); err != nil {
		t.Fatal(err)
	}
	raw, err := w.CreateRaw(&zip.FileHeader{Name: "evil/assets/x", Method: zip.Deflate, UncompressedSize64: 100, CompressedSize64: uint64(packed.Len())})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Write(packed.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	c := natstest.Start(t).Connect(t, "")
	if _, err := c.Skills().Put(t.Context(), "evil", "", b.Bytes()); err != nil {
		t.Fatal(err)
	}
	r, err := skills.New(c).Source().LoadResource(t.Context(), "evil", "assets/x")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); err == nil || n > 1<<20 {
		t.Errorf("%d bytes are read, %v", n, err)
	}
}
