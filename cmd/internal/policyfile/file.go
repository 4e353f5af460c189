// Package policyfile reads an operator's policy: which calls people must agree to, beside what the tools declare.
//
//	rules:
//	  - name: large_refunds
//	    when: tool == "refund_order" && args.amount > 100
//	    hint: More than 100 leaves the shop.
//	    need: 2               # distinct approvers
//	    not_requester: true   # whoever the session belongs to does not count
//	  - name: no_means_no
//	    when: effect == "at_most_once"
//	    enforce_denial: true  # also for tools that ask by themselves
//	    tighten: true         # asks nothing, makes stricter what somebody else asks
package policyfile

import (
	"fmt"
	"os"

	"github.com/goccy/go-yaml/ast"

	"github.com/toolfabric/toolfabric/cmd/internal/strictyaml"
	"github.com/toolfabric/toolfabric/coordinator/policy"
	"github.com/toolfabric/toolfabric/protocol"
)

// Read reads and compiles a file. It returns code usage with every fault and its place; faults of expressions are looked
// for once the file itself has none. An empty path is no policy.
func Read(path string) (*policy.Policy, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, protocol.Wrap(err, protocol.CodeUsage, "the policy cannot be read: %s", err)
	}
	r := reader{Document: strictyaml.Parse(path, text), path: path}
	var rules []policy.Rule
	r.Fields(r.Root(), "the file", map[string]func(ast.Node){
		"rules": func(n ast.Node) {
			r.Items(n, "rules", func(item ast.Node) { rules = append(rules, r.rule(item)) })
			if len(rules) == 0 {
				r.Fail(n, "rules is empty: a coordinator without a policy needs no file")
			}
		},
	}, "rules")
	if err := r.Err(); err != nil {
		return nil, err
	}
	return policy.Compile(rules)
}

type reader struct {
	*strictyaml.Document
	path string
}

func (r *reader) rule(n ast.Node) policy.Rule {
	var rule policy.Rule
	r.Fields(n, "a rule", map[string]func(ast.Node){
		"name": func(n ast.Node) { rule.Name, rule.At = r.String(n), r.place(n) },
		"when": func(n ast.Node) { rule.When = r.Scalar(n) },
		"hint": func(n ast.Node) { rule.Hint = r.String(n) },
		"need": func(n ast.Node) {
			if rule.Need = r.Int(n); rule.Need == 0 {
				r.Fail(n, "need is the number of approvers, from 1 to %d", policy.MaxNeed)
			}
		},
		"not_requester":  func(n ast.Node) { rule.NotRequester = r.Bool(n) },
		"enforce_denial": func(n ast.Node) { rule.EnforceDenial = r.Bool(n) },
		"tighten":        func(n ast.Node) { rule.Tighten = r.Bool(n) },
	}, "name", "when")
	return rule
}

func (r *reader) place(n ast.Node) string {
	at := n.GetToken().Position
	return fmt.Sprintf("%s:%d:%d", r.path, at.Line, at.Column)
}
