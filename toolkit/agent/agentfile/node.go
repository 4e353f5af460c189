package agentfile

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Bounds of a file's nesting. A ruler of dashes in a text is no nesting, so a line may have more indicators.
const (
	maxDepth      = 64
	maxIndicators = 512
)

// place is a position in a file, from 1.
type place struct{ line, column int }

// parse reads data as one YAML document without anchors, aliases, merge keys or tags. It returns nil after a fault.
func (r *reader) parse(data []byte) ast.Node {
	top := place{1, 1}
	switch {
	case len(data) > MaxFile:
		r.fault(top, "the file is larger than %d bytes", MaxFile)
		return nil
	case !utf8.Valid(data):
		r.fault(top, "the file is not UTF-8 text")
		return nil
	case deep(data):
		r.fault(top, "collections are nested deeper than %d", maxDepth)
		return nil
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		at, message := top, err.Error()
		if e, ok := errors.AsType[yaml.Error](err); ok {
			message = e.GetMessage()
			if t := e.GetToken(); t != nil && t.Position != nil {
				at = place{max(t.Position.Line, 1), max(t.Position.Column, 1)}
			}
		}
		r.fault(at, "not YAML: %s", strings.ReplaceAll(message, "\n", " "))
		return nil
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if body != nil {
			r.fault(placeOf(doc.Body), "a second document: a file holds one agent")
			continue
		}
		body = doc.Body
	}
	if body == nil {
		r.fault(top, "the file is empty")
		return nil
	}
	before := len(r.faults)
	r.refuseReferences(body, 0)
	if len(r.faults) > before {
		return nil
	}
	return body
}

// deep looks for collections in one line that would take the parser's stack and time: brackets, and indicators such as
// "- - -". What is quoted counts too, which does no harm.
func deep(data []byte) bool {
	brackets, indicators := 0, 0
	for _, c := range data {
		switch c {
		case '[', '{':
			brackets++
		case ']', '}':
			brackets = max(brackets-1, 0)
		case '-', '?':
			indicators++
		case ' ':
		default:
			indicators = 0
		}
		if brackets > maxDepth || indicators > maxIndicators {
			return true
		}
	}
	return false
}

// refuseReferences finds what makes one place of a file mean another.
func (r *reader) refuseReferences(n ast.Node, depth int) {
	if depth > maxDepth {
		r.fault(placeOf(n), "nested deeper than %d", maxDepth)
		return
	}
	switch n := n.(type) {
	case *ast.AnchorNode:
		r.fault(placeOf(n), "anchors are not accepted: write the value where it is used")
	case *ast.AliasNode:
		r.fault(placeOf(n), "aliases are not accepted: write the value out")
	case *ast.TagNode:
		r.fault(placeOf(n), "tags are not accepted: quote the value to make it text")
	case *ast.MappingNode, *ast.MappingValueNode:
		for _, entry := range entries(n) {
			if _, merge := entry.Key.(*ast.MergeKeyNode); merge {
				r.fault(placeOf(entry.Key), "merge keys are not accepted: write the keys out")
				continue
			}
			r.refuseReferences(entry.Key, depth+1)
			r.refuseReferences(entry.Value, depth+1)
		}
	case *ast.MappingKeyNode:
		r.fault(placeOf(n), "a key is plain text")
	case *ast.SequenceNode:
		for _, element := range n.Values {
			r.refuseReferences(element, depth+1)
		}
	}
}

// entries are the pairs of a mapping, and nil for any other node. The parser writes a mapping of one pair in two ways.
func entries(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

func isMapping(n ast.Node) bool {
	return n != nil && (n.Type() == ast.MappingType || n.Type() == ast.MappingValueType)
}

func isNull(n ast.Node) bool { return n == nil || n.Type() == ast.NullType }

// placeOf is where a reader looks for n: a block mapping begins at its first key.
func placeOf(n ast.Node) place {
	switch m := n.(type) {
	case *ast.MappingNode:
		if len(m.Values) > 0 && !m.IsFlowStyle {
			return placeOf(m.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return placeOf(m.Key)
	}
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return place{1, 1}
	}
	p := n.GetToken().Position
	return place{max(p.Line, 1), max(p.Column, 1)}
}

// scalarText is a text node's value.
func scalarText(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	return "", false
}

// kindOf names a node's kind for an error.
func kindOf(n ast.Node) string {
	switch n.Type() {
	case ast.MappingType, ast.MappingValueType:
		return "a mapping"
	case ast.SequenceType:
		return "a list"
	case ast.BoolType:
		return "true or false"
	case ast.IntegerType, ast.FloatType, ast.InfinityType, ast.NanType:
		return "a number"
	case ast.NullType:
		return "nothing"
	case ast.StringType, ast.LiteralType:
		return "text"
	}
	return fmt.Sprintf("a %s", strings.ToLower(n.Type().String()))
}
