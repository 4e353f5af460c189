package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// Methods whose meaning the standard library fixes: they need no comment of their own.
var wellKnown = []string{
	"Error", "Unwrap", "Is", "As", "String", "GoString", "Format", "LogValue",
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "MarshalYAML", "UnmarshalYAML",
	"Len", "Less", "Swap", "Read", "Write", "Close", "ServeHTTP",
}

var docRules = []rule{
	{
		name: "ExportedIsDocumented",
		why: "a doc comment begins with the name and says shapes, units, zero value, limits, errors and concurrency; " +
			"only methods that a documented interface of ours or the standard library describes may go without",
		check: checkExported,
		broken: map[string]string{"worker/a.go": "package worker\n" +
			"// A worker.\ntype Worker struct{}\n" +
			"func (Worker) Run() {}\n" +
			"func New() {}\n"},
		blames: "worker/a.go:5: New ",
		fine: map[string]string{
			"worker/a.go": "package worker\n" +
				"// Clock tells the time.\ntype Clock interface {\n\tNow() int\n}\n" +
				"// System is a Clock.\ntype System struct{}\n" +
				"func (System) Now() int { return 0 }\n" +
				"func (System) String() string { return \"\" }\n" +
				"func (hidden) Exported() {}\ntype hidden struct{}\n" +
				"// What a worker is.\nconst (\n\tUp = 1\n\tDown = 2\n)\n",
			"worker/internal/x/a.go": "package x\nfunc New() {}\n",
			"cmd/x/main.go":          "package main\nfunc Exported() {}\n",
		},
	},
	{
		name:   "PackageComment",
		why:    "each package says in one file what it promises: \"Package name ...\" before the package clause, in doc.go when it is long",
		check:  checkPackageComment,
		broken: map[string]string{"worker/a.go": "// Package worker runs.\npackage worker\n", "worker/b.go": "// Package worker too.\npackage worker\n"},
		blames: "worker: 2 package comments",
		fine: map[string]string{
			"worker/a.go":          "// Package worker runs.\npackage worker\n",
			"worker/b.go":          "package worker\n",
			"worker/b_test.go":     "package worker_test\n",
			"cmd/x/main.go":        "// Command x runs.\npackage main\n",
			"tests/only/a_test.go": "// Package only has tests.\npackage only\n",
		},
	},
}

func checkExported(r *repo) []string {
	var problems []string
	known := r.interfaceMethods()
	for _, f := range r.gofiles {
		if f.test || f.internal() {
			continue
		}
		for _, decl := range f.ast.Decls {
			problems = append(problems, r.undocumented(decl, known)...)
		}
	}
	return problems
}

func (r *repo) undocumented(decl ast.Decl, known []string) []string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		return r.undocumentedFunc(d, known)
	case *ast.GenDecl:
		var problems []string
		for _, spec := range d.Specs {
			for _, name := range exportedNames(spec) {
				if !documented(d, spec, name.Name) {
					problems = append(problems, fmt.Sprintf("%s: %s has no doc comment that begins with its name", r.at(name), name.Name))
				}
			}
		}
		return problems
	}
	return nil
}

func (r *repo) undocumentedFunc(d *ast.FuncDecl, known []string) []string {
	name := d.Name.Name
	if !d.Name.IsExported() || begins(d.Doc, name) {
		return nil
	}
	if d.Recv != nil {
		if !ast.IsExported(receiver(d)) || slices.Contains(wellKnown, name) || slices.Contains(known, signature(name, d.Type)) {
			return nil
		}
		name = receiver(d) + "." + name
	}
	return []string{fmt.Sprintf("%s: %s has no doc comment that begins with its name", r.at(d.Name), name)}
}

// interfaceMethods lists name and arity of each method of a documented interface: whoever implements it needs to say
// nothing again.
func (r *repo) interfaceMethods() []string {
	var known []string
	for _, f := range r.gofiles {
		for _, decl := range f.ast.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range d.Specs {
				ts, ok := spec.(*ast.TypeSpec)
				if !ok || !documented(d, spec, ts.Name.Name) {
					continue
				}
				iface, ok := ts.Type.(*ast.InterfaceType)
				if !ok {
					continue
				}
				for _, m := range iface.Methods.List {
					if ft, ok := m.Type.(*ast.FuncType); ok && len(m.Names) == 1 {
						known = append(known, signature(m.Names[0].Name, ft))
					}
				}
			}
		}
	}
	return known
}

func signature(name string, ft *ast.FuncType) string {
	return fmt.Sprintf("%s/%d/%d", name, ft.Params.NumFields(), ft.Results.NumFields())
}

func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func exportedNames(spec ast.Spec) []*ast.Ident {
	var names []*ast.Ident
	switch s := spec.(type) {
	case *ast.TypeSpec:
		names = append(names, s.Name)
	case *ast.ValueSpec:
		names = append(names, s.Names...)
	}
	return slices.DeleteFunc(names, func(id *ast.Ident) bool { return !id.IsExported() })
}

// documented accepts, for a value or an alias of a group, also the group's comment or a line's; a type needs its own.
func documented(d *ast.GenDecl, spec ast.Spec, name string) bool {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Assign.IsValid() && d.Lparen.IsValid() && d.Doc != nil {
			return true
		}
		return begins(s.Doc, name) || !d.Lparen.IsValid() && begins(d.Doc, name)
	case *ast.ValueSpec:
		if d.Lparen.IsValid() {
			return d.Doc != nil || s.Doc != nil || s.Comment != nil
		}
		return begins(d.Doc, name)
	}
	return d.Tok == token.IMPORT
}

// begins tells whether a comment begins with a name, an article allowed before it.
func begins(doc *ast.CommentGroup, name string) bool {
	if doc == nil {
		return false
	}
	words := strings.Fields(doc.Text())
	if len(words) > 1 && slices.Contains([]string{"A", "An", "The"}, words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		return false
	}
	first := strings.TrimSuffix(strings.TrimRight(words[0], ".,:;"), "'s")
	return first == name || first == "Deprecated"
}

func checkPackageComment(r *repo) []string {
	var problems []string
	for _, files := range r.packages() {
		built := slices.DeleteFunc(slices.Clone(files), func(f *gofile) bool { return f.test })
		if len(built) == 0 {
			built = files
		}
		n := 0
		for _, f := range built {
			if f.ast.Doc == nil {
				continue
			}
			n++
			want := "Package " + f.ast.Name.Name
			if f.ast.Name.Name == "main" {
				want = "Command " // and its name, as go doc shows it
			}
			if !strings.HasPrefix(f.ast.Doc.Text(), want) {
				problems = append(problems, fmt.Sprintf("%s: the package comment does not begin with %q", r.at(f.ast.Doc), want))
			}
		}
		if n != 1 {
			problems = append(problems, fmt.Sprintf("%s: %d package comments", built[0].dir, n))
		}
	}
	return problems
}
