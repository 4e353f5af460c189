package house

import (
	"fmt"
	"go/ast"
	"slices"
)

var abilityRules = []rule{{
	name:  "AbilitiesOfToolsAreAskedFor",
	why:   "a type assertion sees the outermost layer of a tool only, so that a renamed or confirmed one loses what is below: use tool.As or tool.AsRunnable",
	check: checkAbilities,
	broken: map[string]string{
		"worker/a.go": "package worker\nfunc f(t tool.Tool) { _, _ = t.(tool.RunnerJSON) }\n",
		"worker/b.go": "package worker\nfunc g(t tool.Tool) { switch t.(type) { case int, tool.Asker: } }\n",
	},
	blames: "worker/b.go:2: tool.Asker",
	fine: map[string]string{
		"worker/a.go":       "package worker\nfunc f(t tool.Tool) { _, _ = tool.As[tool.RunnerJSON](t); _, _ = t.(tool.Toolset) }\n",
		"worker/a_test.go":  "package worker\nfunc g(t tool.Tool) { _, _ = t.(tool.RunnerJSON) }\n",
		"toolkit/tool/a.go": "package tool\nfunc As(t Tool) { _, _ = t.(RunnerJSON) }\n",
	},
}}

// abilities are the interfaces of toolkit/tool that only some tools have. RequestProcessor is not among them: a toolset may
// have it too, and keeps it through every layer.
var abilities = []string{"Runnable", "RunnerJSON", "RunnerStream", "Asker", "Configured"}

func checkAbilities(r *repo) []string {
	var problems []string
	for _, f := range r.gofiles {
		if f.test {
			continue
		}
		blame := func(asserted ast.Expr) {
			sel, ok := asserted.(*ast.SelectorExpr)
			if !ok || !slices.Contains(abilities, sel.Sel.Name) {
				return
			}
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "tool" {
				problems = append(problems, fmt.Sprintf("%s:%d: tool.%s is asserted", f.path, r.fset.Position(sel.Pos()).Line, sel.Sel.Name))
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeAssertExpr:
				blame(n.Type)
			case *ast.TypeSwitchStmt:
				for _, clause := range n.Body.List {
					for _, t := range clause.(*ast.CaseClause).List {
						blame(t)
					}
				}
			}
			return true
		})
	}
	return problems
}
