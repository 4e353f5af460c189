package assemble

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/genai"
)

// tree is a call's arguments while they are put together. Elements of arrays may come in any order.
type tree struct{ root *node }

// node is one place: an object, an array or a value, decided by the first fragment that touches it.
type node struct {
	object map[string]*node
	array  map[int]*node
	value  any
	set    bool // value holds
	open   bool // value is a string that goes on
}

// newTree starts with the arguments that came whole.
func newTree(args map[string]any) *tree {
	t := &tree{root: &node{object: map[string]*node{}}}
	for k, v := range args {
		t.root.object[k] = &node{value: v, set: true}
	}
	return t
}

// set applies one fragment. A string that continues is appended to; everything else is written once. A fragment without
// any value closes an open string or is the empty string: the SDK does not tell that apart from null, and the schema
// refuses it where it does not belong.
func (t *tree) set(arg *genai.PartialArg) error {
	if arg == nil {
		return nil
	}
	segs, err := parsePath(arg.JsonPath)
	if err != nil {
		return err
	}
	if len(segs) == 0 {
		return fmt.Errorf("path %q names the arguments as a whole", arg.JsonPath)
	}
	n := t.root
	for _, s := range segs {
		if n = n.child(s); n == nil {
			return fmt.Errorf("path %.60q goes through a value", arg.JsonPath)
		}
	}
	more := arg.WillContinue != nil && *arg.WillContinue
	value := valueOf(arg)
	text, isText := value.(string)
	switch {
	case n.object != nil || n.array != nil:
		return fmt.Errorf("path %.60q is no value", arg.JsonPath)
	case n.open && isText:
		n.value = n.value.(string) + text
		n.open = more
	case n.set:
		return fmt.Errorf("path %.60q is written twice", arg.JsonPath)
	default:
		n.value, n.set, n.open = value, true, more && isText
	}
	return nil
}

func valueOf(arg *genai.PartialArg) any {
	switch {
	case arg.BoolValue != nil:
		return *arg.BoolValue
	case arg.NumberValue != nil:
		return *arg.NumberValue
	case arg.NULLValue != "":
		return nil
	}
	return arg.StringValue
}

// child is the place one step below n, made when it is new; nil when n is something else already.
func (n *node) child(s segment) *node {
	if n.set || s.name != nil && n.array != nil || s.name == nil && n.object != nil {
		return nil
	}
	if s.name != nil {
		if n.object == nil {
			n.object = map[string]*node{}
		}
		if n.object[*s.name] == nil {
			n.object[*s.name] = &node{}
		}
		return n.object[*s.name]
	}
	if n.array == nil {
		n.array = map[int]*node{}
	}
	if n.array[s.index] == nil {
		n.array[s.index] = &node{}
	}
	return n.array[s.index]
}

// build is the finished arguments. Every string must have ended and every array must be without holes.
func (t *tree) build() (map[string]any, error) {
	v, err := t.root.build("$")
	if err != nil {
		return nil, err
	}
	return v.(map[string]any), nil
}

func (n *node) build(path string) (any, error) {
	switch {
	case n.open:
		return nil, fmt.Errorf("%.60s has no end", path)
	case n.object != nil:
		out := make(map[string]any, len(n.object))
		for k, child := range n.object {
			v, err := child.build(path + "." + k)
			if err != nil {
				return nil, err
			}
			out[k] = v
		}
		return out, nil
	case n.array != nil:
		out := make([]any, 0, len(n.array))
		for i := range len(n.array) {
			child := n.array[i]
			if child == nil {
				return nil, fmt.Errorf("%.60s lacks element %d of %d", path, i, 1+slices.Max(slices.Collect(maps.Keys(n.array))))
			}
			v, err := child.build(fmt.Sprintf("%s[%d]", path, i))
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	}
	return n.value, nil
}
