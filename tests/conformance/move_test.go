// Package conformance has programs that were written for adk-go, with its imports, in testdata. They are moved as the page
// for users says, compiled against this module from a module of their own, and run against a Gemini that follows a script.
package conformance

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	root = "../.."
	page = root + "/cmd/runner/moving.md"
)

// moved holds the programs as they are after the move; bin is all of them in one, which takes the name of one first: to link
// each by itself takes a minute.
var moved, bin string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "conformance")
		if err == nil {
			defer os.RemoveAll(dir)
			err = build(dir)
		}
		if err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			return 1
		}
		return m.Run()
	}())
}

// build moves the programs and compiles them in a module of their own, whose requirements are ours: nothing is fetched.
func build(dir string) error {
	moved, bin = filepath.Join(dir, "moved"), filepath.Join(dir, "bin")
	if err := os.CopyFS(moved, os.DirFS("testdata")); err != nil {
		return err
	}
	command, err := move()
	if err != nil {
		return err
	}
	if err := run(moved, "sh", "-c", command); err != nil {
		return err
	}
	if err := module(dir); err != nil {
		return err
	}
	if err := run(dir, "go", "vet", "-mod=mod", "./moved/..."); err != nil {
		return err
	}
	if err := join(filepath.Join(dir, "all")); err != nil {
		return err
	}
	return run(dir, "go", "build", "-mod=mod", "-ldflags=-s -w", "-o", bin, "./all")
}

// module writes the files of a module that requires ours.
func module(dir string) error {
	here, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(root + "/go.mod")
	if err != nil {
		return err
	}
	sums, err := os.ReadFile(root + "/go.sum")
	if err != nil {
		return err
	}
	text := strings.Replace(string(mod), "module github.com/toolfabric/toolfabric", "module example.com/conformance", 1) +
		"\nrequire github.com/toolfabric/toolfabric v0.0.0\nreplace github.com/toolfabric/toolfabric => " + here + "\n"
	return errors.Join(os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600), os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600))
}

// join makes one program of the moved ones.
func join(dir string) error {
	list, err := os.ReadDir(moved)
	if err != nil {
		return err
	}
	var imports, cases strings.Builder
	for _, p := range list {
		source, err := os.ReadFile(filepath.Join(moved, p.Name(), "main.go"))
		if err != nil {
			return err
		}
		text := strings.Replace(string(source), "\npackage main\n", "\npackage "+p.Name()+"\n", 1)
		text = strings.Replace(text, "\nfunc main() {", "\nfunc Main() {", 1)
		if err := write(filepath.Join(dir, p.Name(), "main.go"), text); err != nil {
			return err
		}
		fmt.Fprintf(&imports, "\t%q\n", "example.com/conformance/all/"+p.Name())
		fmt.Fprintf(&cases, "\tcase %q:\n\t\t%s.Main()\n", p.Name(), p.Name())
	}
	return write(filepath.Join(dir, "main.go"), "package main\n\nimport (\n\t\"os\"\n"+imports.String()+")\n\n"+
		"func main() {\n\tos.Args = os.Args[1:]\n\tswitch os.Args[0] {\n"+cases.String()+"\t}\n}\n")
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// move is the command that users are told to use.
func move() (string, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return "", err
	}
	_, after, _ := strings.Cut(string(text), "```sh\n")
	line, _, ok := strings.Cut(after, "```")
	if !ok {
		return "", errors.New(page + " has no command")
	}
	return line, nil
}

func run(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

func TestNothingOfADKIsLeftAfterTheMove(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(moved, "*", "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	old := regexp.MustCompile(`"google\.golang\.org/adk[/"]`)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if old.Match(text) {
			t.Errorf("%s still imports ADK", f)
		}
		if before, err := os.ReadFile(f + ".adk"); err != nil || !old.Match(before) {
			t.Errorf("%s was not written for ADK, or not kept: %v", f, err)
		}
	}
}
