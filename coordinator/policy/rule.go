package policy

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"

	"github.com/toolfabric/toolfabric/protocol"
)

// Rule is one line of an operator's policy.
type Rule struct {
	// Name tells people who asks; it stands in the confirmation. A name as tools have, unique, none of protocol's origins.
	Name string
	// When is a CEL expression of type bool over tool, agent, user, app, effect (texts) and args (a map). agent is empty for
	// a call without a model; effect is read, idempotent or at_most_once.
	When string
	Hint string // what people are told; empty is a sentence made of the names
	Need int    // distinct approvers who must agree; 0 is one

	NotRequester  bool // whoever the session belongs to does not count
	EnforceDenial bool // a tool that asks by itself is not told of a denial: the call ends
	// Tighten keeps the rule from asking: it only makes stricter what the tool or another rule asks for.
	Tighten bool

	At string // where the rule is written, FILE:LINE:COLUMN, for errors; may be empty
}

// Limits of a policy.
const (
	MaxRules      = 256
	MaxExpression = 4 << 10   // code points of one expression
	MaxNeed       = 16        // approvers
	MaxHint       = 500       // bytes of one rule's hint
	MaxCost       = 1_000_000 // CEL's cost of one evaluation; one comparison of short values costs about 2
)

// Policy is compiled rules. The nil Policy has none. It is safe for concurrent use.
type Policy struct{ rules []compiled }

type compiled struct {
	Rule
	program cel.Program
}

// Compile checks all rules. It returns an *Error of code usage that lists every fault with its rule and, inside an
// expression, with line and column. No rules make a nil Policy.
func Compile(rules []Rule) (*Policy, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	if len(rules) > MaxRules {
		return nil, protocol.Errorf(protocol.CodeUsage, "%d policy rules are more than %d", len(rules), MaxRules)
	}
	env, err := newEnv()
	if err != nil {
		return nil, protocol.Wrap(err, protocol.CodeInternal, "the language of policy rules cannot be set up")
	}
	p := &Policy{}
	var faults []string
	names := map[string]bool{}
	for i, r := range rules {
		c, err := compile(env, r)
		if err == nil && names[r.Name] {
			err = errors.New("another rule has that name")
		}
		names[r.Name] = true
		if err != nil {
			faults = append(faults, r.place(i)+": "+err.Error())
		}
		p.rules = append(p.rules, c)
	}
	if len(faults) > 0 {
		return nil, protocol.Errorf(protocol.CodeUsage, "%s", strings.Join(faults, "\n"))
	}
	return p, nil
}

// place names the rule with index i in an error.
func (r *Rule) place(i int) string {
	name := fmt.Sprintf("policy rule %q", r.Name)
	if r.Name == "" {
		name = fmt.Sprintf("policy rule %d", i+1)
	}
	if r.At != "" {
		return r.At + ": " + name
	}
	return name
}

func newEnv() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("tool", cel.StringType), cel.Variable("agent", cel.StringType), cel.Variable("user", cel.StringType),
		cel.Variable("app", cel.StringType), cel.Variable("effect", cel.StringType),
		cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)),
		cel.ParserExpressionSizeLimit(MaxExpression),
		cel.CrossTypeNumericComparisons(true), // amounts are written 100 and 100.5: JSON knows one kind of number
	)
}

func compile(env *cel.Env, r Rule) (compiled, error) {
	if err := r.check(); err != nil {
		return compiled{}, err
	}
	ast, issues := env.Compile(r.When)
	if issues.Err() != nil {
		return compiled{}, explain(issues)
	}
	if !ast.OutputType().IsExactType(cel.BoolType) {
		return compiled{}, fmt.Errorf("the expression has the type %s and not bool: compare it with something, as in args.amount > 100", ast.OutputType())
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(MaxCost))
	if err != nil {
		return compiled{}, err
	}
	return compiled{Rule: r, program: program}, nil
}

func (r *Rule) check() error {
	if err := protocol.CheckName(r.Name); err != nil {
		return fmt.Errorf("its name is not one: %s", protocol.ProblemOf(err).Message)
	}
	switch r.Name {
	case protocol.OriginFlag, protocol.OriginProvider, protocol.OriginTool, protocol.OriginCallback:
		return fmt.Errorf("the name %s is taken: it says that a tool asks", r.Name)
	}
	if strings.TrimSpace(r.When) == "" {
		return errors.New("it has no expression: true holds for every call")
	}
	if n := utf8.RuneCountInString(r.When); n > MaxExpression {
		return fmt.Errorf("the expression has %d code points, more than %d", n, MaxExpression)
	}
	if r.Need < 0 || r.Need > MaxNeed {
		return fmt.Errorf("need %d: the number of approvers is from 1 to %d", r.Need, MaxNeed)
	}
	if len(r.Hint) > MaxHint {
		return fmt.Errorf("the hint has %d bytes, more than %d", len(r.Hint), MaxHint)
	}
	if c, ok := protocol.HiddenRune(r.Hint); ok {
		return fmt.Errorf("the hint holds U+%04X, which hides or turns text", c)
	}
	if r.Tighten && r.Need < 2 && !r.NotRequester && !r.EnforceDenial {
		return errors.New("it tightens nothing: give it need, not_requester or enforce_denial")
	}
	return nil
}

// explain lists what the compiler found, each with line and column in the expression.
func explain(issues *cel.Issues) error {
	var found []string
	for _, e := range issues.Errors() {
		found = append(found, fmt.Sprintf("line %d, column %d of the expression: %s", e.Location.Line(), e.Location.Column()+1, e.Message))
	}
	return errors.New(strings.Join(found, "; "))
}
