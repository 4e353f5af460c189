package house

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/toolfabric/toolfabric"

// repo is the tree as the rules see it: every file that .gitignore does not name.
type repo struct {
	fset    *token.FileSet
	root    []fs.DirEntry // entries of the root folder
	texts   map[string]string
	folders map[string]bool
	gofiles []*gofile // in path order, testdata left out
}

// gofile is a parsed Go file.
type gofile struct {
	path string // slash-separated, from the root
	dir  string // the folder, which is the package path within the module
	test bool
	ast  *ast.File
}

// internal reports that nothing outside the repository can import the file's package.
func (f *gofile) internal() bool {
	return f.ast.Name.Name == "main" || slices.Contains(strings.Split(f.dir, "/"), "internal")
}

func load(fsys fs.FS) (*repo, error) {
	r := &repo{fset: token.NewFileSet(), texts: map[string]string{}, folders: map[string]bool{}}
	ignored := ignores(fsys)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if d.Name() == ".git" || ignored(name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.Contains(name, "/") {
			r.root = append(r.root, d)
		}
		if d.IsDir() {
			r.folders[name] = true
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil || bytes.IndexByte(data, 0) >= 0 {
			return err // a binary file has no words
		}
		r.texts[name] = string(data)
		if !strings.HasSuffix(name, ".go") || slices.Contains(strings.Split(name, "/"), "testdata") {
			return nil
		}
		file, err := parser.ParseFile(r.fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		r.gofiles = append(r.gofiles, &gofile{path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), ast: file})
		return nil
	})
	return r, err
}

// ignores reads as much of .gitignore as this repository uses: names and globs, at the root with a leading slash.
func ignores(fsys fs.FS) func(name string) bool {
	data, _ := fs.ReadFile(fsys, ".gitignore") // none ignores nothing
	patterns := strings.Fields(string(data))
	return func(name string) bool {
		for _, p := range patterns {
			p = strings.TrimSuffix(p, "/")
			against := path.Base(name)
			if anchored, ok := strings.CutPrefix(p, "/"); ok {
				p, against = anchored, name
			}
			if hit, err := path.Match(p, against); err == nil && hit {
				return true
			}
		}
		return false
	}
}

// at is "file:line" of a node.
func (r *repo) at(n ast.Node) string {
	p := r.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// packages groups the Go files by folder, in path order.
func (r *repo) packages() [][]*gofile {
	var groups [][]*gofile
	byDir := map[string]int{}
	for _, f := range r.gofiles {
		i, ok := byDir[f.dir]
		if !ok {
			i = len(groups)
			byDir[f.dir] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], f)
	}
	return groups
}

// imports lists what a file imports as path and node.
func (f *gofile) imports() map[string]*ast.ImportSpec {
	all := map[string]*ast.ImportSpec{}
	for _, spec := range f.ast.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			all[p] = spec
		}
	}
	return all
}

// nameOf is the identifier under which a file knows an import; empty when it does not import it.
func (f *gofile) nameOf(importPath string) string {
	spec, ok := f.imports()[importPath]
	switch {
	case !ok:
		return ""
	case spec.Name != nil:
		return spec.Name.Name
	default:
		return path.Base(importPath)
	}
}

// ours cuts the module from an import path; false for everybody else's packages.
func ours(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// matches tells whether a package lies under a pattern: "a/b" is that package, "a/b/..." also all below it.
func matches(pattern, pkg string) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == tree || strings.HasPrefix(pkg, tree+"/")
	}
	return pkg == pattern
}
