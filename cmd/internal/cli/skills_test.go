package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolfabric/toolfabric/tests/natstest"
)

// skillFolder writes a skill and returns its folder.
func skillFolder(t *testing.T, name, text string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(filepath.Join(dir, "scripts"), 0o755); err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string]string{"SKILL.md": text, "scripts/fill.sh": "echo filled\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSkillsArePutShownAndRemoved(t *testing.T) {
	s := natstest.Start(t)
	s.Connect(t, "")
	pdf := skillFolder(t, "pdf-forms", "---\nname: pdf-forms\ndescription: Fills forms.\nlicense: MIT\n---\n# Forms\n\nRun scripts/fill.sh.\n")
	run := func(want int, args ...string) (string, string) {
		t.Helper()
		code, stdout, stderr := command(t, "", append([]string{"skills", "--nats", s.URL()}, args...)...)
		if code != want {
			t.Errorf("%v: exit %d, want %d; stdout %q, stderr %q", args, code, want, stdout, stderr)
		}
		return stdout, stderr
	}
	if _, stderr := run(exitOK, "ls"); !strings.Contains(stderr, "toolfabric --nats "+s.URL()+" skills put DIR") {
		t.Errorf("an empty list says %q", stderr)
	}
	if stdout, _ := run(exitOK, "put", pdf); !strings.HasPrefix(stdout, "stored pdf-forms (") {
		t.Error(stdout)
	}
	if stdout, _ := run(exitOK, "put", pdf, "--output", "json"); !strings.Contains(stdout, `"changed": false`) {
		t.Error(stdout)
	}
	if stdout, _ := run(exitOK); !strings.Contains(stdout, "pdf-forms") || !strings.Contains(stdout, "Fills forms.") {
		t.Error(stdout)
	}
	stdout, _ := run(exitOK, "show", "pdf-forms")
	for _, want := range []string{"description    Fills forms.\n", "license        MIT\n", "  scripts/fill.sh (12 B)\n", "\n# Forms\n\nRun scripts/fill.sh.\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in:\n%s", want, stdout)
		}
	}
	stdout, _ = run(exitOK, "show", "pdf-forms", "--output", "json")
	var shown struct {
		Name         string
		Instructions string
		Files        []struct{ Path string }
	}
	if err := json.Unmarshal([]byte(stdout), &shown); err != nil || shown.Name != "pdf-forms" || len(shown.Files) != 2 || !strings.HasPrefix(shown.Instructions, "# Forms") {
		t.Errorf("%s, %v", stdout, err)
	}
	run(exitOK, "rm", "pdf-forms")
	if _, stderr := run(exitRefused, "show", "pdf-forms"); !strings.HasSuffix(stderr, "there is no skill \"pdf-forms\" on the bus; toolfabric --nats "+s.URL()+" skills ls lists them (not_found)\n") {
		t.Error(stderr)
	}
	run(exitRefused, "rm", "pdf-forms")
}

func TestOneBrokenFolderStoresNone(t *testing.T) {
	s := natstest.Start(t)
	s.Connect(t, "")
	good := skillFolder(t, "good", "---\nname: good\ndescription: x\n---\n")
	bad := skillFolder(t, "bad", "---\nname: bad\ndescription: use: when asked\n---\n")
	other := skillFolder(t, "other", "---\nname: another\ndescription: x\n---\n")
	code, _, stderr := command(t, "", "skills", "put", "--nats", s.URL(), good, bad, other, filepath.Join(good, "nosuch"))
	if code != exitUsage || !strings.Contains(stderr, "SKILL.md: invalid frontmatter: line 3") || !strings.Contains(stderr, `named "another"`) || !strings.Contains(stderr, "nosuch") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	code, _, stderr = command(t, "", "skills", "put", "--nats", s.URL(), filepath.Dir(good))
	if code != exitUsage || !strings.Contains(stderr, "in the folders below: toolfabric --nats "+s.URL()+" skills put "+filepath.Dir(good)+"/*") {
		t.Errorf("a folder of skills: exit %d, %s", code, stderr)
	}
	if code, stdout, _ := command(t, "", "skills", "ls", "--nats", s.URL(), "--output", "json"); code != exitOK || strings.TrimSpace(stdout) != "[]" {
		t.Errorf("exit %d, %s", code, stdout)
	}
}

func TestSkillsOfAnEmptyNamespaceAreAbsent(t *testing.T) {
	s := natstest.Start(t)
	s.Connect(t, "")
	folder := skillFolder(t, "good", "---\nname: good\ndescription: x\n---\n")
	for _, args := range [][]string{{"ls"}, {"put", folder}} {
		code, _, stderr := command(t, "", append([]string{"skills", "--nats", s.URL(), "--namespace", "other"}, args...)...)
		if code != exitUnreachable || !strings.Contains(stderr, "nothing runs in namespace other") {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
}
