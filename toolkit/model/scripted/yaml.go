package scripted

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxDepth bounds the nesting of a script.
const maxDepth = 64

// reader walks a YAML document and collects every fault with its line and column instead of stopping at the first.
type reader struct{ errs []error }

func (r *reader) fail(n ast.Node, format string, args ...any) {
	line, col := 1, 1
	if n != nil && n.GetToken() != nil && n.GetToken().Position != nil {
		line, col = n.GetToken().Position.Line, n.GetToken().Position.Column
	}
	r.errs = append(r.errs, fmt.Errorf("%d:%d: %s", line, col, fmt.Sprintf(format, args...)))
}

// document parses data as exactly one YAML document.
func (r *reader) document(data []byte) ast.Node {
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		if e, ok := errors.AsType[yaml.Error](err); ok && e.GetToken() != nil && e.GetToken().Position != nil {
			p := e.GetToken().Position
			r.errs = append(r.errs, fmt.Errorf("%d:%d: %s", p.Line, p.Column, e.GetMessage()))
		} else {
			r.errs = append(r.errs, fmt.Errorf("1:1: %w", err))
		}
		return nil
	}
	var bodies []ast.Node
	for _, d := range file.Docs {
		if d.Body != nil && d.Body.Type() != ast.CommentType {
			bodies = append(bodies, d.Body)
		}
	}
	switch len(bodies) {
	case 0:
		r.fail(nil, "the script is empty")
		return nil
	case 1:
		return bodies[0]
	}
	r.fail(bodies[1], "a script is one document")
	return nil
}

// mapping hands each value of n to the function of its key; unknown and repeated keys are faults.
func (r *reader) mapping(n ast.Node, what string, fields map[string]func(ast.Node)) {
	seen := map[string]bool{}
	r.pairs(n, what, func(key string, at, value ast.Node) {
		read, ok := fields[key]
		switch {
		case !ok:
			known := make([]string, 0, len(fields))
			for k := range fields {
				known = append(known, k)
			}
			slices.Sort(known)
			r.fail(at, "%s has no key %q; it has %s", what, key, strings.Join(known, ", "))
		case seen[key]:
			r.fail(at, "%s has the key %q twice", what, key)
		default:
			seen[key] = true
			read(value)
		}
	})
}

// pairs goes over a mapping in the order it is written.
func (r *reader) pairs(n ast.Node, what string, visit func(key string, at, value ast.Node)) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		r.fail(n, "%s is a mapping", what)
		return
	}
	for _, v := range values {
		switch key := v.Key.(type) {
		case *ast.StringNode:
			visit(key.Value, v.Key, v.Value)
		case *ast.IntegerNode, *ast.BoolNode, *ast.NullNode, *ast.FloatNode:
			visit(v.Key.GetToken().Value, v.Key, v.Value)
		default:
			r.fail(v.Key, "a key is plain text")
		}
	}
}

func (r *reader) list(n ast.Node, what string, visit func(ast.Node)) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		r.fail(n, "%s is a list", what)
		return
	}
	for _, v := range s.Values {
		visit(v)
	}
}

func (r *reader) str(n ast.Node, what string) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value
	}
	r.fail(n, "%s is text", what)
	return ""
}

func (r *reader) boolean(n ast.Node, what string) bool {
	if b, ok := n.(*ast.BoolNode); ok {
		return b.Value
	}
	r.fail(n, "%s is true or false", what)
	return false
}

func (r *reader) integer(n ast.Node, what string, least, most int) int {
	v, ok := n.(*ast.IntegerNode)
	if ok {
		switch x := v.Value.(type) {
		case int64:
			if x >= int64(least) && x <= int64(most) {
				return int(x)
			}
		case uint64:
			if x <= uint64(most) && x >= uint64(max(least, 0)) {
				return int(x)
			}
		}
	}
	r.fail(n, "%s is a whole number from %d to %d", what, least, most)
	return least
}

func (r *reader) duration(n ast.Node, what string) time.Duration {
	text := r.str(n, what)
	d, err := time.ParseDuration(text)
	if text != "" && (err != nil || d < 0) {
		r.fail(n, "%s is a duration such as 250ms or 2s", what)
		return 0
	}
	return d
}

// value is n as JSON values; integers stay int64 or uint64. text, when given, sees every string and may replace it.
func (r *reader) value(n ast.Node, depth int, text func(n ast.Node, s string) any) any {
	if depth > maxDepth {
		r.fail(n, "nested deeper than %d", maxDepth)
		return nil
	}
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return nil
	case *ast.BoolNode:
		return n.Value
	case *ast.IntegerNode:
		return n.Value
	case *ast.FloatNode:
		if math.IsInf(n.Value, 0) || math.IsNaN(n.Value) {
			r.fail(n, "a number is finite")
			return nil
		}
		return n.Value
	case *ast.StringNode:
		return text(n, n.Value)
	case *ast.LiteralNode:
		return text(n, n.Value.Value)
	case *ast.SequenceNode:
		out := make([]any, 0, len(n.Values))
		for _, v := range n.Values {
			out = append(out, r.value(v, depth+1, text))
		}
		return out
	case *ast.MappingNode, *ast.MappingValueNode:
		out := map[string]any{}
		r.pairs(n, "it", func(key string, at, v ast.Node) {
			if _, twice := out[key]; twice {
				r.fail(at, "the key %q is there twice", key)
			}
			out[key] = r.value(v, depth+1, text)
		})
		return out
	}
	r.fail(n, "anchors, aliases, tags, .inf and .nan are not read")
	return nil
}

func plain(_ ast.Node, s string) any { return s }
