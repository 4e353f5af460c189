package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Built from pieces, so that this file does not break the rules that it checks.
var (
	unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	homePath   = regexp.MustCompile(`(^|[^A-Za-z0-9_.@$})-])/(root|work|home/[a-z][a-z0-9]*)/`)
)

var wordRules = []rule{
	{
		name:  "NoSleepInTests",
		why:   "tests wait for a signal, or let testing/synctest move the clock: a sleep is slow on a fast machine and too short on a slow one",
		check: checkSleep,
		broken: map[string]string{"worker/a_test.go": "package worker\n" +
			"import clock \"time\"\nfunc f() {\n\tclock.Sleep(1)\n\t<-clock.After(1)\n}\n"},
		blames: "worker/a_test.go:4: sleeps\nworker/a_test.go:5: sleeps",
		fine: map[string]string{
			"worker/a.go":      "package worker\nimport clock \"time\"\nfunc f() { clock.Sleep(1) }\n",
			"worker/a_test.go": "package worker\nimport \"time\"\nfunc g() { select { case <-time.After(1): } }\n",
			"worker/b_test.go": "package worker\nimport (\"time\"; \"testing/synctest\")\nfunc h() { synctest.Wait(); <-time.After(1) }\n",
		},
	},
	{
		name:   "NothingUnfinished",
		why:    "what is not done is an issue or a line of \"rough edges\" in ARCHITECTURE.md, where readers look",
		check:  checkUnfinished,
		broken: map[string]string{"worker/a.go": "package worker\n// TO" + "DO: later\n"},
		blames: "worker/a.go:2: ",
		fine:   map[string]string{"worker/a.go": "package worker\n// todos of a user\nconst x = \"XX" + "X\"\n"},
	},
	{
		name:   "NoHomePaths",
		why:    "a path of one machine is nothing to any other: use t.TempDir, a flag or a relative path",
		check:  checkHomePaths,
		broken: map[string]string{"README.md": "a\nsee file:///ro" + "ot/x and /wo" + "rk/y\n"},
		blames: "README.md:2: ",
		fine:   map[string]string{"README.md": "https://example.com/wo" + "rk/y and pkg/ro" + "ot/x\n"},
	},
}

func checkSleep(r *repo) []string {
	var problems []string
	for _, f := range r.gofiles {
		clock := f.nameOf("time")
		if !f.test || clock == "" {
			continue
		}
		fake := f.nameOf("testing/synctest") != "" || f.dir == "tests/sim" // which runs in bubbles only
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.SelectorExpr:
				if isCall(x, clock, "Sleep") {
					problems = append(problems, r.at(x)+": sleeps")
				}
			case *ast.ExprStmt: // a bare <-time.After is a sleep by another name; as a case of a select it is a timeout
				if recv, ok := x.X.(*ast.UnaryExpr); ok && recv.Op == token.ARROW && !fake {
					if call, ok := recv.X.(*ast.CallExpr); ok && isCall(call.Fun, clock, "After") && !r.inSelect(f, x) {
						problems = append(problems, r.at(x)+": sleeps")
					}
				}
			}
			return true
		})
	}
	return problems
}

func isCall(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == pkg
}

// inSelect tells whether a statement is what a case of a select waits for.
func (r *repo) inSelect(f *gofile, stmt ast.Stmt) bool {
	found := false
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if c, ok := n.(*ast.CommClause); ok && c.Comm == stmt {
			found = true
		}
		return !found
	})
	return found
}

func checkUnfinished(r *repo) []string {
	var problems []string
	for _, f := range r.gofiles {
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				if word := unfinished.FindString(c.Text); word != "" {
					problems = append(problems, fmt.Sprintf("%s: says %s", r.at(c), word))
				}
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && unfinished.MatchString(id.Name) {
				problems = append(problems, fmt.Sprintf("%s: uses %s", r.at(id), id.Name))
			}
			return true
		})
	}
	return problems
}

func checkHomePaths(r *repo) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(r.texts)) {
		for i, line := range strings.Split(r.texts[name], "\n") {
			if hit := homePath.FindString(line); hit != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: names %s", name, i+1, strings.TrimLeft(hit, " \"'`(=")))
			}
		}
	}
	return problems
}
