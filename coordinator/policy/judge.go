package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolfabric/toolfabric/protocol"
)

// Call is what rules see of a call.
type Call struct {
	Tool, Agent, User, App string
	Effect                 protocol.Effect
	Args                   json.RawMessage // a JSON object
}

// Ruling is what all rules together say of a call. The zero value asks for nothing.
type Ruling struct {
	Rule string // the first rule that asks; empty when none does
	Hint string // what the rules that hold say to people, a line each

	Need          int // the largest; 0 is one
	NotRequester  bool
	EnforceDenial bool
}

// Judge evaluates every rule. A rule whose expression fails, on a missing argument for one, counts as one that holds, and
// the hint says so: whoever writes rules guards them, as in has(args.amount) && args.amount > 100.
func (p *Policy) Judge(c Call) Ruling {
	var out Ruling
	if p == nil {
		return out
	}
	vars, broken := variables(c)
	var hints []string
	for i := range p.rules {
		r := &p.rules[i]
		holds, err := true, broken
		if err == nil {
			holds, err = r.eval(vars)
		}
		if !holds && err == nil {
			continue
		}
		if !r.Tighten && out.Rule == "" {
			out.Rule = r.Name
		}
		if hint := r.hint(c.Tool, err); hint != "" {
			hints = append(hints, hint)
		}
		out.Need = max(out.Need, r.Need)
		out.NotRequester = out.NotRequester || r.NotRequester
		out.EnforceDenial = out.EnforceDenial || r.EnforceDenial
	}
	out.Hint = strings.Join(hints, "\n")
	return out
}

func (r *compiled) hint(tool string, err error) string {
	hint := r.Hint
	if hint == "" && !r.Tighten {
		hint = fmt.Sprintf("The rule %s wants a person's word on each such call of %s.", r.Name, tool)
	}
	if err != nil {
		hint = strings.TrimSpace(hint + fmt.Sprintf(" (The rule %s could not be evaluated, so it counts: %s.)", r.Name, clip(err.Error(), 200)))
	}
	return hint
}

// eval reports whether the rule holds. A panic of the evaluator is an error like others.
func (r *compiled) eval(vars map[string]any) (holds bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the evaluator panicked: %v", p)
		}
	}()
	out, _, err := r.program.Eval(vars)
	if err != nil {
		return false, err
	}
	holds, ok := out.Value().(bool)
	if !ok {
		return false, errors.New("the value is not a bool")
	}
	return holds, nil
}

func variables(c Call) (map[string]any, error) {
	tree, err := protocol.Tree(c.Args)
	if err != nil {
		return nil, errors.New("the arguments cannot be read")
	}
	args, err := value(tree)
	if err != nil {
		return nil, err
	}
	if _, ok := args.(map[string]any); !ok {
		return nil, errors.New("the arguments are no object")
	}
	return map[string]any{
		"tool": c.Tool, "agent": c.Agent, "user": c.User, "app": c.App, "effect": string(c.Effect), "args": args,
	}, nil
}

// value turns a JSON tree's numbers into CEL's: whole ones of 64 bits are exact, the others are the nearest double. One
// that is out of a double's range is an error.
func value(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		return number(string(v))
	case map[string]any:
		for key, element := range v {
			var err error
			if v[key], err = value(element); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, element := range v {
			var err error
			if v[i], err = value(element); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func number(text string) (any, error) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %s is out of range", clip(text, 40))
	}
	return f, nil
}

func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "..."
}
