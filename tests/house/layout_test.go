package house

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// What the root holds and nothing else.
var (
	rootFolders = []string{".ci", "protocol", "toolkit", "worker", "coordinator", "cmd", "deploy", "tests"}
	rootFiles   = []string{".gitignore", ".golangci.yml", "go.mod", "go.sum", "README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE", "Makefile"}
)

// Names that say nothing about what a package holds.
var emptyNames = []string{"util", "utils", "common", "base", "helper", "helpers"}

const (
	maxMain  = 30  // lines of a main.go
	longFile = 800 // lines from which a file says why it is long
)

var layoutRules = []rule{
	{
		name:   "RootEntries",
		why:    "the root stays readable at a glance: the lists are at the top of tests/house/layout_test.go",
		check:  checkRoot,
		broken: map[string]string{"pkg/": "", "notes.txt": "x"},
		blames: "pkg: ",
		fine:   map[string]string{"protocol/": "", "go.mod": "x", ".gitignore": "/bin/\n*.prof\n", "bin/tool": "x", "cpu.prof": "x"},
	},
	{
		name:   "PagesExist",
		why:    "whoever comes to the repository finds these pages",
		check:  checkPages,
		broken: map[string]string{"README.md": "x", "CHANGELOG.md": "x", "LICENSE": "x"},
		blames: "ARCHITECTURE.md",
		fine:   map[string]string{"README.md": "x", "ARCHITECTURE.md": "x", "CHANGELOG.md": "x", "LICENSE": "x"},
	},
	{
		name:   "CIRunsTheTests",
		why:    ".ci/run calls the test command of the README, so that what people run and what the machine runs is one thing",
		check:  checkCI,
		broken: map[string]string{".ci/run": "go test ./...", "Makefile": "test:\n"},
		blames: ".ci/run: ",
		fine:   map[string]string{".ci/run": "run make test", "Makefile": "test: vet\n"},
	},
	{
		name:   "PackageNames",
		why:    "a package is named for what it holds, short, singular, in lower case",
		check:  checkPackageNames,
		broken: map[string]string{"worker/util/a.go": "package util\n"},
		blames: "worker/util",
		fine:   map[string]string{"worker/lease/a.go": "package lease\n"},
	},
	{
		name:   "ShortMain",
		why:    fmt.Sprintf("main.go wires and exits, in under %d lines: what it does lives in packages that tests reach", maxMain),
		check:  checkMain,
		broken: map[string]string{"cmd/toolfabric/main.go": "package main\n" + strings.Repeat("\n", maxMain)},
		blames: "cmd/toolfabric/main.go: ",
		fine:   map[string]string{"cmd/toolfabric/main.go": "package main\nfunc main() {}\n"},
	},
	{
		name:   "LongFiles",
		why:    fmt.Sprintf("a file of more than %d lines says at its top why it is long (\"long because\"), or has a second idea to move out", longFile),
		warn:   true,
		check:  checkLength,
		broken: map[string]string{"worker/a.go": "package worker\n" + strings.Repeat("\n", longFile)},
		blames: "worker/a.go: ",
		fine:   map[string]string{"worker/a.go": "// This file is long because it is one table.\npackage worker\n" + strings.Repeat("\n", longFile)},
	},
}

func checkRoot(r *repo) []string {
	var problems []string
	for _, d := range r.root {
		allowed := rootFiles
		if d.IsDir() {
			allowed = rootFolders
		}
		if !slices.Contains(allowed, d.Name()) {
			problems = append(problems, d.Name()+": the root has no place for it")
		}
	}
	return problems
}

func checkPages(r *repo) []string {
	var problems []string
	for _, page := range []string{"README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE"} {
		if strings.TrimSpace(r.texts[page]) == "" {
			problems = append(problems, page+": missing or empty")
		}
	}
	return problems
}

func checkCI(r *repo) []string {
	var problems []string
	if !strings.Contains(r.texts[".ci/run"], "make test") {
		problems = append(problems, ".ci/run: does not call make test")
	}
	if !strings.Contains("\n"+r.texts["Makefile"], "\ntest:") {
		problems = append(problems, "Makefile: has no target test")
	}
	return problems
}

func checkPackageNames(r *repo) []string {
	var problems []string
	for _, files := range r.packages() {
		f := files[0]
		name := strings.TrimSuffix(f.ast.Name.Name, "_test")
		switch {
		case slices.Contains(emptyNames, name) || slices.Contains(emptyNames, path.Base(f.dir)):
			problems = append(problems, fmt.Sprintf("%s: package %s is named for nothing", f.dir, name))
		case name != strings.ToLower(name) || strings.Contains(name, "_"):
			problems = append(problems, fmt.Sprintf("%s: package %s is not in lower case", f.dir, name))
		}
	}
	return problems
}

func checkMain(r *repo) []string {
	var problems []string
	for _, f := range r.gofiles {
		if path.Base(f.path) != "main.go" || f.ast.Name.Name != "main" {
			continue
		}
		if n := strings.Count(r.texts[f.path], "\n"); n >= maxMain {
			problems = append(problems, fmt.Sprintf("%s: %d lines", f.path, n))
		}
	}
	return problems
}

func checkLength(r *repo) []string {
	var problems []string
	for _, f := range r.gofiles {
		n := strings.Count(r.texts[f.path], "\n")
		if n <= longFile {
			continue
		}
		header := r.texts[f.path][:r.fset.Position(f.ast.Package).Offset]
		if !strings.Contains(header, "long because") {
			problems = append(problems, fmt.Sprintf("%s: %d lines", f.path, n))
		}
	}
	return problems
}
